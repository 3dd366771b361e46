package dispatcher

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/topology"
)

// metrics are those of the contract that the dispatcher knows. Counts are kept as
// things happen; what is a state (waiting, parked, in flight) is asked of the
// numbers when somebody scrapes.
type metrics struct {
	d        *Dispatcher
	registry prometheus.Registerer

	attempts              *prometheus.CounterVec
	duration              prometheus.Histogram
	latency               prometheus.Histogram
	lateness              *prometheus.HistogramVec
	dead                  *prometheus.CounterVec
	cycles                *prometheus.CounterVec
	cycleTime             prometheus.Histogram
	withoutID             prometheus.Counter
	misrouted             prometheus.Counter
	duplicates, forgotten prometheus.Counter

	owned, lease, inFlight, slots, hosts, lanes, buffered, backlog, oldest, paused, parked *prometheus.Desc
	waiting, overdue, stopped, uncommitted                                                 *prometheus.Desc
}

const namespace = "reenvio"

func newMetrics(d *Dispatcher, registry prometheus.Registerer) *metrics {
	opts := func(name, help string) prometheus.Opts {
		return prometheus.Opts{Namespace: namespace, Name: name, Help: help}
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts(opts(name, help)), labels)
	}
	seconds := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets}, labels)
	}
	state := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(namespace+"_"+name, help, labels, nil)
	}
	fast := []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120}
	m := &metrics{
		d: d, registry: registry,
		attempts:   counter("attempts_total", "Attempts, and events that ended without one, by outcome.", "outcome", "reason", "status_class", "type"),
		dead:       counter("dlq_records_total", "Dead letters written, by reason.", "reason"),
		cycles:     counter("cycles_total", "Cycles that had something to commit, by result.", "result"),
		lateness:   seconds("retry_lateness_seconds", "From when a retry was due and its webhook free to when it started.", []float64{.001, .0025, .005, .01, .025, .05, .1, .25, 1, 5, 30}, "tier"),
		duration:   seconds("attempt_duration_seconds", "From the start of an attempt to its outcome.", fast).WithLabelValues().(prometheus.Histogram),
		latency:    seconds("delivery_latency_seconds", "From the event's record to its delivery.", append(fast, 600, 3600, 86400)).WithLabelValues().(prometheus.Histogram),
		cycleTime:  seconds("cycle_duration_seconds", "How long a cycle took.", fast).WithLabelValues().(prometheus.Histogram),
		withoutID:  prometheus.NewCounter(prometheus.CounterOpts(opts("events_without_id_total", "Events that came without a legal ce_id and got one derived from their place."))),
		duplicates: prometheus.NewCounter(prometheus.CounterOpts(opts("duplicates_total", "Second copies of delivered events, which were not delivered again."))),
		forgotten:  prometheus.NewCounter(prometheus.CounterOpts(opts("dedup_forgotten_total", "Delivered ids forgotten before dedup.window had passed, because there were too many."))),
		misrouted:  prometheus.NewCounter(prometheus.CounterOpts(opts("misrouted_events_total", "Events found in the wrong partition for their key, and moved."))),

		owned:       state("owned_partitions", "Partition numbers in the hands of this dispatcher."),
		lease:       state("lease_age_seconds", "Since the group last acknowledged this member."),
		inFlight:    state("in_flight", "Requests in flight."),
		slots:       state("slots", "Request slots: in use by webhooks that answer well (proven), by others (suspect), and free.", "class"),
		hosts:       state("host_waiting", "Webhooks that wait because their host has dispatcher.max_per_host requests in flight."),
		lanes:       state("lanes", "Webhooks with something queued in memory."),
		buffered:    state("buffered_bytes", "Bytes of events in memory."),
		backlog:     state("backlog", "Events not yet tried: the signal to scale by."),
		oldest:      state("oldest_incomplete_seconds", "Age of the oldest event that is queued, in flight or overdue."),
		uncommitted: state("uncommitted_seconds", "Age of the oldest outcome that is not committed. From dispatcher.max_uncommitted on its number starts no request."),
		paused:      state("webhooks_paused", "Paused webhooks of the owned numbers."),
		parked:      state("parked_records", "Parked events of the owned numbers."),
		waiting:     state("retry_waiting", "Retries in the due queue, by tier.", "tier"),
		stopped:     state("intake_stopped", "Topic-partitions of which nothing has been taken in for 10 s and more, by the bound that is reached.", "reason"),
		overdue:     state("retry_overdue", "Retries that are due and have not started, by tier.", "tier"),
	}
	// From the start, so that an alert sees the first of a kind as an increase.
	for _, reason := range record.DeathReasons() {
		m.dead.WithLabelValues(string(reason))
	}
	for _, outcome := range []txnOutcome{outcomeCommitted, outcomeAborted} {
		m.cycles.WithLabelValues(string(outcome))
	}
	registry.MustRegister(m.own()...)
	return m
}

