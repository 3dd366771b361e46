package dispatcher

import (
	"encoding/binary"
	"hash/crc32"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
)

// clock is a machine's clock in a bubble: its wall clock can be set, and what is
// measured by its monotonic reading goes on as it did. (The bubble's own times have
// none.)
type clock struct {
	born  time.Time
	ahead atomic.Int64 // of the bubble's
}

func newClock(ahead time.Duration) *clock {
	c := &clock{born: time.Now()}
	c.set(ahead)
	return c
}

func (c *clock) set(ahead time.Duration) { c.ahead.Store(int64(ahead)) }

func (c *clock) now() time.Time {
	now := time.Now()
	return withMonotonic(now.Add(time.Duration(c.ahead.Load())), now.Sub(c.born)+time.Second)
}

// withMonotonic is t with a monotonic reading, as package time lays it out.
func withMonotonic(t time.Time, reading time.Duration) time.Time {
	const since1885 = 1<<63 | 2682288000<<30 // the mark of a monotonic reading, and the seconds from 1885 to 1970
	type layout struct {
		wall uint64
		ext  int64
		loc  *time.Location
	}
	l := layout{wall: since1885 + uint64(t.Unix())<<30 | uint64(t.Nanosecond()), ext: int64(reading), loc: time.Local}
	return *(*time.Time)(unsafe.Pointer(&l))
}

// settable is a clock outside of a bubble: the time after a while, with the wall clock set meanwhile.
func settable(start time.Time) (at func(after, set time.Duration) time.Time) {
	return func(after, set time.Duration) time.Time {
		return withMonotonic(start.Round(0).Add(after+set), time.Second+after)
	}
}

func TestTheTestsClock(t *testing.T) {
	at := time.Date(2026, 2, 3, 4, 5, 6, 789, time.UTC)
	a, b := withMonotonic(at, time.Second), withMonotonic(at.Add(-10*time.Second), 3*time.Second)
	if !a.Round(0).Equal(at) || b.Sub(a) != 2*time.Second || b.Round(0).Sub(a.Round(0)) != -10*time.Second {
		t.Fatalf("%s, %s: %s later, by the wall clock %s", a, b, b.Sub(a), b.Round(0).Sub(a.Round(0)))
	}
}

// clocks are those of the processes, by transactional id.
type clocks struct {
	mu sync.Mutex
	of map[string]*clock
}

// keep has the records that the dispatchers write carry the time of their clocks:
// kgo stamps them with the bubble's.
func (c *clocks) keep(w *world) {
	w.cluster.Fake.ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
		w.cluster.Fake.KeepControl()
		req := r.(*kmsg.ProduceRequest)
		if req.TransactionID == nil {
			return nil, nil, false
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if clock := c.of[*req.TransactionID]; clock != nil {
			for _, topic := range req.Topics {
				for _, p := range topic.Partitions {
					restamp(p.Records, time.Duration(clock.ahead.Load()))
				}
			}
		}
		return nil, nil, false
	})
}

// restamp moves the timestamps of a batch.
func restamp(batch []byte, by time.Duration) {
	for _, at := range []int{27, 35} { // the first and the largest
		binary.BigEndian.PutUint64(batch[at:], binary.BigEndian.Uint64(batch[at:])+uint64(by.Milliseconds()))
	}
	binary.BigEndian.PutUint32(batch[17:], crc32.Checksum(batch[21:], crc32.MakeTable(crc32.Castagnoli)))
}

// start runs a dispatcher on a machine whose clock is ahead.
func (c *clocks) start(w *world, instance string, ahead time.Duration) (*process, *clock) {
	clock := newClock(ahead)
	p := w.start(instance, remembers, func(o *Options) { o.Now = clock.now })
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of[transactionalID(p.d.cfg.Group, instance)] = clock
	return p, clock
}

// steps are by how much the wall clock is set.
var steps = []time.Duration{10 * time.Second, -10 * time.Second, -24 * time.Hour, 24 * time.Hour}

// inClocks is a world whose dispatchers have clocks that can be set.
func inClocks(t *testing.T, f func(t *testing.T, w *world, c *clocks, step time.Duration)) {
	for _, step := range steps {
		t.Run(step.String(), func(t *testing.T) {
			inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
				c := &clocks{of: map[string]*clock{}}
				c.keep(w)
				f(t, w, c, step)
			})
		})
	}
}

