package crash_test

import (
	"syscall"
	"time"

	"github.com/reenvio/reenvio/e2e/history"
	"github.com/reenvio/reenvio/e2e/procs"
	"github.com/reenvio/reenvio/internal/kafkatest"
)

// freeze stops a process where it is (SIGSTOP), with much in its lanes, which it would
// go on to send if it did not look at its lease. To the others it is a crash, and it may
// cost what one costs. That it goes on later (SIGCONT) may cost nothing: no request of
// it begins then. (One that was past its look at the lease, and not yet written, would;
// that is a matter of microseconds.)
func (w *world) freeze(p *procs.Process) time.Time {
	w.T.Helper()
	answer := func(s kafkatest.Script) {
		for id := range w.Rules {
			w.Receiver.Answer(id, s)
		}
	}
	answer(kafkatest.After(time.Second, failSome))
	defer answer(failSome)
	w.Pause(4 * time.Second)
	from := time.Now()
	w.Must(p.Signal(syscall.SIGSTOP), "stopping a dispatcher")
	i := history.Incident{Kind: "stop", Instance: p.Instance, From: from, To: time.Now()}
	w.stops = append(w.stops, procs.Crash{Incident: i, Process: p})
	return from
}

// thaw lets it go on when a minute has passed (on the embedded broker, where the wait
// shows no more, less), and waits until it delivers again, as a member like any other.
func (w *world) thaw(p *procs.Process) {
	w.T.Helper()
	long := 20 * time.Second
	if w.Cluster.OnApache() {
		long = time.Minute
	}
	w.Pause(time.Until(w.stops[0].From.Add(long)))
	w.Must(p.Signal(syscall.SIGCONT), "letting a dispatcher go on")
	w.delivering(w.Membership("a", "b"), time.Now())
}
