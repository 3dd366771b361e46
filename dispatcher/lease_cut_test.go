package dispatcher

import (
	"testing"
	"time"

	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
)

// A dispatcher that is cut off from the brokers, and not from the endpoints, falls
// silent: no request starts after half the session timeout, and what is in flight
// is cancelled when all of it has passed, before a successor can own its numbers.
// Back again, it doubles nothing.
func TestCutOff(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		patient := func(e *record.Endpoint) { e.Timeout = record.Duration(2 * time.Minute) }
		w.webhook("busy", neverPauses)
		w.receiver.Answer("busy", kafkatest.After(100*time.Millisecond, kafkatest.FailSome(0.3, 1)))
		w.webhook("slow", patient)
		w.receiver.Answer("slow", kafkatest.After(30*time.Second, kafkatest.Always(200)))
		// Requests go on for as long as nothing stops them.
		a := w.start("a", func(o *Options) { o.Config.MaxUncommitted = 30 * time.Second })
		a.owns(0)
		b := w.start("b")
		w.send("busy", 0, 200)
		time.Sleep(3 * time.Second)
		w.send("slow", 0, 1)
		w.until("the slow one is sent to", func() bool { return len(w.receiver.Of("slow")) == 1 })
		a.host.Cut(w.cluster.Brokers...)
		cut := time.Now()
		b.owns(0)
		taken := time.Now()
		time.Sleep(20 * time.Second)
		a.host.Heal(w.cluster.Brokers...)
		w.until("all are delivered", func() bool { return len(w.delivered("busy")) == 200 && len(w.delivered("slow")) == 1 })
		time.Sleep(time.Minute)

		var last, first time.Time // start of the last by a, of the first by b
		for i, r := range w.receiver.Requests() {
			if gap := r.Start.Sub(last); i > 0 && gap > 2*time.Second && r.Start.After(cut) && first.IsZero() {
				first = r.Start
			}
			if first.IsZero() {
				last = r.Start
			}
		}
		if silent := last.Sub(cut); silent < 2*time.Second || silent > leaseTime {
			t.Errorf("the last request started %s after the cut, want at most %s (and more than a little)", silent, leaseTime)
		}
		if first.Before(cut.Add(sessionTimeout - 2*time.Second)) {
			t.Errorf("the successor sent %s after the cut", first.Sub(cut))
		}
		slow := w.receiver.Of("slow")[0]
		if ran := slow.End.Sub(cut); slow.Status != 0 || ran > sessionTimeout {
			t.Errorf("the request in flight ended %s after the cut with status %d, want it cancelled within %s", ran, slow.Status, sessionTimeout)
		}
		if slow.End.After(taken) {
			t.Errorf("it was in flight until %s after the successor had begun", slow.End.Sub(taken))
		}
		w.oneChain("busy")
		w.oneChain("slow")
	})
}

// A sign of life counts from when it was sent: the coordinator's clock may have started there, and the answer came later.
func TestLeaseCountsFromSending(t *testing.T) {
	inWorld(t, 1, kafkatest.After(time.Minute, kafkatest.Always(200)), func(t *testing.T, w *world) {
		w.webhook("w", func(e *record.Endpoint) { e.Timeout = record.Duration(2 * time.Minute) })
		a := w.start("a")
		a.owns(0)
		a.quiesce()
		a.host.Delay(400*time.Millisecond, w.cluster.Brokers...)
		w.send("w", 0, 1)
		w.until("it is sent", func() bool { return len(w.receiver.Of("w")) == 1 })
		time.Sleep(5 * time.Second)
		member, _ := a.d.group.GroupMetadata()
		for before := time.Duration(0); ; { // until an answer has just come
			time.Sleep(time.Millisecond)
			age, _ := a.d.lease.age(member, time.Now())
			if age < before {
				break
			}
			before = age
		}
		a.host.Cut(w.cluster.Brokers...)
		cut := time.Now()
		time.Sleep(2 * sessionTimeout)
		// What had just been answered was sent 800 ms before.
		if ran := w.receiver.Of("w")[0].End.Sub(cut); ran <= 0 || ran > sessionTimeout-700*time.Millisecond {
			t.Errorf("the request in flight ended %s after the cut", ran)
		}
	})
}

// Over a slow link each heartbeat takes seconds; membership holds, so the lease must too.
func TestLeaseOverASlowLink(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		a := w.start("a")
		a.owns(0)
		a.quiesce()
		_, before := a.d.group.GroupMetadata()
		a.host.Delay(1700*time.Millisecond, w.cluster.Brokers...)
		for range 600 {
			time.Sleep(100 * time.Millisecond)
			if member, _ := a.d.group.GroupMetadata(); !a.d.lease.holds(member, time.Now()) {
				age, _ := a.d.lease.age(member, time.Now())
				t.Fatalf("the lease is %s old, with %s there and back to the coordinator", age, 3400*time.Millisecond)
			}
		}
		if _, generation := a.d.group.GroupMetadata(); generation != before {
			t.Fatal("the group has changed: this test shows nothing")
		}
	})
}
