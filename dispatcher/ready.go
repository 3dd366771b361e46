package dispatcher

import "time"

// rank is in what order webhooks are served: those that answer well, those that were
// never tried, and the rest.
type rank int

const (
	rankProven rank = iota
	rankUntried
	rankSuspect
	ranks
)

func (r rank) class() slotClass {
	if r == rankProven {
		return proven
	}
	return suspect
}

// rank of a webhook follows its last attempt, of which its endpoint remembers the
// little that is needed: a new configuration is untried again.
func (n *number) rank(w *webhook) rank {
	switch e, known := n.endpoints.get(w.id); {
	case w.state.ConsecutiveFailures > 0:
		return rankSuspect
	case !known || !e.tried:
		return rankUntried
	case e.quick:
		return rankProven
	}
	return rankSuspect
}

// startReady starts what the lanes hold, in each rank in the order in which they
// became ready.
func (n *number) startReady(now time.Time) {
	for r := range ranks {
		n.startRank(now, r)
	}
	n.d.slots.passOn(n)
	n.d.hosts.passOn(n)
}

func (n *number) startRank(now time.Time, r rank) {
	slot := false // in hand, for the next that can use it
	defer func() {
		if slot {
			n.d.slots.give(n, r.class())
		}
	}()
	for {
		w, ok := n.ready[r].peek()
		if !ok {
			return
		}
		it := n.candidate(now, w)
		if it == nil {
			n.unlist(r, w)
			n.forget(w)
			continue
		}
		if n.blocked = n.whyBlocked(now); n.blocked != "" {
			return
		}
		if is := n.rank(w); is != r { // it has changed since
			n.unlist(r, w)
			n.makeReady(w)
			if is < r {
				n.inbox.wake() // its list has had its turn
			}
			continue
		}
		if slot = slot || n.d.slots.take(n, r.class()); !slot {
			return // the slot wakes us
		}
		host := n.hostOf(w.id)
		if !n.d.hosts.take(n, w.id, host) {
			n.unlist(r, w) // the place lists it again
			continue
		}
		if n.start(now, w, it, r.class(), host) {
			slot = false
		} else {
			n.d.hosts.give(host)
		}
		// One start each turn of the list: lanes share the slots evenly.
		n.unlist(r, w)
		n.makeReady(w)
	}
}

func (n *number) unlist(r rank, w *webhook) {
	n.ready[r].pop()
	w.listed = false
}

func (n *number) makeReady(w *webhook) {
	if w.listed || w.lane() == 0 {
		return
	}
	w.listed = true
	n.ready[n.rank(w)].push(w)
}
