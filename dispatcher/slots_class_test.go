package dispatcher

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/reenvio/reenvio/internal/kafkatest"
)

// Suspects use half of all at most, and of one number its share of that; the proven use what there is; nothing is lost.
func TestSlotClasses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 20).Draw(t, "size")
		s := newSlots(size)
		numbers := []*number{waiter(), waiter(), waiter()}
		inUse := map[claim]int{}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			c := claim{rapid.SampledFrom(numbers).Draw(t, "number"), slotClass(rapid.IntRange(0, 1).Draw(t, "class"))}
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0, 1:
				if s.take(c.n, c.class) {
					inUse[c]++
				}
			case 2:
				if inUse[c] > 0 {
					inUse[c]--
					s.give(c.n, c.class)
				}
			case 3:
				s.passOn(c.n)
			}
			var used [slotClasses]int
			for c, n := range inUse {
				used[c.class] += n
			}
			half := max(1, size/2)
			if used[proven]+used[suspect] > size || used[suspect] > half {
				t.Fatalf("%d proven and %d suspects are in use, of %d", used[proven], used[suspect], size)
			}
			if s.left() < 0 || s.left() > size-used[proven]-used[suspect] {
				t.Fatalf("%d are said to be free, in use are %v of %d", s.left(), used, size)
			}
		}
		for c, n := range inUse {
			for range n {
				s.give(c.n, c.class)
			}
		}
		for _, n := range numbers {
			s.leave(n)
		}
		if s.left() != size {
			t.Fatalf("%d of %d are free in the end", s.left(), size)
		}
	})
}

// More dead webhooks than there are slots keep no healthy one waiting, nor for long one that was never tried.
func TestManyDeadWebhooks(t *testing.T) {
	inWorld(t, 2, kafkatest.Always(200), func(t *testing.T, w *world) {
		const slots, dead = 40, 100
		w.webhook("healthy")
		a := w.start("a", func(o *Options) { o.Config.MaxInFlight = slots })
		a.owns(0, 1)
		w.send("healthy", 0, 1)
		w.until("the healthy one is known", func() bool { return len(w.delivered("healthy")) == 1 })
		for i := range dead {
			id := fmt.Sprintf("dead%d", i)
			w.webhook(id, neverPauses)
			w.receiver.Answer(id, hangs)
			w.send(id, 0, 3)
		}
		time.Sleep(2 * time.Minute) // all of them have hung before
		if used := a.d.slots.inUse(suspect); used == 0 || used > slots/2 {
			t.Errorf("%d slots are in use by the dead", used)
		}
		for i := range 50 {
			sent := time.Now()
			w.send("healthy", 1+i, 1)
			w.until("the healthy one is served", func() bool { return len(w.receiver.Of("healthy")) == 2+i })
			if took := time.Since(sent); took > 500*time.Millisecond {
				t.Errorf("event %d waited %s", 1+i, took)
			}
		}
	})
}

// With one slot for all, a slow and dead webhook in one number keeps no healthy one in another from being sent to.
func TestOneSlot(t *testing.T) {
	inWorld(t, 2, kafkatest.Always(200), func(t *testing.T, w *world) {
		ids := w.onEach(2, neverPauses)
		w.receiver.Answer(ids[0], kafkatest.After(5*time.Second, kafkatest.Always(500)))
		a := w.start("a", func(o *Options) { o.Config.MaxInFlight = 1 })
		a.owns(0, 1)
		w.send(ids[0], 0, 50)
		w.send(ids[1], 0, 50)
		w.until("all are delivered", func() bool { return len(w.delivered(ids[1])) == 50 })
		time.Sleep(time.Hour)
		if n := a.d.slots.left(); n != 1 || len(w.dead()) != 50 {
			t.Errorf("%d left, %d dead", n, len(w.dead()))
		}
	})
}
