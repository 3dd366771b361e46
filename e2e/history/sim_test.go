package history_test

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/reenvio/reenvio/e2e/history"
	"github.com/reenvio/reenvio/internal/record"
)

// sim is a dispatcher without a network, a broker or faults: it writes down what
// a correct one would leave behind. Every choice is drawn, so that rapid explores
// and shrinks them.
type sim struct {
	draw  func(what string, n int) int // 0 to n-1
	h     history.History
	next  map[history.Partition]int64
	start time.Time
}

var orderings = []record.Ordering{"", record.OrderFirstAttempt, record.OrderStrict, record.OrderKey, record.OrderStrictKey, record.OrderNone}

var tiers = []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second}

func newSim(draw func(string, int) int) *sim {
	return &sim{
		draw: draw, next: map[history.Partition]int64{}, start: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		h: history.History{Rules: map[string]history.Rules{}, Final: true},
	}
}

// simulate draws a whole correct history.
func simulate(draw func(string, int) int) history.History {
	s := newSim(draw)
	for i := range 1 + draw("webhooks", 3) {
		s.webhook(fmt.Sprintf("w%d", i), int32(i%2))
	}
	if draw("invalid event", 4) == 0 {
		s.invalid()
	}
	s.finish()
	return s.h
}

func (s *sim) finish() {
	s.h.Topics.Committed = maps.Clone(s.next)
}

// place is where the next record of a partition goes. Markers of transactions
// leave gaps.
func (s *sim) place(topic string, p int32) record.Source {
	key := history.Partition{Topic: topic, Number: p}
	at := s.next[key]
	s.next[key] = at + 1 + int64(s.draw("gap", 2))
	return record.Source{Topic: topic, Partition: p, Offset: at}
}

func (s *sim) ms(what string, most int) time.Duration {
	return time.Duration(s.draw(what, most+1)) * time.Millisecond
}

// endpoint is one webhook while it is simulated.
type endpoint struct {
	*sim
	id        string
	p         int32
	rules     history.Rules
	now       time.Time
	queue     []*event // in order of arrival
	waiting   []*event // in delay topics
	parked    []*event
	flight    []*flying // with requests in flight
	heads     []*event  // failed, and nothing overtakes them
	delivered map[string]time.Time
	finished  []int64 // offsets in parked of what left it
	streak    int
	paused    bool
	noted     bool      // there is a state
	committed time.Time // the last cycle
}

type flying struct {
	ev  *event
	a   history.Attempt
	end time.Time
}

type event struct {
	history.Event
	tries   int
	due     time.Time
	place   int64 // in parked
	retried bool  // due is of a retry record
}

func (s *sim) endpoint(id string, p int32) *endpoint {
	return &endpoint{sim: s, id: id, p: p, now: s.start, delivered: map[string]time.Time{}}
}

func (s *sim) webhook(id string, p int32) {
	e := s.endpoint(id, p)
	e.rules = history.Rules{MaxAttempts: 1 + s.draw("max attempts", 5), AutoPauseAfter: 2 + s.draw("pause after", 9)}
	if s.draw("never pause", 4) == 0 {
		e.rules.AutoPauseAfter = history.NeverPause
	}
	if s.draw("long waits", 4) == 0 {
		wait := time.Duration(1+s.draw("wait", 90)) * time.Second
		e.rules.Delay = func(int) (time.Duration, time.Duration) { return wait, wait + wait/10 }
	}
	e.rules.Ordering = orderings[s.draw("ordering", len(orderings))]
	e.rules.MaxInFlight = 1 + s.draw("max in flight", 4)
	s.h.Rules[id] = e.rules
	at := s.start
	for k := range s.draw("events", 10) {
		at = at.Add(s.ms("pace", 4000))
		if k > 0 && s.draw("copy", 8) == 0 {
			k = s.draw("of", k)
		}
		e.produce(fmt.Sprintf("%s-%d", id, k), at)
	}
	for e.step() {
	}
}

