package dispatcher

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
)

// Whatever is taken, kept, given and dropped in whatever order: never more than the limit are in use, nobody waits while
// there is room, those that wait get theirs in the order in which they asked, and nothing is lost.
func TestHostPlaces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 3).Draw(t, "limit")
		s := newHosts(limit)
		numbers := []*number{waiter(), waiter()}
		names := []string{"a.example", "b.example"}
		inUse := map[string]int{}
		line := map[string][]claimant{} // who waits, or has one kept, by host, in order
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			c := claimant{rapid.SampledFrom(numbers).Draw(t, "number"), rapid.SampledFrom([]string{"u", "v", "w"}).Draw(t, "webhook")}
			name := rapid.SampledFrom(names).Draw(t, "host")
			switch rapid.SampledFrom([]string{"take", "take", "take", "take in vain", "give", "give", "pass on", "leave"}).Draw(t, "what") {
			case "take":
				if s.take(c.n, c.webhook, name) {
					inUse[name]++
				}
			case "take in vain":
				if s.take(c.n, c.webhook, name) {
					s.give(name)
				}
			case "give":
				if inUse[name] > 0 {
					inUse[name]--
					s.give(name)
				}
			case "pass on":
				for _, claim := range s.claims {
					if claim.n == c.n && claim.kept {
						s.tell(claim)
					}
				}
				s.passOn(c.n)
			case "leave":
				s.leave(c.n)
			}
			for _, name := range names {
				var waiting, kept []claimant
				for c, claim := range s.claims {
					switch {
					case claim.host != name:
					case claim.kept:
						kept = append(kept, c)
					default:
						waiting = append(waiting, c)
					}
				}
				used := 0
				if h := s.hosts[name]; h != nil {
					used = h.used
				}
				if used != inUse[name]+len(kept) || used > limit {
					t.Fatalf("%s: %d are counted; %d are in use, and %d kept, of %d", name, used, inUse[name], len(kept), limit)
				}
				if len(waiting) > 0 && used < limit {
					t.Fatalf("%s: %d wait, and only %d of %d are in use", name, len(waiting), used, limit)
				}
				line[name] = slices.DeleteFunc(line[name], func(c claimant) bool { return !slices.Contains(waiting, c) && !slices.Contains(kept, c) })
				for i, c := range line[name] { // who came earlier does not wait while a later one has one
					for _, later := range line[name][i+1:] {
						if slices.Contains(waiting, c) && slices.Contains(kept, later) {
							t.Fatalf("%s was passed over", c.webhook)
						}
					}
				}
				for _, c := range waiting {
					if !slices.Contains(line[name], c) {
						line[name] = append(line[name], c)
					}
				}
			}
		}
		for name, n := range inUse {
			for range n {
				s.give(name)
			}
		}
		for _, n := range numbers {
			s.leave(n)
		}
		if len(s.hosts) != 0 || len(s.claims) != 0 || len(s.kept) != 0 || s.waiting() != 0 {
			t.Fatalf("left are %v, %v and %v", s.hosts, s.claims, s.kept)
		}
	})
}

// A place that comes free in the middle of a turn, after the number has looked, is not passed on at its end: the webhook
// would begin at the end of the line again, turn after turn.
func TestHostPlaceThatIsNotKnownYet(t *testing.T) {
	s := newHosts(1)
	n, other := waiter(), waiter()
	if !s.take(other, "v", "a.example") || s.take(n, "w", "a.example") {
		t.Fatal("there is one place, for the first")
	}
	s.give("a.example")
	s.passOn(n)
	if s.take(other, "v", "a.example") || !s.take(n, "w", "a.example") {
		t.Error("it went to one that came later")
	}
}

