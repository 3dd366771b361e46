package history

import (
	"slices"

	"github.com/reenvio/reenvio/internal/record"
)

// checkCopies: of several events with one id, sent to one webhook and of one redrive,
// one is delivered within the window; and only what was delivered has duplicates.
func (c *checker) checkCopies() {
	c.each(func(w *webhook) {
		for _, id := range w.ids {
			copies := w.alive(id)
			for i, a := range copies {
				for _, b := range copies[:i] {
					c.checkCopy(a, b)
				}
				if end := a.end(); end != nil && end.Outcome == record.Duplicate && !slices.ContainsFunc(copies, func(b *chain) bool { return c.deliveredFor(a, b) }) {
					c.brokenFor(a, NothingLost, "it ended as %s, and no copy of it was delivered before, within %s", end.Outcome, c.window())
				}
			}
		}
	})
}

func (c *checker) checkCopy(a, b *chain) {
	x, y := a.end(), b.end()
	if a.event.Redrive != b.event.Redrive || x == nil || y == nil || x.Outcome != record.Delivered || y.Outcome != record.Delivered {
		return
	}
	if x.Started.After(y.Started) {
		x, y = y, x
	}
	if y.Started.Before(x.ended().Add(c.window() - c.Slack)) {
		c.brokenFor(a, Once, "it was delivered at %s, and again, from %s, at %s", clock(x.ended()), y.Source, clock(y.Started))
	}
}

// deliveredFor says whether the delivery of b makes a, which came within the window, a
// duplicate.
func (c *checker) deliveredFor(a, b *chain) bool {
	end := b.end()
	return end != nil && end.Outcome == record.Delivered && a.event.Redrive == b.event.Redrive &&
		!end.ended().After(a.end().Written.Add(c.Slack+rounding)) &&
		!a.event.Written.After(end.ended().Add(c.window()+c.Slack))
}
