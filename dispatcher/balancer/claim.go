package balancer

// claim is what the members say of one number.
type claim struct {
	holder  int // the one member with a claim of the highest generation; nobody when none or several have it
	members []int
}

// readClaims collects the claims on each number, whatever the topic: who holds a part of it holds it.
//
// A member that missed a rebalance comes back with the claims of an older generation, on numbers that others hold now.
// Those are stale and take nothing from the holder (KIP-792). Claims of the same generation contradict each other; there is
// no telling who is right, so nobody holds the number and both have to release it.
func readClaims(members []member, numbers int32) []claim {
	claims := make([]claim, numbers)
	for p := range claims {
		claims[p].holder = nobody
	}
	highest := make([]int32, numbers)
	for i, m := range members {
		for _, p := range m.claims {
			if p < 0 || p >= numbers {
				continue
			}
			c := &claims[p]
			if n := len(c.members); n > 0 && c.members[n-1] == i {
				continue // another topic of the same number
			}
			switch {
			case len(c.members) == 0 || m.generation > highest[p]:
				c.holder, highest[p] = i, m.generation
			case m.generation == highest[p]:
				c.holder = nobody
			}
			c.members = append(c.members, i)
		}
	}
	return claims
}

// free reports whether the number can be given to a member at once: when it holds it already, or nobody else claims it.
// Even a stale claim counts against a new holder: its member may be working on the number until it hears otherwise.
func (c claim) free(m int) bool {
	if c.holder == m {
		return true
	}
	for _, other := range c.members {
		if other != m {
			return false
		}
	}
	return true
}
