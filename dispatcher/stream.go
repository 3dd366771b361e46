package dispatcher

import (
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/record"
)

// stream is one topic of a number: what was fetched of it and not yet looked at.
// The number takes records in only while it has room for what they become; what
// it leaves here makes the fetcher pause the topic.
type stream struct {
	topic   string
	records fifo[*kgo.Record]
	stopped string // why nothing is taken in; "" when it is
	since   time.Time
	told    string // what an operator was told of it
	looked  int64  // one after the last that was taken in, markers too

	// Shared with the fetcher.
	ahead      atomic.Int64 // records fetched and not yet taken in
	aheadBytes atomic.Int64
	paused     atomic.Bool
}

// arrives counts what was fetched; true: it is too much.
func (s *stream) arrives(records []*kgo.Record) bool {
	bytes := int64(0)
	for _, r := range records {
		bytes += weight(r)
	}
	ahead, held := s.ahead.Add(int64(len(records))), s.aheadBytes.Add(bytes)
	return ahead > aheadLimit || held > aheadBytes
}

// weight is about what a record holds in memory.
func weight(r *kgo.Record) int64 { return int64(record.Size(r)) }

func (s *stream) fetched(records []*kgo.Record) {
	for _, r := range records {
		s.records.push(r)
	}
}

// takeIn looks at what was fetched, topic by topic, while there is room.
func (n *number) takeIn(now time.Time) {
	for _, topic := range n.d.topics {
		s := n.streams[topic]
		for s.records.len() > 0 {
			chunk := s.chunk()
			why := n.noRoom(now, s, chunk)
			if n.stops(now, s, why); why != "" {
				break
			}
			for range chunk {
				r, _ := s.records.pop()
				s.ahead.Add(-1)
				s.aheadBytes.Add(-weight(r))
				s.looked = r.Offset + 1
				n.take(now, r)
			}
		}
		if s.paused.Load() && s.ahead.Load() <= aheadLimit/2 && s.aheadBytes.Load() <= aheadBytes/2 {
			n.d.fetch.release(n, s)
		}
	}
	if n.heldAll() != nil { // nothing is slow that may not start
		n.flow.full = time.Time{}
		return
	}
	n.parkBehind(now)
	n.shed(now)
	n.parkSlowRetries(now)
}

// stops notes why nothing is taken in of a topic. A bound that is hit for longer is
// said once.
func (n *number) stops(now time.Time, s *stream, why string) {
	switch {
	case why == "" && s.told != "":
		n.log.Info("a topic is taken in again", "topic", s.topic, "after", now.Sub(s.since).Round(time.Second).String())
		s.told = ""
	case why != "" && s.stopped == "":
		s.since = now
	case why != "" && n.blocked == "" && s.told == "" && now.Sub(s.since) >= stoppedLong:
		n.log.Warn("a topic is not taken in, a bound is reached", "topic", s.topic, "reason", why, "since", record.At(s.since).String())
		s.told = why
	}
	s.stopped = why
}

// stoppedLong is how long a topic may stand still at a bound before it is said.
const stoppedLong = 10 * time.Second

// chunk is what is taken in next.
func (s *stream) chunk() []*kgo.Record { return s.records.front(takeChunk) }

// The bounds at which nothing is taken in of a topic, as log and metrics name them.
const (
	boundUncommitted = "outcomes wait to be committed"
	boundHalfDone    = "too much of it is half done"
	boundLanes       = "the lanes are full"
	boundDue         = "too many retries are due"
	boundWaiting     = "its due queue is full"
)

// noRoom: why the chunk can't be taken in now; "" when it can. What is too much
// must fall by a sixth before it counts as room again.
func (n *number) noRoom(now time.Time, s *stream, chunk []*kgo.Record) string {
	stopped := s.stopped != ""
	switch {
	case s.topic == n.d.topo.Commands() && n.out.fits(s.topic, len(chunk), chunk[len(chunk)-1].Offset):
		return "" // few, and they must come through
	case n.blocked != "":
		return n.blocked
	case n.out.full(now, n.d.cfg.MaxUncommitted) != "":
		return boundUncommitted // also those of this turn, without a request: parked, dead
	case !n.out.fits(s.topic, len(chunk), chunk[len(chunk)-1].Offset):
		return boundHalfDone
	case s.topic == n.d.topo.Events() && n.flow.lanes.over(lower(stopped, lanesRecords), lower(stopped, lanesBytes)):
		return boundLanes
	case s.topic == n.d.topo.Events():
		return ""
	case n.flow.retries.over(lower(stopped, dueRecords), lower(stopped, dueBytes)):
		return boundDue
	}
	if tier, ok := n.d.topo.TierOf(s.topic); ok && n.flow.waiting[tier].over(lower(stopped, dueRecords), lower(stopped, dueBytes)) {
		return boundWaiting
	}
	return ""
}
