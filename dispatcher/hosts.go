package dispatcher

import "sync"

// hosts bounds the requests in flight to one host, over all numbers. A place at the host
// is taken before the slot, so who waits for a host holds no slot. A place that comes
// free is kept for the webhook that has waited longest: each gets one in its turn,
// whatever it has queued.
type hosts struct {
	mu     sync.Mutex
	limit  int // 0: there is none
	hosts  map[string]*host
	claims map[claimant]*hostClaim
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
	gone bool // it does not wait any more
}

func newHosts(limit int) *hosts {
	return &hosts{limit: limit, hosts: map[string]*host{}, claims: map[claimant]*hostClaim{}}
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
		delete(s.claims, key)
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

// keep keeps a place that was taken for a webhook that finds no slot yet.
func (s *hosts) keep(n *number, webhook, name string) {
	if s.limit == 0 || name == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := claimant{n, webhook}
	s.claims[key] = &hostClaim{claimant: key, host: name, kept: true}
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

// passOn is for a webhook that has nothing to start: a place that is kept for it goes
// to the next.
func (s *hosts) passOn(n *number, webhook string) {
	if s.limit == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.claims[claimant{n, webhook}]; c != nil && c.kept {
		s.drop(c)
	}
}

// passOnAll is for a number that may start nothing now; leave for one that never will.
func (s *hosts) passOnAll(n *number) { s.dropAll(n, func(c *hostClaim) bool { return c.kept }) }

func (s *hosts) leave(n *number) { s.dropAll(n, func(*hostClaim) bool { return true }) }

func (s *hosts) dropAll(n *number, which func(*hostClaim) bool) {
	if s.limit == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
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
	delete(s.claims, c.claimant)
	c.gone = true
	if c.kept {
		s.free(c.host)
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
		c.n.inbox.post(func() { c.n.hostFree(c.webhook) })
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
	e, known := n.endpoints.get(webhook)
	if !known || e.deleted() {
		return ""
	}
	if n.read(webhook, e); e.ready == nil {
		return ""
	}
	return e.ready.URLHost()
}

// hostFree: a place at its host is kept for a webhook.
func (n *number) hostFree(webhook string) {
	if w := n.webhooks[webhook]; w != nil {
		w.freeAt = latest(w.freeAt, n.d.now())
		n.makeReady(w)
	}
	n.hostUnused(webhook)
}

// hostUnused passes a place on that is kept for a webhook with nothing to start.
func (n *number) hostUnused(webhook string) {
	if w := n.webhooks[webhook]; w != nil && w.listed {
		return
	}
	for _, o := range n.tests {
		if o.Webhook == webhook {
			return
		}
	}
	n.d.hosts.passOn(n, webhook)
}