func (m *metrics) own() []prometheus.Collector {
	return []prometheus.Collector{m, m.attempts, m.dead, m.cycles, m.lateness, m.duration, m.latency, m.cycleTime, m.withoutID, m.misrouted, m.duplicates, m.forgotten}
}

func (m *metrics) unregister() {
	for _, c := range m.own() {
		m.registry.Unregister(c)
	}
}

func (m *metrics) cycle(outcome txnOutcome, took time.Duration) {
	m.cycles.WithLabelValues(string(outcome)).Inc()
	m.cycleTime.Observe(took.Seconds())
}

// late observes how late a retry started.
func (m *metrics) late(tier, by time.Duration) {
	m.lateness.WithLabelValues(topology.TierName(tier)).Observe(max(0, by.Seconds()))
}

// attempt counts what a record of the attempts topic says.
func (m *metrics) attempt(a record.Attempt, reason string) {
	class := "none"
	if a.Status > 0 {
		class = strconv.Itoa(a.Status/100) + "xx"
	}
	m.attempts.WithLabelValues(string(a.Outcome), reason, class, m.d.eventTypes.label(a.EventType)).Inc()
}

// Describe is prometheus.Collector.
func (m *metrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.owned, m.lease, m.inFlight, m.slots, m.hosts, m.lanes, m.buffered, m.backlog, m.oldest, m.paused, m.parked, m.waiting, m.overdue, m.stopped, m.uncommitted} {
		to <- d
	}
}

// Collect is prometheus.Collector: it asks each number.
func (m *metrics) Collect(to chan<- prometheus.Metric) {
	gauge := func(desc *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, v, labels...)
	}
	sum, owned := m.d.inventory()
	gauge(m.owned, float64(owned))
	if member, _, ok := m.d.membership(); ok {
		if age, ok := m.d.lease.age(member, time.Now()); ok {
			gauge(m.lease, age.Seconds())
		}
	}
	gauge(m.inFlight, float64(sum.inFlight))
	gauge(m.slots, float64(m.d.slots.inUse(proven)), "proven")
	gauge(m.slots, float64(m.d.slots.inUse(suspect)), "suspect")
	gauge(m.slots, float64(m.d.slots.left()), "free")
	gauge(m.hosts, float64(m.d.hosts.waiting()))
	gauge(m.lanes, float64(sum.lanes))
	gauge(m.buffered, float64(sum.bytes))
	gauge(m.backlog, float64(sum.backlog))
	gauge(m.oldest, sum.oldest.Seconds())
	gauge(m.uncommitted, sum.uncommitted.Seconds())
	gauge(m.paused, float64(sum.paused))
	gauge(m.parked, float64(sum.parked))
	for tier, n := range sum.waiting {
		gauge(m.waiting, float64(n), topology.TierName(tier))
	}
	for why, n := range sum.stopped {
		gauge(m.stopped, float64(n), why)
	}
	for tier, n := range sum.overdue {
		gauge(m.overdue, float64(n), topology.TierName(tier))
	}
}
