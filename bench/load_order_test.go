package bench

import (
	"strconv"
	"testing"
	"time"
)

// Webhooks have their turns one after the other, in equal steps of time, and the last
// of each turn are the bad ones.
func TestLoadOrder(t *testing.T) {
	l := newLoad(10, 2, 1000, 40)
	of, good := map[string]int{}, 0
	for i := range l.cameAt {
		of[l.webhook(i)]++
		if want := time.Duration(i) * time.Millisecond; l.due(i) != want {
			t.Errorf("event %d is due at %s, want %s", i, l.due(i), want)
		}
		if l.good(i) {
			good++
		}
		if bad := l.webhook(i) == webhookID(8) || l.webhook(i) == webhookID(9); l.good(i) == bad {
			t.Errorf("event %d to %s: good is %v", i, l.webhook(i), l.good(i))
		}
	}
	if len(of) != 10 || good != 32 {
		t.Errorf("%d good ones, by webhook %v", good, of)
	}
	for webhook, n := range of {
		if n != 4 {
			t.Errorf("%s gets %d", webhook, n)
		}
	}
}

// What is measured is what the good webhooks got within the window: latency by when an
// event was due, rate by when it came; each event once.
func TestSample(t *testing.T) {
	ms := time.Millisecond
	l := newLoad(2, 1, 1000, 100) // even ones are good: due at 0, 2, 4 ms...
	l.start = time.Now()
	for i := range 100 {
		took := 5 * ms
		switch {
		case i == 96: // the latest of the window [40, 100) does not come
			continue
		case i == 50:
			took = 20 * ms
		case i%2 == 1: // what bad ones do counts for nothing
			took = time.Second
		}
		l.arrived(strconv.Itoa(i), l.start.Add(l.due(i)+took))
		l.arrived(strconv.Itoa(i), l.start.Add(l.due(i)+time.Hour)) // again
	}
	for _, strange := range []string{"", "x", "-1", "100", "queued-3"} {
		l.arrived(strange, l.start)
	}
	if n := l.came.Load(); n != 99 {
		t.Errorf("%d came", n)
	}
	s := l.sample(40*ms, 100*ms, 200*ms)
	// Due in the window: 40, 42, ... 98, which is 30. Came in it: due from 36 (at 41) to 94
	// (at 99), which is 30.
	if s.missing != 1 || s.due != 500 || s.rate != 500 || s.p50 != 5*ms || s.p99 != 104*ms {
		t.Errorf("got %+v: %v", s, s)
	}
	if s := l.sample(40*ms, 90*ms, 200*ms); s.missing != 0 || s.p99 != 20*ms {
		t.Errorf("got %+v", s)
	}
}
