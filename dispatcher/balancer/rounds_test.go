package balancer

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// actor is a member as it is, beside what it says of itself.
type actor struct {
	name       string
	topics     []string
	holds      []int32 // works on these
	claims     []int32 // says that it does: the same, but for one that was expelled and doesn't know yet
	generation int32
	expelled   bool
	assigned   []int32
}

type group struct {
	t          *rapid.T
	actors     []*actor
	generation int32
	partitions map[string]int32
	names      int
}

// join lets all members join and plans, as the leader does. kgo takes over the generation with the answer to its join,
// before it knows its assignment.
func (g *group) join() {
	g.generation++
	var members []member
	for _, a := range g.in() {
		members = append(members, member{topics: a.topics, claims: a.claims, generation: a.generation})
	}
	for i, list := range assign(members, g.partitions) {
		a := g.in()[i]
		a.generation, a.assigned = g.generation, list
	}
}

func (g *group) in() []*actor {
	return slices.DeleteFunc(slices.Clone(g.actors), func(a *actor) bool { return a.expelled })
}

// sync lets one member learn of its assignment: it releases what it lost, then takes what is new, whatever the others
// have done by then. It reports whether it lost something and so has to join again.
func (g *group) sync(a *actor) (lost bool) {
	for _, p := range a.claims {
		lost = lost || !slices.Contains(a.assigned, p)
	}
	for _, p := range a.assigned {
		for _, other := range g.actors {
			if other != a && slices.Contains(other.holds, p) {
				g.t.Fatalf("generation %d: %s takes number %d, which %s has not released", g.generation, a.name, p, other.name)
			}
		}
	}
	a.holds, a.claims = a.assigned, a.assigned
	return lost
}

// settle runs rounds until nobody has to join again.
func (g *group) settle() {
	for range 5 {
		g.join()
		again := false
		for _, a := range g.shuffled() {
			again = g.sync(a) || again
		}
		if !again {
			return
		}
	}
	g.t.Fatalf("no end after five rounds: %s", g)
}

func (g *group) shuffled() []*actor {
	return rapid.Permutation(g.in()).Draw(g.t, "order of syncs")
}

func (g *group) String() (s string) {
	for _, a := range g.actors {
		s += fmt.Sprintf("%s holds %v claims %v of %d; ", a.name, a.holds, a.claims, a.generation)
	}
	return s
}

// TestRounds plays a group with joins, leaves, crashes, expulsions and rebalances that are cut short by the next. At no
// time two members work on the same number, and in the end each number has one member, in equal shares.
func TestRounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := &group{t: t, partitions: map[string]int32{"commands": 12, "events": 12, "retry-2s": 12}}
		if rapid.Bool().Draw(t, "new topic exists") {
			g.partitions["retry-1m"] = 12
		}
		add := func() {
			g.names++
			a := &actor{name: fmt.Sprint("m", g.names), topics: oldTopics, generation: -1}
			if rapid.Bool().Draw(t, "newer version") {
				a.topics = newTopics
			}
			g.actors = slices.Insert(g.actors, rapid.IntRange(0, len(g.actors)).Draw(t, "place"), a)
		}
		add()
		for range rapid.IntRange(20, 60).Draw(t, "steps") {
			pick := func() *actor { return rapid.SampledFrom(g.actors).Draw(t, "which") }
			switch rapid.SampledFrom([]string{"add", "leave", "expel", "return", "settle", "cut short", "cut short"}).Draw(t, "step") {
			case "add":
				add()
			case "leave": // or crash: its session has ended when the others join
				if len(g.actors) > 1 {
					gone := pick()
					g.actors = slices.DeleteFunc(g.actors, func(a *actor) bool { return a == gone })
				}
			case "expel": // its lease has ended too, so it works on nothing
				if a := pick(); len(g.in()) > 1 {
					a.expelled, a.holds = true, nil
				}
			case "return":
				pick().expelled = false
			case "settle":
				g.settle()
			case "cut short": // some have learnt of their assignment when the next rebalance begins
				g.join()
				for _, a := range g.shuffled()[:rapid.IntRange(0, len(g.in())).Draw(t, "synced")] {
					g.sync(a)
				}
			}
			if len(g.in()) == 0 {
				g.actors[0].expelled = false
			}
		}
		g.settle()

		capable := 0
		best := oldTopics
		for _, a := range g.in() {
			if len(a.topics) > len(best) && g.partitions["retry-1m"] > 0 {
				best = a.topics
			}
		}
		eligible := func(a *actor) bool { return len(best) == len(oldTopics) || len(a.topics) == len(newTopics) }
		for _, a := range g.in() {
			if eligible(a) {
				capable++
			}
		}
		held := map[int32]bool{}
		for _, a := range g.in() {
			for _, p := range a.holds {
				if held[p] {
					t.Fatalf("number %d is held twice: %s", p, g)
				}
				held[p] = true
			}
			if n := len(a.holds); eligible(a) && (n < 12/capable || n > (12+capable-1)/capable) || !eligible(a) && n > 0 {
				t.Fatalf("%s holds %d numbers of 12 among %d members: %s", a.name, n, capable, g)
			}
		}
		if len(held) != 12 {
			t.Fatalf("%d of 12 numbers are held: %s", len(held), g)
		}
	})
}
