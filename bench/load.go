package bench

import (
	"fmt"
	"strconv"
	"sync/atomic"
	"time"
)

// load is a stream of events to webhooks in turn: event i goes to webhook i modulo
// their number. It is open: what is due is sent, whatever has become of what was sent
// before, and an event's latency counts from when it was due. (A load that waits for
// answers hides what it waits for.)
type load struct {
	webhooks, bad int // the last of each turn are the bad ones
	rate          float64
	start         time.Time
	cameAt        []atomic.Int64 // of each event, first: ns after start; 0: not yet
	came          atomic.Int64   // events that came
}

func newLoad(webhooks, bad int, rate float64, events int) *load {
	return &load{webhooks: webhooks, bad: bad, rate: rate, cameAt: make([]atomic.Int64, events)}
}

// webhook is whose event i is.
func (l *load) webhook(i int) string { return webhookID(i % l.webhooks) }

func webhookID(i int) string { return fmt.Sprintf("bench-%03d", i) }

// good: whether event i is to a webhook that is never bad. The bad ones are the last
// in each turn.
func (l *load) good(i int) bool { return i%l.webhooks < l.webhooks-l.bad }

// due is when event i is to be sent, after the start.
func (l *load) due(i int) time.Duration {
	return time.Duration(float64(i) / l.rate * float64(time.Second))
}

// arrived notes a request. A second one for the same event counts for nothing.
func (l *load) arrived(event string, at time.Time) {
	i, err := strconv.Atoi(event)
	if err != nil || i < 0 || i >= len(l.cameAt) {
		return
	}
	if l.cameAt[i].CompareAndSwap(0, max(1, int64(at.Sub(l.start)))) {
		l.came.Add(1)
	}
}

// waiting is how many have not come to good webhooks.
func (l *load) waiting() (n int) {
	for i := range l.cameAt {
		if l.good(i) && l.cameAt[i].Load() == 0 {
			n++
		}
	}
	return n
}

// sample is what the good webhooks saw of a window of a load.
type sample struct {
	due      float64 // events per second that were due in the window
	rate     float64 // ... and that came in it
	p50, p99 time.Duration
	missing  int // due in the window, and not come yet
}

// sample looks at the good webhooks between two times after the start. What has not
// come by now counts as if it came now.
func (l *load) sample(from, to, now time.Duration) sample {
	var s sample
	var latencies []time.Duration
	inside := 0
	for i := range l.cameAt {
		if !l.good(i) {
			continue
		}
		due, came := l.due(i), time.Duration(l.cameAt[i].Load())
		if came >= from && came < to {
			inside++
		}
		if due < from || due >= to {
			continue
		}
		if came == 0 {
			s.missing++
			came = now
		}
		latencies = append(latencies, max(0, came-due))
	}
	s.due = float64(len(latencies)) / (to - from).Seconds()
	s.rate = float64(inside) / (to - from).Seconds()
	s.p50, s.p99 = percentile(latencies, 50), percentile(latencies, 99)
	return s
}