// running is how many requests ran at once at the most, of all that a receiver got since a time.
func running(r *kafkatest.Receiver, since time.Time) (most int) {
	all := slices.DeleteFunc(r.Requests(), func(q kafkatest.Request) bool { return q.Start.Before(since) })
	for _, q := range all {
		n := 0
		for _, other := range all {
			if !other.Start.After(q.Start) && (other.End.IsZero() || other.End.After(q.Start)) {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// noneLeft checks that nothing is in use at any host, nor kept, nor waited for.
func (p *process) noneLeft() {
	p.w.t.Helper()
	p.d.hosts.mu.Lock()
	defer p.d.hosts.mu.Unlock()
	if len(p.d.hosts.hosts) != 0 || len(p.d.hosts.claims) != 0 {
		p.w.t.Errorf("left are %v and %v", p.d.hosts.hosts, p.d.hosts.claims)
	}
}

// A host that is full delays its own webhooks, which take turns over all numbers, and nobody else.
func TestMaxPerHost(t *testing.T) {
	inWorld(t, 4, kafkatest.After(time.Second, kafkatest.Always(200)), func(t *testing.T, w *world) {
		const limit, events = 3, 20
		other := w.cluster.Receiver(t, kafkatest.Always(200))
		var full []string
		for i := range 6 {
			full = append(full, fmt.Sprint("w", i))
			w.webhook(full[i], inOrder(record.OrderNone)) // up to eight at once, if it might
		}
		w.webhook("else", func(e *record.Endpoint) { e.URL = other.URL("else") })
		a := w.start("a", func(o *Options) { o.Config.MaxPerHost = limit })
		a.owns(0, 1, 2, 3)
		began := time.Now()
		w.send(full[0], 0, 10*events) // it has much more queued than the others
		for _, id := range full[1:] {
			w.send(id, 0, events)
		}
		time.Sleep(time.Second)
		sent := time.Now()
		w.send("else", 0, 50)
		w.until("the other host's are delivered", func() bool { return len(other.Requests()) == 50 })
		if took := time.Since(sent); took > time.Second {
			t.Errorf("the other host's have waited %s", took)
		}
		if n := a.metric("host_waiting"); n < 3 || n > 6 {
			t.Errorf("%v webhooks are said to wait", n)
		}
		time.Sleep(29 * time.Second)
		for _, id := range full {
			if n := len(w.receiver.Of(id)); n < 12 || n > 20 { // of 30 s with three at once, for six; the first had them for itself for a second
				t.Errorf("%s has got %d in %s", id, n, time.Since(began))
			}
		}
		w.until("all are delivered", func() bool { return len(w.receiver.Requests()) == 15*events })
		if most := running(w.receiver, began); most != limit {
			t.Errorf("%d ran at once, want %d", most, limit)
		}
		a.quiesce()
		time.Sleep(2 * time.Second)
		a.noneLeft()
	})
}

// Webhooks are paused, resumed, deleted and moved to another host while they wait for a full one; tests are sent; requests
// panic, are cut, and numbers go to another process: the limit holds, and no place is lost.
func TestMaxPerHostThroughChanges(t *testing.T) {
	inWorld(t, 3, kafkatest.After(2*time.Second, kafkatest.FailSome(0.3, 1)), func(t *testing.T, w *world) {
		const limit, events = 2, 6
		other := w.cluster.Receiver(t, kafkatest.After(2*time.Second, kafkatest.Always(200)))
		var all []string
		for i := range 8 {
			all = append(all, fmt.Sprint("w", i))
			w.webhook(all[i], inOrder([]record.Ordering{record.OrderNone, record.OrderStrict}[i%2]), neverPauses)
		}
		few := func(o *Options) {
			o.Config.MaxPerHost, o.Config.MaxInFlight, o.Config.DrainTimeout = limit, 4, time.Second
		} // slots are few as well
		a := w.start("a", few)
		a.owns(0, 1, 2)
		began := time.Now()
		for _, id := range all {
			w.send(id, 0, events)
		}
		time.Sleep(3 * time.Second)
		w.do("w0", record.ActionPause)
		w.do("w1", record.ActionPause)
		w.delete("w2")
		w.change("w3", func(e *record.Endpoint) { e.URL = other.URL("w3") })
		w.hold(record.HoldAll, "")
		time.Sleep(4 * time.Second)
		a.noneLeft()
		w.release(record.HoldAll, "")
		w.do("w0", record.ActionTest)
		time.Sleep(3 * time.Second)
		for p := range w.topo.Partitions() {
			a.number(p).cut("for the test")
		}
		w.do("w0", record.ActionResume)
		w.do("w1", record.ActionResume)
		time.Sleep(5 * time.Second)
		if most := running(w.receiver, began); most != limit {
			t.Errorf("%d ran at once, want %d", most, limit)
		}
		if most := running(other, began); most > limit {
			t.Errorf("%d ran at once at the other host", most)
		}
		b := w.start("b", few) // takes a number
		w.until("b has one", func() bool { return b.has(0) || b.has(1) || b.has(2) })
		time.Sleep(10 * time.Second)
		a.stop()
		<-a.ended
		b.owns(0, 1, 2)
		alone := time.Now()
		w.until("all have ended", func() bool {
			n := len(w.dead())
			for _, id := range all {
				n += len(w.delivered(id))
			}
			return n == len(all)*events
		})
		if most := running(w.receiver, alone); most > limit {
			t.Errorf("%d ran at once, want %d", most, limit)
		}
		for _, id := range all {
			w.oneChain(id)
		}
		b.quiesce()
		time.Sleep(time.Minute)
		a.noneLeft()
		b.noneLeft()
	})
}

// A webhook gets a place at its host and does not need it: its event has expired, it was paused, before it had a place or
// while it waits for a slot. The next one gets the place; also while a test waits for a slot.
func TestHostPlaceIsPassedOn(t *testing.T) {
	slow := kafkatest.After(10*time.Second, kafkatest.Always(200))
	for name, c := range map[string]struct {
		slots int
		busy  func(w *world) // makes the first wait
		idle  func(w *world) // and leaves it nothing to send
	}{
		"expired": {100, func(w *world) {
			w.send("busy", 0, 1)
			time.Sleep(time.Second)
			w.sendUntil("first", 1, record.At(time.Now().Add(2*time.Second)).String())
		}, func(*world) {}},
		"paused": {100, func(w *world) {
			w.send("busy", 0, 1)
			time.Sleep(time.Second)
			w.send("first", 1, 1)
		}, func(w *world) { w.do("first", record.ActionPause) }},
		"paused without a slot": {2, func(w *world) {
			w.send("else", 1, 1)
			w.send("elsewhere", 1, 1)
			time.Sleep(time.Second)
			w.send("first", 1, 1)
		}, func(w *world) { w.do("first", record.ActionPause) }},
		"tested without a slot": {2, func(w *world) {
			w.send("else", 1, 1)
			w.send("elsewhere", 1, 1)
			time.Sleep(time.Second)
			w.produceCommand(record.Command{ID: "test", Webhook: "first", Action: record.ActionTest})
		}, func(*world) {}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
				for _, id := range []string{"busy", "first", "second"} {
					w.webhook(id)
				}
				hosts := map[string]*kafkatest.Receiver{}
				for _, id := range []string{"else", "elsewhere"} { // a host each
					hosts[id] = w.cluster.Receiver(t, kafkatest.Always(200))
					w.webhook(id, func(e *record.Endpoint) { e.URL = hosts[id].URL(id) })
				}
				a := w.start("a", func(o *Options) { o.Config.MaxPerHost, o.Config.MaxInFlight = 1, c.slots })
				a.owns(0)
				for _, id := range []string{"first", "second", "else", "elsewhere"} { // they are proven
					w.send(id, 0, 1)
					w.until("it is delivered", func() bool { return len(w.delivered(id)) == 1 })
				}
				w.receiver.Answer("busy", slow)
				for id, host := range hosts {
					host.Answer(id, slow)
				}
				c.busy(w)
				time.Sleep(time.Second)
				w.send("second", 1, 1)
				time.Sleep(time.Second)
				c.idle(w)
				if n := len(w.receiver.Of("second")); n != 1 {
					t.Fatalf("%d requests, want that it waits", n)
				}
				time.Sleep(30 * time.Second)
				if n := len(w.delivered("second")); n != 2 {
					t.Errorf("%d of the next are delivered", n)
				}
				a.quiesce()
				a.noneLeft()
			})
		})
	}
}

// Dead webhooks of other hosts have all the slots that those may have which were never tried. One of these, which must wait for
// a slot, holds no place at its host meanwhile: its neighbours, which answer well, go on.
func TestWhoWaitsForASlotHoldsNoPlace(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("proven")
		untried := []string{"u0", "u1", "u2"}
		for i, id := range untried {
			w.webhook(id)
			dead := fmt.Sprint("dead", i)
			host := w.cluster.Receiver(t, kafkatest.After(25*time.Second, kafkatest.Always(500)))
			w.webhook(dead, neverPauses, func(e *record.Endpoint) { e.URL = host.URL(dead) })
		}
		a := w.start("a", func(o *Options) { o.Config.MaxPerHost, o.Config.MaxInFlight = 1, 4 })
		a.owns(0)
		w.send("proven", 0, 1)
		for i := range untried {
			w.send(fmt.Sprint("dead", i), 0, 10)
		}
		time.Sleep(time.Minute)
		for _, id := range untried {
			w.send(id, 0, 1)
		}
		const events = 600
		var sent []time.Time
		for i := range events {
			sent = append(sent, time.Now())
			w.send("proven", 1+i, 1)
			time.Sleep(100 * time.Millisecond)
		}
		w.until("all are delivered", func() bool {
			return len(w.delivered("proven")) == 1+events && len(w.delivered("u0"))+len(w.delivered("u1"))+len(w.delivered("u2")) == 3
		})
		for i, r := range w.receiver.Of("proven")[1:] {
			if took := r.Start.Sub(sent[i]); took > 100*time.Millisecond {
				t.Fatalf("event %d has waited %s", i, took)
			}
		}
		if first := w.receiver.Of("u0")[0].Start.Sub(sent[0]); first < time.Second {
			t.Errorf("one that was never tried has waited %s: this test shows nothing", first)
		}
	})
}