func (e *endpoint) produce(id string, at time.Time) {
	value := history.HashOf([]byte(id))
	if e.draw("null value", 8) == 0 {
		value = history.HashOf(nil)
	}
	ev := history.Event{
		Written: at, Webhook: e.id, ID: id, Value: value, Headers: history.HashOf([]byte("headers of " + id)),
		PartitionKey: []string{"a", "b", ""}[history.HashOf([]byte(id))[0]%3], // copies have the same
	}
	if e.draw("misrouted", 8) == 0 {
		ev.Place = e.place("events", e.p+1)
		e.h.Topics.Events = append(e.h.Topics.Events, ev)
		first := ev.Place
		ev.Moved = &first
	}
	ev.Place = e.place("events", e.p)
	sent := ev.Place
	if ev.Moved != nil {
		sent = *ev.Moved
	}
	e.h.Sent = append(e.h.Sent, history.Sent{Source: sent, Webhook: e.id, ID: id, Value: value})
	e.h.Topics.Events = append(e.h.Topics.Events, ev)
	e.queue = append(e.queue, &event{Event: ev})
}

// step does the next thing there is to do.
func (e *endpoint) step() bool {
	if e.paused {
		return e.pausedStep()
	}
	if ev := e.candidate(); ev != nil {
		e.start(ev)
		return true
	}
	at := e.nextChange()
	if len(e.flight) > 0 && (at.IsZero() || e.flight[0].end.Before(at)) {
		e.land()
		return true
	}
	if at.IsZero() {
		return false
	}
	e.now = at.Add(e.ms("late", 40))
	return true
}

// candidate is what may start now; nil when nothing may.
func (e *endpoint) candidate() *event {
	if len(e.flight) >= e.limit() {
		return nil
	}
	slices.SortStableFunc(e.waiting, func(a, b *event) int { return a.due.Compare(b.due) })
	for _, ev := range e.waiting {
		if !ev.due.After(e.now) && e.may(ev) {
			return ev
		}
	}
	for _, ev := range e.parked {
		if e.may(ev) {
			return ev
		}
	}
	for _, ev := range e.queue {
		if len(e.parked) == 0 && !ev.Written.After(e.now) && e.may(ev) {
			return ev
		}
	}
	return nil
}

func (e *endpoint) limit() int {
	limit := 1
	if e.byKey() || e.rules.Ordering == record.OrderNone {
		limit = e.rules.MaxInFlight
	}
	if e.rules.AutoPauseAfter != history.NeverPause {
		limit = min(limit, max(1, e.rules.AutoPauseAfter-e.streak))
	}
	if e.streak >= 5 {
		limit = 1
	}
	return limit
}

func (e *endpoint) byKey() bool {
	return e.rules.Ordering == record.OrderKey || e.rules.Ordering == record.OrderStrictKey
}

func (e *endpoint) strict() bool {
	return e.rules.Ordering == record.OrderStrict || e.rules.Ordering == record.OrderStrictKey
}

func (e *endpoint) may(ev *event) bool {
	together := func(other *event) bool { return !e.byKey() || other.PartitionKey == ev.PartitionKey }
	for _, f := range e.flight {
		if f.ev.ID == ev.ID || e.rules.Ordering != record.OrderNone && together(f.ev) {
			return false
		}
	}
	return !slices.ContainsFunc(e.heads, func(head *event) bool { return head != ev && together(head) })
}

// isCopy: whether the event was delivered already.
func (e *endpoint) isCopy(ev *event) bool {
	at, ok := e.delivered[ev.ID]
	return ok && e.now.Sub(at) < 10*time.Minute
}

// takeOut takes an event from where it waits.
func (e *endpoint) takeOut(ev *event) {
	is := func(other *event) bool { return other == ev }
	if slices.ContainsFunc(e.parked, is) {
		e.finished = append(e.finished, ev.place)
		ev.retried = false
	}
	for _, list := range []*[]*event{&e.waiting, &e.parked, &e.queue} {
		*list = slices.DeleteFunc(*list, is)
	}
}