// waited checks how long after the end of the request before the one at i came.
func waited(t *testing.T, what string, all []kafkatest.Request, i int, least, most time.Duration) {
	t.Helper()
	if len(all) <= i {
		t.Errorf("%s: %d requests, want more than %d", what, len(all), i)
		return
	}
	if gap := all[i].Start.Sub(all[i-1].End); gap < least || gap > most {
		t.Errorf("%s: request %d came %s after the end of the one before, want %s to %s", what, i, gap, least, most)
	}
}

// What waits inside a process waits as long as it should, however the wall clock is
// set meanwhile; what is written tells the time of the wall clock.
func TestClockIsSetWhileTheyWait(t *testing.T) {
	inClocks(t, func(t *testing.T, w *world, c *clocks, step time.Duration) {
		p, clock := c.start(w, "a", 0)
		p.owns(0)
		schedule := func(e *record.Endpoint) { e.Schedule = []record.Duration{record.Duration(20 * time.Second)} }
		w.webhook("due", schedule)
		w.receiver.Answer("due", kafkatest.FailFirst(1))
		w.webhook("slow", schedule) // its clock is set while the request runs
		w.receiver.Answer("slow", kafkatest.After(10*time.Second, kafkatest.FailFirst(1)))
		w.webhook("short")
		w.receiver.Answer("short", asksToWait(eventID("short", 0), 20*time.Second))
		w.webhook("long")
		w.receiver.Answer("long", asksToWait(eventID("long", 0), time.Minute))
		w.webhook("asks") // late: the clock is set while the request runs
		w.receiver.Answer("asks", kafkatest.After(10*time.Second, asksToWait(eventID("asks", 0), 20*time.Second)))
		w.webhook("rate", func(e *record.Endpoint) { e.RateLimit = 1 })
		w.webhook("paused")
		w.webhook("resumes", func(e *record.Endpoint) { e.AutoResume, e.AutoPauseAfter = record.Duration(time.Minute), new(1) })
		w.receiver.Answer("resumes", kafkatest.FailFirst(1))
		w.do("paused", record.ActionPause)
		for _, id := range []string{"due", "slow", "short", "long", "asks", "resumes", "paused"} {
			w.send(id, 0, 2)
		}
		w.send("rate", 0, 40)
		time.Sleep(5 * time.Second)
		p.quiesce()
		version := w.state("paused").Version
		clock.set(step)
		set := time.Now()
		time.Sleep(15 * time.Second)
		says(t, "live", p.d.Live())
		says(t, "ready", p.d.Ready())
		w.do("paused", record.ActionPause)
		if s := w.state("paused"); s.Version <= version {
			t.Errorf("the state's version went from %d to %d", version, s.Version)
		}
		w.do("paused", record.ActionResume)
		time.Sleep(75 * time.Second)

		waited(t, "retry", w.ofEvent("due", 0), 1, 20*time.Second, 22200*time.Millisecond)
		waited(t, "retry of a slow one", w.ofEvent("slow", 0), 1, 20*time.Second, 22200*time.Millisecond)
		waited(t, "short Retry-After", w.receiver.Of("short"), 1, 20*time.Second, 20200*time.Millisecond)
		waited(t, "long Retry-After", w.receiver.Of("long"), 1, time.Minute, time.Minute+time.Second)
		waited(t, "Retry-After of a slow one", w.receiver.Of("asks"), 1, 20*time.Second, 20200*time.Millisecond)
		late := time.Second
		if step < 0 {
			late -= step // it goes by what is on record
		}
		if late < time.Hour {
			waited(t, "auto_resume", w.ofEvent("resumes", 0), 1, time.Minute, time.Minute+late)
		}
		for i := 1; i < 40; i++ {
			waited(t, "rate limit", w.receiver.Of("rate"), i, 990*time.Millisecond, 1100*time.Millisecond)
		}
		for id, n := range map[string]int{"due": 2, "slow": 2, "short": 2, "long": 2, "asks": 2, "rate": 40, "paused": 2} {
			if got := len(w.delivered(id)); got != n {
				t.Errorf("%s: %d delivered, want %d; state %s", id, got, n, w.state(id).Marshal())
			}
			w.oneChain(id)
		}
		for _, r := range w.receiver.Requests() {
			told, _ := strconv.ParseInt(r.Header.Get("webhook-timestamp"), 10, 64)
			want := r.Start
			if r.Start.After(set) {
				want = want.Add(step)
			}
			if off := time.Unix(told, 0).Sub(want).Abs(); off > time.Second {
				t.Errorf("%s: signed %s beside the time of its dispatcher's clock", r.EventID, off)
			}
		}
		for i, a := range w.attempts("rate") {
			if want := w.receiver.Of("rate")[i].Start; a.StartedAt.Sub(want).Abs() > time.Second && a.StartedAt.Sub(want.Add(step)).Abs() > time.Second {
				t.Errorf("attempt %d is on record as of %s, and began at %s", i, a.StartedAt, want)
			}
		}
	})
}

