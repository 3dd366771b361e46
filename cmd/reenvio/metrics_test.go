package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// contractMetrics are the names and labels that dashboards and alerts are built on.
var contractMetrics = []string{
	`reenvio_attempts_total{outcome="delivered",reason="",status_class="2xx",type="other"} `,
	`reenvio_attempts_total{outcome="failed",reason="status",status_class="5xx",type="other"} `,
	`reenvio_attempt_duration_seconds_bucket{le="1"} `,
	`reenvio_delivery_latency_seconds_bucket{le="1"} `,
	`reenvio_retry_lateness_seconds_bucket{tier="2s",le="1"} `,
	`reenvio_retry_waiting{tier="16s"} `,
	`reenvio_retry_overdue{tier="2s"} `,
	`reenvio_dlq_records_total{reason="attempts_exhausted"} `,
	`reenvio_webhooks_paused `,
	`reenvio_parked_records `,
	`reenvio_in_flight `,
	`reenvio_slots{class="free"} `,
	`reenvio_host_waiting `,
	`reenvio_lanes `,
	`reenvio_buffered_bytes `,
	`reenvio_cycle_duration_seconds_bucket{le="1"} `,
	`reenvio_cycles_total{result="committed"} `,
	`reenvio_cycles_total{result="aborted"} `,
	`reenvio_owned_partitions `,
	`reenvio_lease_age_seconds `,
	`reenvio_backlog `,
	`reenvio_oldest_incomplete_seconds `,
	`reenvio_events_without_id_total `,
	`reenvio_misrouted_events_total `,
	`reenvio_kafka_connects_total{client="group",`,
	`reenvio_kafka_fetch_bytes_total{client="fetch",`,
	`reenvio_kafka_read_bytes_total{client="plain",`,
	`reenvio_kafka_produce_bytes_total{client="transactions",`,
}

// metricsPage is what Prometheus would read.
func (d *devRun) metricsPage(t *testing.T) string {
	t.Helper()
	file, err := findDev(".reenvio/dev.json")
	if err != nil || file == nil {
		t.Fatalf("dev.json: %v, %v", file, err)
	}
	response, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/metrics", file.Ports.Admin))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

func (d *devRun) wantMetrics(t *testing.T, want []string) {
	t.Helper()
	page := d.metricsPage(t)
	for _, metric := range want {
		if !strings.Contains(page, "\n"+metric) {
			t.Errorf("no metric %s", metric)
		}
	}
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "reenvio_") && strings.Contains(line, "demo-") {
			t.Errorf("a webhook in a label: %s", line)
		}
	}
	if t.Failed() {
		t.Logf("%s", page)
	}
}
