package chaos_test

import (
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/reenvio/reenvio/e2e/procs"
)

// slot is the place of one dispatcher, with its supervisor.
type slot struct {
	instance string
	mu       sync.Mutex // held while something is done to it
	p        *procs.Process
}

func (s *slot) start(w *world) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.p = w.Start(s.instance)
}

// hurt does a fault to the process.
func (s *slot) hurt(w *world, f fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.p != nil && s.p.HasEnded() { // its supervisor was about to
		s.p = w.Start(s.instance)
	}
	switch f.kind {
	case killed:
		s.p.Kill()
		w.rest(f.length)
		s.p = w.Start(s.instance)
	case ended:
		if w.inFlight() > 0 {
			w.did(stoppedBusy)
		}
		s.stop()
		w.rest(f.length)
		s.p = w.Start(s.instance)
	case stopped:
		w.Must(s.p.Signal(syscall.SIGSTOP), "stopping a dispatcher")
		w.rest(f.length)
		w.Must(s.p.Signal(syscall.SIGCONT), "letting a dispatcher go on")
	case joined:
		s.p = w.Start(s.instance)
		w.rest(f.length)
		if f.kill {
			s.p.Kill()
		} else {
			s.stop()
		}
		s.p = nil
	case churned:
		const every = 5 * time.Second
		for until := time.Now().Add(f.length); time.Until(until) > every && w.Ctx.Err() == nil; {
			s.p = w.Start(s.instance)
			w.rest(every)
			s.stop()
			w.rest(every)
		}
		s.p = nil
	default:
		panic("not done to a dispatcher: " + f.kind)
	}
}

// stop ends the process in good order, unless it has ended by itself.
func (s *slot) stop() {
	if !s.p.HasEnded() {
		s.p.Stop()
	}
}

// inFlight is how many requests are at the receiver.
func (w *world) inFlight() (n int) {
	for _, q := range w.Receiver.Requests() {
		if q.End.IsZero() {
			n++
		}
	}
	return n
}

// end is one of a process that nobody asked for.
type end struct {
	p   *procs.Process
	at  time.Time
	why string // its last words
}

// onEnd starts a process again that ended by itself, as a supervisor does.
func (w *world) onEnd(p *procs.Process, how string) {
	lines := p.Lines()
	why := how
	if len(lines) > 0 {
		why += ": " + lines[len(lines)-1]
	}
	w.mu.Lock()
	w.unasked = append(w.unasked, end{p, time.Now(), why})
	w.mu.Unlock()
	go func() {
		w.rest(time.Second)
		s := w.slots[p.Instance]
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.p == p && w.Ctx.Err() == nil {
			s.p = w.Start(p.Instance)
		}
	}()
}

// panicked says whether the process died of a fault of the program.
func panicked(p *procs.Process) (string, bool) {
	for _, line := range p.Lines() {
		if strings.HasPrefix(line, "panic:") || strings.HasPrefix(line, "fatal error:") || strings.HasPrefix(procs.Message([]byte(line)), "panic over") {
			return line, true
		}
	}
	return "", false
}