// start begins an attempt, unless it was delivered already; perhaps one before it that
// a crash makes forgotten.
func (e *endpoint) start(ev *event) {
	if e.isCopy(ev) {
		e.takeOut(ev)
		e.duplicate(ev)
		return
	}
	if len(e.flight) == 0 && e.draw("crash", 10) == 0 {
		e.crash(ev)
	}
	e.takeOut(ev)
	e.try(ev)
	slices.SortStableFunc(e.flight, func(a, b *flying) int { return a.end.Compare(b.end) })
	if len(e.flight) < e.limit() {
		e.now = e.now.Add(e.ms("beside", 20))
	}
	for len(e.flight) > 0 && !e.flight[0].end.After(e.now) {
		e.land()
	}
}

// land ends the first of the attempts in flight.
func (e *endpoint) land() {
	f := e.flight[0]
	e.flight = e.flight[1:]
	e.now = later(e.now, f.end)
	e.settle(f.ev, f.a)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func take(list *[]*event) *event {
	ev := (*list)[0]
	*list = (*list)[1:]
	return ev
}

func (e *endpoint) nextArrival() time.Time {
	var at time.Time
	for _, ev := range e.waiting {
		if at.IsZero() || ev.due.Before(at) {
			at = ev.due
		}
	}
	if len(e.queue) > 0 && (at.IsZero() || e.queue[0].Written.Before(at)) {
		at = e.queue[0].Written
	}
	return at
}

// nextChange is when the next event comes or is due; zero when none does.
func (e *endpoint) nextChange() (at time.Time) {
	for _, ev := range slices.Concat(e.waiting, e.queue) {
		comes := later(ev.due, ev.Written)
		if comes.After(e.now) && (at.IsZero() || comes.Before(at)) {
			at = comes
		}
	}
	return at
}

// pausedStep parks what comes while the webhook is paused, and resumes it, or not.
func (e *endpoint) pausedStep() bool {
	resume := e.draw("resume", 4) > 0
	until := e.now.Add(time.Second + e.ms("pause", 20000))
	for len(e.waiting)+len(e.queue) > 0 && (!resume || !e.nextArrival().After(until)) {
		at := e.nextArrival()
		if at.After(e.now) {
			e.now = at
		}
		list := &e.waiting
		slices.SortStableFunc(e.waiting, func(a, b *event) int { return a.due.Compare(b.due) })
		if len(e.waiting) == 0 || e.waiting[0].due.After(at) {
			list = &e.queue
		}
		e.park(take(list), e.cycle())
	}
	e.state(e.cycle())
	if !resume {
		return false
	}
	e.now = e.now.Add(100 * time.Millisecond)
	if until.After(e.now) {
		e.now = until
	}
	id := fmt.Sprintf("c%d", len(e.h.Topics.Acts))
	e.act(history.Act{Written: e.now, Webhook: e.id, ID: id, Action: record.ActionResume})
	done := e.cycle().Add(10*time.Millisecond + e.ms("resuming", 200))
	e.act(history.Act{Written: done, Webhook: e.id, ID: id, Result: record.ResultDone})
	e.paused, e.streak, e.committed = false, 0, done
	e.state(done)
	// The owner acts before its decision is committed.
	e.now = e.now.Add(5 * time.Millisecond)
	return true
}

func (e *endpoint) act(a history.Act) {
	a.Place = e.place("commands", e.p)
	e.h.Topics.Acts = append(e.h.Topics.Acts, a)
}

// try begins an attempt.
func (e *endpoint) try(ev *event) {
	n := ev.tries + 1
	a := history.Attempt{
		Webhook: e.id, ID: ev.ID, Source: ev.Place, Number: n, Started: e.now, Duration: e.ms("duration", 300),
		Dispatcher: "d1", Outcome: record.Failed, Next: record.NextRetry,
	}
	if ev.retried {
		a.DueAt = ev.due
	}
	end := e.now.Add(a.Duration)
	switch e.draw("answer", 6) {
	case 0, 1:
		a.Status = 500
		e.request(ev, n, end, 500)
	case 2: // refused: nothing arrives
		a.Error = "refused"
	case 3: // it arrives and is not answered in time
		a.Error = "timeout"
		e.request(ev, n, end, 0)
	default:
		a.Status, a.Outcome, a.Next = 204, record.Delivered, record.NextNone
		e.request(ev, n, end, 204)
	}
	e.flight = append(e.flight, &flying{ev, a, end})
}

// duplicate ends an event of which a copy was delivered.
func (e *endpoint) duplicate(ev *event) {
	written := e.cycle()
	e.drop(ev)
	e.h.Topics.Attempts = append(e.h.Topics.Attempts, history.Attempt{
		Place: e.place("attempts", e.p), Written: written, Webhook: e.id, ID: ev.ID, Source: ev.Place, Outcome: record.Duplicate, Next: record.NextNone,
	})
	e.state(written)
}

// drop: nothing waits for it any more.
func (e *endpoint) drop(ev *event) {
	e.heads = slices.DeleteFunc(slices.Clone(e.heads), func(other *event) bool { return other == ev })
}

func (e *endpoint) request(ev *event, n int, end time.Time, status int) {
	value := ev.Value
	if value == history.HashOf(nil) {
		value = history.HashOf([]byte{})
	}
	e.h.Requests = append(e.h.Requests, history.Request{
		Webhook: e.id, ID: ev.ID, Attempt: n, Start: e.now, End: end, Status: status, Value: value,
	})
}

// crash: a request whose outcome nobody will know.
func (e *endpoint) crash(ev *event) {
	at := e.now.Add(e.ms("crash after", 1900))
	if e.draw("in flight", 2) == 0 {
		e.request(ev, ev.tries+1, time.Time{}, 0)
	} else {
		status, end := []int{204, 500}[e.draw("lost answer", 2)], e.now.Add(e.ms("answered before the crash", int(at.Sub(e.now).Milliseconds())))
		e.request(ev, ev.tries+1, end, status)
		if status == 204 && e.draw("and the next", 2) == 0 {
			e.forgotten(ev, end)
		}
	}
	e.h.Incidents = append(e.h.Incidents, history.Incident{Kind: "crash", Instance: "d0", From: at, To: at})
	e.now = at.Add(500*time.Millisecond + e.ms("takeover", 12000))
}

// forgotten is a request for the one that follows a success, and forgotten with it.
func (e *endpoint) forgotten(ev *event, at time.Time) {
	was := *e
	for _, list := range []*[]*event{&e.waiting, &e.parked, &e.queue} {
		*list = slices.DeleteFunc(slices.Clone(*list), func(other *event) bool { return other.ID == ev.ID })
	}
	e.now = at
	e.drop(ev)
	next := e.candidate()
	if next != nil && !e.isCopy(next) {
		e.request(next, next.tries+1, time.Time{}, 0)
	}
	was.sim = e.sim
	*e = was
}

// cycle is when what is decided now is committed: a little later, and never
// before what was decided earlier.
func (e *endpoint) cycle() time.Time {
	if at := e.now.Add(e.ms("cycle", 100)); at.After(e.committed) {
		e.committed = at
	}
	return e.committed
}

// settle writes what follows from an attempt, as one transaction.
func (e *endpoint) settle(ev *event, a history.Attempt) {
	ev.tries = a.Number
	written := e.cycle()
	e.drop(ev)
	if a.Outcome == record.Delivered {
		e.streak = 0
		e.delivered[ev.ID] = e.now
	} else {
		e.streak++
		e.paused = e.rules.AutoPauseAfter != history.NeverPause && e.streak >= e.rules.AutoPauseAfter
	}
	switch {
	case a.Outcome == record.Delivered:
	case a.Number == e.rules.MaxAttempts:
		a.Outcome, a.Next = record.Dead, record.NextNone
		e.dead(ev, written, record.AttemptsExhausted)
	default:
		a.NextDueAt = a.Started.Add(a.Duration + e.delay(a.Number))
		ev.due = a.NextDueAt
		if e.strict() {
			e.heads = append(e.heads, ev)
		}
		if e.paused {
			a.Next = record.NextParked
			e.park(ev, written)
		} else {
			e.wait(ev, written)
		}
	}
	a.Place, a.Written = e.place("attempts", e.p), written
	e.h.Topics.Attempts = append(e.h.Topics.Attempts, a)
	e.state(written)
}

func (e *endpoint) delay(n int) time.Duration {
	least, most := time.Second<<n, time.Second<<n+time.Second<<n/10
	if e.rules.Delay != nil {
		least, most = e.rules.Delay(n)
	}
	return least + e.ms("jitter", int((most-least).Milliseconds()))
}

func (e *endpoint) dead(ev *event, written time.Time, why record.DeathReason) {
	e.h.Topics.Dead = append(e.h.Topics.Dead, history.Dead{
		Place: e.place("dlq", e.p), Written: written, Webhook: ev.Webhook, ID: ev.ID, Source: ev.Place,
		Attempts: ev.tries, Reason: why, Value: ev.Value, Headers: ev.Headers,
	})
}

func (e *endpoint) park(ev *event, written time.Time) {
	x := e.record(ev, "parked", 0, written)
	x.Reason = record.ParkPaused
	e.h.Topics.Waiting = append(e.h.Topics.Waiting, x)
	ev.place = x.Place.Offset
	e.parked = append(e.parked, ev)
}

func (e *endpoint) record(ev *event, topic string, tier time.Duration, written time.Time) history.Waiting {
	return history.Waiting{
		Place: e.place(topic, e.p), Tier: tier, Written: written, Webhook: e.id, ID: ev.ID, Source: ev.Place,
		Attempts: ev.tries, DueAt: ev.due, Value: ev.Value, Headers: ev.Headers,
	}
}

// wait writes the retry record, and its hops.
func (e *endpoint) wait(ev *event, written time.Time) {
	longest := tiers[len(tiers)-1]
	for ev.due.Sub(written) >= 2*longest {
		e.h.Topics.Waiting = append(e.h.Topics.Waiting, e.record(ev, "retry-"+longest.String(), longest, written))
		written = written.Add(longest + e.ms("hop", 50))
	}
	tier := tiers[0]
	for _, t := range tiers {
		if t <= ev.due.Sub(written) {
			tier = t
		}
	}
	e.h.Topics.Waiting = append(e.h.Topics.Waiting, e.record(ev, "retry-"+tier.String(), tier, written))
	ev.retried = true
	e.waiting = append(e.waiting, ev)
}

// state writes the webhook's state as it is now.
func (e *endpoint) state(written time.Time) {
	s := history.State{Written: written, Webhook: e.id, Streak: e.streak}
	if e.paused {
		s.Reasons = []record.PauseReason{record.PauseFailures}
	}
	if len(e.parked) > 0 {
		s.Parked = &record.Parked{From: e.parked[0].place, Last: e.parked[len(e.parked)-1].place, Count: int64(len(e.parked)), Done: e.finished}
	}
	s.Healthy = e.streak == 0 && !e.paused && s.Parked == nil
	if s.Healthy && !e.noted {
		return
	}
	e.noted = !s.Healthy
	s.Place = e.place("state", e.p)
	e.h.Topics.States = append(e.h.Topics.States, s)
}

// invalid is an event that dies without a request.
func (s *sim) invalid() {
	e := s.endpoint("", 1)
	e.produce("evt_x", s.start)
	ev := e.queue[0]
	e.dead(ev, s.start, record.InvalidRecord)
	a := history.Attempt{Place: s.place("attempts", 1), Written: s.start, ID: "evt_x", Source: ev.Place, Outcome: record.Dead, Next: record.NextNone}
	s.h.Topics.Attempts = append(s.h.Topics.Attempts, a)
}
