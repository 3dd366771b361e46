package dispatcher

import (
	"fmt"
	"time"

	"github.com/reenvio/reenvio/internal/kafka"
	"github.com/reenvio/reenvio/internal/record"
)

// A head lies in a delay topic and keeps others behind it. Where the dispatcher begins
// beyond what was not yet read there, since a person has said --from=latest or retention
// has taken it, its record does not come, and nothing else would ever let the others go.

// passesOver: whether records of a delay topic are left out that heads may be among.
func (n *number) passesOver(committed map[string]committedOffset, from map[string]int64) (bool, error) {
	if !n.waitsForHeads() {
		return false, nil
	}
	for topic, at := range from {
		if _, delays := n.d.topo.TierOf(topic); !delays {
			continue
		}
		start, err := kafka.StartOffset(n.ctx, n.d.plain, topic, n.p)
		if err != nil {
			return false, fmt.Errorf("finding where %s/%d starts: %w", topic, n.p, err)
		}
		var gone bool
		switch c, ok := committed[topic]; {
		case ok && c.at >= 0:
			gone = c.at < start
		case n.notes.HasTopic(topic): // a person has said where to begin
			gone = at > start
		default:
			gone = start > 0
		}
		if gone {
			return true, nil
		}
	}
	return false, nil
}

func (n *number) waitsForHeads() bool {
	for _, w := range n.webhooks {
		if len(w.headsInDelayTopics()) > 0 {
			return true
		}
	}
	return false
}

// releaseHeads lets go what waits for heads in delay topics. One whose record comes all
// the same is tried again like any other event, and not before the others any more.
func (n *number) releaseHeads(now time.Time) {
	for _, w := range n.webhooks {
		heads := w.headsInDelayTopics()
		for _, source := range heads {
			n.log.Error("an event that others wait for may have been passed over, they go on", "webhook", w.id, "source", source.String())
			w.state.DropHead(source)
		}
		if len(heads) > 0 {
			n.save(now, w)
		}
	}
}

func (w *webhook) headsInDelayTopics() (sources []record.Source) {
	w.state.EachHead(func(h *record.Head) bool {
		if !h.Parked {
			sources = append(sources, h.Source)
		}
		return true
	})
	return sources
}
