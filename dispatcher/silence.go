package dispatcher

import "time"

// silentLong is how long a number may start nothing because of Kafka before it is said.
const silentLong = 3 * time.Second

// silence is a time in which a number starts nothing because of Kafka: the group does
// not acknowledge us, or outcomes can't be committed.
type silence struct {
	since time.Time
	told  bool
}

// noteSilence says it once when it lasts, and once that it is over.
func (n *number) noteSilence(now time.Time) {
	s := &n.silent
	switch silent := n.blocked != "" && n.heldAll() == nil && n.ctx.Err() == nil; {
	case !silent && s.told:
		n.log.Info("requests start again", "after", now.Sub(s.since).Round(time.Second).String())
		fallthrough
	case !silent:
		*s = silence{}
	case s.since.IsZero():
		s.since = now
	case !s.told && now.Sub(s.since) >= silentLong:
		s.told = true
		n.log.Warn("no request starts", "reason", n.blocked, "in_flight", n.inFlight.Load(), "uncommitted", n.out.len())
	}
}