// ofEvent are the requests of one event.
func (w *world) ofEvent(webhook string, i int) []kafkatest.Request {
	return slices.DeleteFunc(w.receiver.Of(webhook), func(r kafkatest.Request) bool { return r.EventID != eventID(webhook, i) })
}

// What one process wrote, another reads whose clock is ahead or behind: it may come
// early or late by as much, and no later than the schedule allows.
func TestClocksDiffer(t *testing.T) {
	inClocks(t, func(t *testing.T, w *world, c *clocks, step time.Duration) {
		a, _ := c.start(w, "a", 0)
		a.owns(0)
		const delay, hold = 20 * time.Second, 2 * time.Minute
		w.webhook("due", func(e *record.Endpoint) { e.Schedule = []record.Duration{record.Duration(delay)} })
		w.receiver.Answer("due", kafkatest.FailFirst(1))
		w.webhook("held")
		w.receiver.Answer("held", asksToWait(eventID("held", 0), hold))
		w.webhook("done")
		w.webhook("paused")
		w.do("paused", record.ActionPause)
		for _, id := range []string{"due", "held", "done", "paused"} {
			w.send(id, 0, 1)
		}
		time.Sleep(3 * time.Second)
		a.quiesce()
		was := w.state("paused").Version
		a.stop()
		if err := a.wait(); err != nil {
			t.Fatal(err)
		}
		b, _ := c.start(w, "b", step)
		b.owns(0)
		w.send("done", 0, 1)
		w.until("the second copy has ended", func() bool { return len(w.attempts("done")) == 2 })
		if copies := len(w.receiver.Of("done")); step < 10*time.Minute && copies != 1 {
			t.Error("the second copy was delivered")
		}
		w.do("paused", record.ActionPause)
		if s := w.state("paused"); s.Version <= was {
			t.Errorf("the state's version went from %d to %d", was, s.Version)
		}
		w.do("paused", record.ActionResume)
		late := min(max(0, -step), time.Hour)
		time.Sleep(late)
		for _, id := range []string{"due", "held", "paused"} {
			w.until(id+" is delivered", func() bool { return len(w.delivered(id)) == 1 })
			w.oneChain(id)
		}
		early := max(0, step)
		waited(t, "retry", w.receiver.Of("due"), 1, max(0, delay-early), delay+delay/10+6*time.Second)
		waited(t, "hold", w.receiver.Of("held"), 1, max(0, hold-early), hold+late+5*time.Second)
	})
}

// An event's own end goes by the wall clock.
func TestClockIsSetBeyondAnExpiry(t *testing.T) {
	inClocks(t, func(t *testing.T, w *world, c *clocks, step time.Duration) {
		p, clock := c.start(w, "a", 0)
		p.owns(0)
		w.webhook("w", neverPauses)
		w.receiver.Answer("w", kafkatest.After(3*time.Second, kafkatest.Always(http.StatusOK)))
		mortal := w.event("w", 1)
		setHeader(mortal, "ce_expirytime", record.At(time.Now().Add(8*time.Second)).String())
		w.produce(w.event("w", 0), mortal)
		w.until("the first is sent", func() bool { return len(w.receiver.Of("w")) == 1 })
		clock.set(step)
		time.Sleep(20 * time.Second)
		if delivered, want := len(w.delivered("w")), map[bool]int{true: 1, false: 2}[step > 0]; delivered != want {
			t.Errorf("%d delivered, want %d", delivered, want)
		}
	})
}
