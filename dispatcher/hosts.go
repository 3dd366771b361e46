package dispatcher

import "sync"

// hosts bounds the requests in flight to one host, over all numbers. Who waits for a host
// holds no slot, and who waits for a slot, which dead webhooks elsewhere may hold for
// long, holds no place: a place is asked for with a slot in hand, which goes to the next
// where there is none. A place that comes free is kept for the webhook that has waited
// longest, until its number has had its turn: each gets one in its turn, whatever it has
// queued.
type hosts struct {
	mu     sync.Mutex
	limit  int // 0: there is none
	hosts  map[string]*host
	claims map[claimant]*hostClaim
	kept   map[*number]int // how many places are kept
}

type host struct {
	used    int // in use, or kept
	waiting fifo[*hostClaim]
}

// claimant is a webhook, in one life of its number.
type claimant struct {
	n       *number
	webhook string
}

type hostClaim struct {
	claimant
	host string
	kept bool // a place that came free is kept for it
	told bool // its number knows: the place came free before the turn that it is about
	gone bool // it does not wait any more
}

func newHosts(limit int) *hosts {
	return &hosts{limit: limit, hosts: map[string]*host{}, claims: map[claimant]*hostClaim{}, kept: map[*number]int{}}
}

// take takes a place for a webhook, or notes that it waits for one.
func (s *hosts) take(n *number, webhook, name string) bool {
	if s.limit == 0 || name == "" {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := claimant{n, webhook}
	c := s.claims[key]
	if c != nil && c.host != name { // its URL has changed
		s.drop(c)
		c = nil
	}
	h := s.hosts[name]
	if h == nil {
		h = &host{}
		s.hosts[name] = h
	}
	switch {
	case c != nil && c.kept:
		s.forget(c)
		return true
	case c == nil && h.used < s.limit:
		h.used++
		return true
	case c == nil:
		c = &hostClaim{claimant: key, host: name}
		s.claims[key] = c
		h.waiting.push(c)
	}
	return false
}

// give returns a place.
func (s *hosts) give(name string) {
	if s.limit == 0 || name == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free(name)
}

// passOn is called by a number that has started all it could: the places that are kept
// for it, and that it knew of, go to the next. Who has just been given one, in the middle
// of a turn, would lose its place in the line with it.
func (s *hosts) passOn(n *number) {
	if s.limit == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept[n] > 0 {
		s.dropAll(n, func(c *hostClaim) bool { return c.kept && c.told })
	}
}

// tell notes that the number knows of a place that is kept.
func (s *hosts) tell(c *hostClaim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.told = true
}

// leave is for a number that starts nothing any more.
func (s *hosts) leave(n *number) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropAll(n, func(*hostClaim) bool { return true })
}

func (s *hosts) dropAll(n *number, which func(*hostClaim) bool) {
	for _, c := range s.claims {
		if c.n == n && which(c) {
			s.drop(c)
		}
	}
}

// waits: whether the webhook waits for a place.
func (s *hosts) waits(n *number, webhook string) bool {
	if s.limit == 0 {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.claims[claimant{n, webhook}]
	return c != nil && !c.kept
}

// waiting is how many webhooks wait.
func (s *hosts) waiting() (sum int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.claims {
		if !c.kept {
			sum++
		}
	}
	return sum
}

func (s *hosts) drop(c *hostClaim) {
	s.forget(c)
	c.gone = true
	if c.kept {
		s.free(c.host)
	}
}

func (s *hosts) forget(c *hostClaim) {
	delete(s.claims, c.claimant)
	if !c.kept {
		return
	}
	if s.kept[c.n]--; s.kept[c.n] == 0 {
		delete(s.kept, c.n)
	}
}

// free makes a place free, and keeps it for who has waited longest.
func (s *hosts) free(name string) {
	h := s.hosts[name]
	h.used--
	for h.used < s.limit {
		c, ok := h.waiting.pop()
		if !ok {
			break
		}
		if c.gone {
			continue
		}
		h.used++
		c.kept = true
		s.kept[c.n]++
		c.n.inbox.post(func() { c.n.hostFree(c) })
	}
	if h.used == 0 {
		delete(s.hosts, name)
	}
}

// hostOf is where the requests of a webhook go; empty when that is not known, or bounds nothing.
func (n *number) hostOf(webhook string) string {
	if n.d.hosts.limit == 0 {
		return ""
	}
	if ready := n.open(webhook).ready; ready != nil {
		return ready.URLHost()
	}
	return ""
}

// hostFree: a place at its host is kept for a webhook.
func (n *number) hostFree(c *hostClaim) {
	n.d.hosts.tell(c)
	if w := n.webhooks[c.webhook]; w != nil {
		w.freeAt = latest(w.freeAt, n.d.now())
		n.makeReady(w)
	}
}
