package dispatcher

import (
	"fmt"
	"maps"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/kafka"
	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/tracker"
)

// A head keeps others behind it until its record comes: from a delay topic, or from the
// events when its first request was in flight. Where the dispatcher begins beyond that,
// since a person has said --from=latest or retention has taken it, the record does not
// come, and nothing else would ever let the others go.

// headsPassedOver are the heads whose records are not among what is read on. The delay
// topics are read for that only when something may be left out. That alone says nothing:
// a topic whose records are all done, and gone, may begin behind the commit, since a
// marker lies between.
func (n *number) headsPassedOver(committed map[string]committedOffset, from map[string]int64) (map[record.Source]bool, error) {
	missing := map[record.Source]bool{} // and whether it lies in the events
	for _, w := range n.webhooks {
		w.state.EachHead(func(h *record.Head) bool {
			if !h.Parked {
				missing[h.Source] = h.Attempts == 0
			}
			return true
		})
	}
	if len(missing) == 0 {
		return nil, nil
	}
	begins, passes := map[string]int64{}, false
	for topic, at := range from {
		if topic == n.d.topo.Commands() {
			continue
		}
		start, err := kafka.StartOffset(n.ctx, n.d.plain, topic, n.p)
		if err != nil {
			return nil, fmt.Errorf("finding where %s/%d starts: %w", topic, n.p, err)
		}
		begins[topic] = max(at, start)
		passes = passes || begins[topic] > max(0, committed[topic].at)
	}
	if !passes {
		return nil, nil
	}
	for topic, at := range begins {
		if topic == n.d.topo.Events() {
			maps.DeleteFunc(missing, func(s record.Source, inEvents bool) bool { return inEvents && (s.Partition != n.p || s.Offset >= at) })
			continue
		}
		work := tracker.New(from[topic], committed[topic].done)
		_, err := kafka.ReadFrom(n.ctx, n.d.plain, topic, n.p, at, func(r *kgo.Record) error {
			if d, _ := record.FromWaiting(r); work.Received(r.Offset) {
				delete(missing, d.Source)
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("looking for events that others wait for: %w", err)
		}
	}
	return missing, nil
}

// releaseHeads lets go what waits for heads that are passed over.
func (n *number) releaseHeads(now time.Time, passed map[record.Source]bool) {
	for _, w := range n.webhooks {
		released := false
		for source := range passed {
			if w.state.DropHead(source) {
				n.log.Error("an event that others wait for is passed over, they go on", "webhook", w.id, "source", source.String())
				released = true
			}
		}
		if released {
			n.save(now, w)
		}
	}
}
