package dispatcher

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/kafka"
	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/tracker"
	retrytiers "github.com/reenvio/reenvio/retry-tiers"
)

// takeoverAfter is how long a number may be held up by somebody's open
// transaction before we look whether that somebody is dead.
const takeoverAfter = 1500 * time.Millisecond

// restore makes a number ready: the offsets and what is done beyond them, the
// configurations, and the states, all of them up to what was written when we
// began. The old owner's markers land one by one: its offsets may be visible when
// its states are not yet, so each topic is read to its high watermark, which lies
// beyond whatever is still open (interleaving in docs/architecture.md).
func (n *number) restore() error {
	n.reset()
	stop := n.watchPredecessor()
	defer stop()
	committed, err := n.stableOffsets()
	if err != nil {
		return err
	}
	if err := n.restoreEndpoints(); err != nil {
		return err
	}
	if err := n.restoreStates(); err != nil {
		return err
	}
	if err := n.restoreRecent(); err != nil {
		return err
	}
	n.parked.end, err = kafka.HighWatermark(n.ctx, n.d.plain, n.d.topo.Parked(), n.p)
	if err != nil {
		return fmt.Errorf("finding the end of parked events of number %d: %w", n.p, err)
	}
	from, err := n.startOffsets(committed)
	if err != nil {
		return err
	}
	passed, err := n.headsPassedOver(committed, from)
	if err != nil {
		return err
	}
	from[n.d.topo.Endpoints()] = n.endpoints.next
	n.step(func() {
		n.releaseHeads(n.d.now(), passed)
		n.followEndpoints(n.d.now())
	})
	n.d.fetch.add(n, from)
	return nil
}

// followEndpoints makes the states follow what became of the webhooks while nobody
// owned them: deleted, mended, enabled again, disabled.
func (n *number) followEndpoints(now time.Time) {
	for id, e := range n.endpoints.entries {
		if record.EndpointDisabled(e.value) {
			n.prepare(now, n.webhook(id), e)
		}
	}
	for id, w := range n.webhooks {
		e, known := n.endpoints.get(id)
		switch {
		case !known || e.deleted():
			n.bury(now, w)
		case w.state.HasPause(record.PauseConfig) || w.state.HasPause(record.PauseDisabled):
			n.prepare(now, w, e)
		}
		n.autoResume(now, w)
		n.forget(w)
	}
}

// reset forgets what an attempt to restore has read, and what it has decided on it.
func (n *number) reset() {
	n.out.mu.Lock()
	n.out.states, n.out.since = map[string]record.State{}, time.Time{}
	n.out.mu.Unlock()
	n.webhooks = map[string]*webhook{}
	n.endpoints = endpoints{entries: map[string]*endpoint{}}
	n.foreign.reset()
	n.parked = parkedReader{active: map[*webhook]bool{}}
	n.flow = n.newFlow()
	n.recent = newRecent(n.d.options.DedupWindow, recentLimit)
	n.notes = record.NumberState{}
	n.commands, n.tests = map[string]*commandLine{}, nil
	n.flying = map[*item]bool{}
	n.due = retrytiers.Queue[waiting]{}
	n.ready = [ranks]fifo[*webhook]{}
	n.paused, n.dormants = 0, dormants{}
}

// errExpired: only a person can say where to begin.
var errExpired = errors.New("the committed offsets have expired")

// stableOffsets waits until no open transaction holds the offsets back.
func (n *number) stableOffsets() (map[string]committedOffset, error) {
	for {
		committed, err := n.d.fetchOffsets(n.ctx, n.p, true)
		switch {
		case err == nil:
			return committed, nil
		case n.ctx.Err() != nil:
			return nil, n.ctx.Err()
		case errors.Is(err, errUnstable), errors.Is(err, kerr.UnknownTopicID): // kgo's map of ids is refreshed meanwhile
			n.rest(50 * time.Millisecond)
		default:
			n.log.Warn("starting a number failed, trying again", "error", err)
			n.rest(time.Second)
		}
	}
}

func (n *number) restoreEndpoints() error {
	next, err := kafka.ReadAll(n.ctx, n.d.plain, n.d.topo.Endpoints(), n.p, func(r *kgo.Record) error {
		n.endpoints.put(r)
		return nil
	})
	n.endpoints.next = next
	if err != nil {
		return fmt.Errorf("reading the webhooks of number %d: %w", n.p, err)
	}
	for id, e := range n.endpoints.entries {
		n.noteKeys(id, e)
	}
	n.warnOfKeys()
	return nil
}

