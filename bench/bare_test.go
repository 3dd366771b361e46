package bench_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/kafkatest"
)

// bare consumes the events and POSTs them with a number of workers until the
// returned function is called. It remembers nothing: no group, no commit.
func bare(b *testing.B, c *kafkatest.Cluster, l load, to *receiver, workers int) (stop func()) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	consumer := c.Client(b, kgo.ConsumeTopics(l.topo.Events()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	client := &http.Client{Transport: &http.Transport{
		MaxIdleConns: workers, MaxIdleConnsPerHost: workers, DisableCompression: true, DialContext: c.Dial,
	}}
	queue := make(chan *kgo.Record, workers)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for r := range queue {
				if err := post(ctx, client, to.base+string(r.Key), r.Value); err != nil && ctx.Err() == nil {
					b.Errorf("posting: %v", err)
				}
			}
		})
	}
	wg.Go(func() {
		defer close(queue)
		for ctx.Err() == nil {
			consumer.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
				select {
				case queue <- r:
				case <-ctx.Done():
				}
			})
		}
	})
	return func() {
		cancel()
		wg.Wait()
		client.CloseIdleConnections()
	}
}

func post(ctx context.Context, client *http.Client, url string, body []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return err
}
