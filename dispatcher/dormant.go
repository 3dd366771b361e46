package dispatcher

import (
	"time"
	"unique"

	"github.com/reenvio/reenvio/internal/record"
)

// A paused webhook may stay so for weeks, and there may be 100,000 of them. One of
// which nothing is in memory but its state is dormant: its state is kept in a form of
// under 100 bytes, and its configuration as the topic has it, neither decoded nor
// decrypted. Whoever asks for the webhook (number.webhook) wakes it.

// dormant is a state in little space. Times are in unix ms; 0 is absent.
type dormant struct {
	from, last, count  int64 // of what is parked
	oldest             int64
	streakAt, pausedAt int64
	version            int64
	lastError          unique.Handle[string] // most webhooks fail in the same few ways
	failures           int32
	lastStatus         int16
	reasons            uint8 // a bit for each of dormantReasons
	expiring           bool  // see parkedPlace
}

// dormantReasons leaves out config: what is wrong would be found, and said, at each waking.
var dormantReasons = [...]record.PauseReason{record.PauseFailures, record.PauseManual, record.PauseGone, record.PauseDisabled}

// dormants are those of a number, summed up.
type dormants struct {
	webhooks int
	parked   int64
}

// shorten is the short form of a state; false: the state says what has no place there.
func shorten(s *record.State) (d dormant, fits bool) {
	if s.Status != record.Paused || !s.HoldUntil.IsZero() || s.HeadCount() > 0 || s.Hold != nil || len(s.Extra) > 0 {
		return dormant{}, false
	}
	d = dormant{
		version: s.Version, lastError: unique.Make(s.LastError),
		failures: int32(min(s.ConsecutiveFailures, 1<<30)), lastStatus: int16(min(s.LastStatus, 1<<14)),
	}
	fits = int(d.failures) == s.ConsecutiveFailures && int(d.lastStatus) == s.LastStatus
	for _, r := range s.PauseReasons {
		known := false
		for i, one := range dormantReasons {
			if r == one {
				d.reasons |= 1 << i
				known = true
			}
		}
		fits = fits && known
	}
	d.streakAt, d.pausedAt = shortTime(s.StreakStartedAt), shortTime(s.PausedAt)
	if p := s.Parked; p != nil {
		d.from, d.last, d.count, d.oldest = p.From, p.Last, p.Count, shortTime(p.OldestAt)
		fits = fits && p.Count > 0 && len(p.Done) == 0 && len(p.Extra) == 0
	}
	return d, fits
}

func (d *dormant) state(id string) record.State {
	s := record.State{
		Webhook: id, ConsecutiveFailures: int(d.failures), StreakStartedAt: longTime(d.streakAt), PausedAt: longTime(d.pausedAt),
		LastStatus: int(d.lastStatus), LastError: d.lastError.Value(), Version: d.version,
	}
	for i, r := range dormantReasons {
		if d.reasons&(1<<i) != 0 {
			s.AddPause(r)
		}
	}
	if d.count > 0 {
		s.Parked = &record.Parked{From: d.from, Last: d.last, Count: d.count, OldestAt: longTime(d.oldest)}
	}
	return s
}

func shortTime(t record.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func longTime(ms int64) record.Time {
	if ms == 0 {
		return record.Time{}
	}
	return record.At(time.UnixMilli(ms))
}

// restoreDormant takes a state on record for a webhook that can sleep on; false: it has
// to be looked at when the number starts.
func (n *number) restoreDormant(id string, s *record.State) bool {
	e, known := n.endpoints.get(id)
	if !known || e.deleted() || s.HasPause(record.PauseDisabled) || s.HasPause(record.PauseFailures) && e.mayResume() {
		return false
	}
	d, fits := shorten(s)
	if fits {
		e.dormant = &d
		n.dormants.webhooks++
		n.dormants.parked += d.count
	}
	return fits
}

// wake brings a webhook back that is dormant; nil when it is not.
func (n *number) wake(id string) *webhook {
	e, known := n.endpoints.get(id)
	if !known || e.dormant == nil {
		return nil
	}
	d := e.dormant
	e.dormant = nil
	n.dormants.webhooks--
	n.dormants.parked -= d.count
	w := &webhook{id: id, state: d.state(id)}
	w.parked.cursor, w.parked.expiring = d.from, d.expiring
	n.webhooks[id] = w
	return w
}

// fallAsleep makes webhooks dormant that nobody has asked for since it was called last:
// one whose events still come would be woken with each of them.
func (n *number) fallAsleep(now time.Time) {
	if now.Before(n.dozeAt) {
		return
	}
	n.dozeAt = now.Add(idleTurn)
	for id, w := range n.webhooks {
		if !w.idle {
			w.idle = true
			continue
		}
		e, known := n.endpoints.get(id)
		if !known || e.deleted() || w.busy() || n.parked.holds(w) || w.state.HasPause(record.PauseFailures) && e.mayResume() {
			continue
		}
		d, fits := shorten(&w.state)
		if !fits {
			continue
		}
		d.expiring = w.parked.expiring
		e.dormant, e.opened = &d, unopened
		n.dormants.webhooks++
		n.dormants.parked += d.count
		delete(n.parked.active, w)
		delete(n.webhooks, id)
	}
}

// holds: whether something that is read from the topic is for w.
func (p *parkedReader) holds(w *webhook) bool {
	if len(w.parked.loaded) > 0 || w.parked.inPass {
		return true
	}
	if p.sweep == nil {
		return false
	}
	_, swept := p.sweep.of[w]
	return swept
}
