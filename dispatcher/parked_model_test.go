package dispatcher

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/reenvio/reenvio/internal/record"
)

// step is one thing that can happen, and how often it does.
type step struct {
	weight int
	name   string
	do     func(t *rapid.T)
}

func (s *shelf) steps() []step {
	return []step{
		{3, "some events arrive", func(t *rapid.T) {
			w := s.webhook()
			for range rapid.IntRange(1, 5).Draw(t, "n") {
				s.arrive(w.id)
			}
		}},
		{1, "many events arrive", func(*rapid.T) {
			w := s.webhook()
			for range drainLane + 7 {
				s.arrive(w.id)
			}
		}},
		{2, "pause", func(*rapid.T) { s.n.pause(s.now, s.webhook(), record.PauseManual) }},
		{4, "resume", func(*rapid.T) { w := s.webhook(); s.n.unpause(s.now, w, record.PauseManual); s.n.forget(w) }},
		{1, "park a lane", func(*rapid.T) {
			if w := s.webhook(); w.parkable() {
				s.n.parkQueue(s.now, w, record.ParkBehind)
			}
		}},
		{6, "start", func(*rapid.T) { s.start(s.webhook()) }},
		{6, "finish", func(t *rapid.T) {
			s.finish(s.webhook(), rapid.IntRange(0, 1).Draw(t, "which"), rapid.SampledFrom([]string{"delivered", "delivered", "failed", "cut"}).Draw(t, "how"))
		}},
		{2, "freeze", func(*rapid.T) { s.freeze() }},
		{3, "commit", func(*rapid.T) { s.commit() }},
		{1, "abort", func(*rapid.T) { s.abort() }},
		{3, "the number is told", func(*rapid.T) { s.land() }},
		{4, "a whole cycle", func(*rapid.T) { s.freeze(); s.commit(); s.land() }},
		{4, "a pass begins", func(*rapid.T) { s.beginPass() }},
		{6, "the pass reads on", func(t *rapid.T) { s.readOn(rapid.Int64Range(1, 20).Draw(t, "size")) }},
		{2, "the pass reads much", func(*rapid.T) { s.readOn(500) }},
		{1, "the pass breaks off", func(*rapid.T) {
			if s.n.parked.running {
				s.n.passEnded()
			}
		}},
		{4, "a sweep begins", func(t *rapid.T) { s.beginSweep(time.Duration(rapid.IntRange(1, 6).Draw(t, "age")) * time.Second) }},
		{4, "the sweep reads on", func(t *rapid.T) { s.sweepOn(rapid.Int64Range(1, 20).Draw(t, "size")) }},
		{2, "the sweep reads much", func(*rapid.T) { s.sweepOn(500) }},
		{3, "who may sleep falls asleep", func(*rapid.T) { s.doze() }},
		{1, "the process restarts", func(*rapid.T) { s.restart() }},
	}
}

// Whatever happens in whatever order, nothing parked is lost, nothing is sent
// twice, all leaves in order, and what the state says is enough to begin again.
func TestParkedModel(t *testing.T) {
	d := testDispatcher(t)
	rapid.Check(t, func(t *rapid.T) {
		s := newShelf(t, d)
		var weighted []step
		for _, one := range s.steps() {
			for range one.weight {
				weighted = append(weighted, one)
			}
		}
		which := rapid.IntRange(0, len(weighted)-1)
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			one := weighted[which.Draw(t, "step")]
			t.Log(one.name)
			one.do(t)
			s.check()
		}
		s.empty()
	})
}

// doze makes all dormant that may be, as if nobody had asked for them for long.
func (s *shelf) doze() {
	for range 2 {
		s.n.dozeAt = time.Time{}
		s.n.fallAsleep(s.now)
	}
	for id, e := range s.n.endpoints.entries {
		if e.dormant != nil {
			e.opened = &opened{config: record.Endpoint{ID: id}} // the record here is none that could be read
		}
	}
}

// empty lets everything leave.
func (s *shelf) empty() {
	for _, id := range s.ids {
		s.n.unpause(s.now, s.n.webhook(id), record.PauseManual)
	}
	for range 10_000 {
		s.freeze()
		s.commit()
		s.land()
		s.beginPass()
		s.readOn(100)
		s.sweepOn(100)
		idle := true
		for _, id := range s.ids {
			w := s.n.webhook(id)
			s.finish(w, 1, "delivered")
			s.finish(w, 0, "delivered")
			for s.start(w) {
				idle = false
				s.finish(w, 0, "delivered")
			}
			s.n.forget(w)
			idle = idle && len(s.left(id)) == 0
		}
		s.check()
		if idle && s.n.out.empty() && len(s.landings) == 0 {
			return
		}
	}
	s.t.Fatalf("left after all was resumed: %v %v", s.left("a"), s.left("b"))
}