func (n *number) restoreStates() error {
	states := map[string]record.State{} // of webhooks that are not dormant
	_, err := kafka.ReadAll(n.ctx, n.d.plain, n.d.topo.State(), n.p, func(r *kgo.Record) (err error) {
		key := string(r.Key)
		n.overwrite(states, key)
		switch {
		case key == record.NumberKey && r.Value == nil:
			n.notes = record.NumberState{}
		case key == record.NumberKey:
			n.notes, err = record.ParseNumberState(r.Value)
		case r.Value != nil:
			var s record.State
			if s, err = record.ParseState(r.Value); err == nil && !n.restoreDormant(key, &s) {
				states[key] = s
			}
		}
		if err != nil {
			return n.unreadable(states, r, err)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("reading the states of number %d: %w", n.p, err)
	}
	n.paused = n.dormants.webhooks
	for id, s := range states {
		w := n.webhook(id)
		w.state = s
		if w.paused() {
			n.paused++
		}
		n.restoreWait(n.d.now(), w)
		if s.Parked != nil {
			w.parked.cursor = s.Parked.From
			n.parked.active[w] = true
		}
	}
	return nil
}

// overwrite drops what an older record has said of a webhook.
func (n *number) overwrite(states map[string]record.State, id string) {
	delete(states, id)
	if n.wake(id) != nil {
		delete(n.webhooks, id)
	}
}

// unreadable makes the safe thing of a state that can't be read, so that one
// record never stops the others: the webhook is paused until a person looks, and
// a number counts as one that has run before.
func (n *number) unreadable(states map[string]record.State, r *kgo.Record, err error) error {
	key := string(r.Key)
	n.log.Error("a state can't be read", "key", key, "offset", r.Offset, "error", err)
	if key == record.NumberKey {
		n.notes = record.NumberState{}
		for _, topic := range n.d.topics {
			n.notes.AddTopic(topic)
		}
		return nil
	}
	s := record.State{Webhook: key, PausedAt: record.At(r.Timestamp), LastError: "its state could not be read: " + err.Error()}
	s.AddPause(record.PauseManual)
	states[key] = s
	return nil
}

// startOffsets decides where each topic is read on, and makes its tracker.
//
// No commit and no note: a first start, from the earliest. No commit but a note:
// there was one, and it has expired with the group; starting from the earliest
// would send a week of events again, from the latest would lose some. A person
// must say.
func (n *number) startOffsets(committed map[string]committedOffset) (map[string]int64, error) {
	trackers := map[string]*tracker.Tracker{}
	from := map[string]int64{}
	answered := map[string]bool{}
	var expired []string
	for _, topic := range n.d.topics {
		c, ok := committed[topic]
		if ok && c.at >= 0 {
			trackers[topic], from[topic] = tracker.New(c.at, c.done), c.at
			continue
		}
		at, err := kafka.StartOffset(n.ctx, n.d.plain, topic, n.p)
		if err == nil && n.notes.HasTopic(topic) {
			at, err = n.d.from.offset(n.ctx, n.d.plain, topic, n.p, at)
			if errors.Is(err, errNoAnswer) {
				expired = append(expired, topic)
				continue
			}
			answered[topic] = true
			n.log.Warn("expired offsets answered", "topic", topic, "from", n.d.from.String(), "offset", at)
		}
		if err != nil {
			return nil, fmt.Errorf("finding where number %d begins: %w", n.p, err)
		}
		trackers[topic], from[topic] = tracker.New(at, tracker.Set{}), at
	}
	if len(expired) > 0 {
		return nil, fmt.Errorf("starting number %d: %w (%s): the group was empty for longer than the brokers keep offsets; "+
			"going on would send everything again, or skip some; start once with --from=earliest, --from=latest or --from=<RFC 3339 time>",
			n.p, errExpired, strings.Join(expired, ", "))
	}
	n.out.mu.Lock()
	n.out.trackers, n.out.answered = trackers, answered
	n.out.mu.Unlock()
	ring(n.out.bell) // for what restoring has decided
	return from, nil
}
