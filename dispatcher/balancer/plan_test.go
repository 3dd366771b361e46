package balancer

import (
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

var (
	oldTopics = []string{"commands", "events", "retry-2s"}
	newTopics = []string{"commands", "events", "retry-1m", "retry-2s"}
)

// counts of partitions of all topics in use, 12 each.
func counts(topics ...[]string) map[string]int32 {
	m := map[string]int32{}
	for _, topic := range slices.Concat(topics...) {
		m[topic] = 12
	}
	return m
}

func seq(from, to int32) (numbers []int32) {
	for p := from; p < to; p++ {
		numbers = append(numbers, p)
	}
	return numbers
}

func TestAssign(t *testing.T) {
	m := func(generation int32, claims ...int32) member {
		return member{topics: oldTopics, claims: claims, generation: generation}
	}
	newer := member{topics: newTopics, generation: -1}
	for name, c := range map[string]struct {
		members []member
		topics  map[string]int32
		want    [][]int32
	}{
		"the first member": {
			[]member{m(-1)}, counts(oldTopics), [][]int32{seq(0, 12)},
		},
		"a second joins: half is released, and given to nobody yet": {
			[]member{m(1, seq(0, 12)...), m(-1)}, counts(oldTopics), [][]int32{seq(0, 6), nil},
		},
		"what was released is given": {
			[]member{m(2, seq(0, 6)...), m(-1)}, counts(oldTopics), [][]int32{seq(0, 6), seq(6, 12)},
		},
		"one of three is gone: the others keep theirs and share what it had": {
			[]member{m(3, 0, 2, 4, 6), m(3, 1, 3, 5, 7)}, counts(oldTopics), [][]int32{{0, 2, 4, 6, 8, 9}, {1, 3, 5, 7, 10, 11}},
		},
		"those who hold most keep one more, the first of equals": {
			[]member{m(3, 0, 1), m(3, 2, 3, 4), m(3, 5, 6, 7), m(3, 8, 9, 10, 11), m(-1)},
			counts(oldTopics),
			[][]int32{{0, 1}, {2, 3, 4}, {5, 6}, {8, 9, 10}, nil},
		},
		"a static member, restarted without claims amid a rebalance, stands where it stood": {
			[]member{m(3, seq(0, 4)...), m(-1), m(3, seq(8, 12)...)}, counts(oldTopics), [][]int32{seq(0, 4), seq(4, 8), seq(8, 12)},
		},
		"stale claims take nothing from the holder, and keep a number from going to a third": {
			[]member{m(4, 0, 1, 2, 3, 4, 5), m(2, 4, 5, 6, 7)},
			counts(oldTopics),
			[][]int32{seq(0, 6), seq(6, 12)},
		},
		"a stale claim alone is as good as any": {
			[]member{m(4, seq(0, 6)...), m(2, seq(6, 12)...)}, counts(oldTopics), [][]int32{seq(0, 6), seq(6, 12)},
		},
		"two claim the same in one generation: both release it": {
			[]member{m(4, seq(0, 6)...), m(4, seq(5, 12)...)}, counts(oldTopics), [][]int32{seq(0, 5), seq(6, 12)},
		},
		"a member that lacks a topic gets nothing, and loses what it has": {
			[]member{m(4, seq(0, 6)...), newer}, counts(newTopics), [][]int32{nil, seq(6, 12)},
		},
		"a topic that nobody has made yet does not count": {
			[]member{m(4, seq(0, 6)...), newer}, counts(oldTopics), [][]int32{seq(0, 6), seq(6, 12)},
		},
		"nobody has all topics: those with the largest sets share": {
			[]member{{topics: []string{"events", "a"}}, {topics: []string{"events", "b"}}, {topics: []string{"events"}}},
			counts([]string{"events", "a", "b"}),
			[][]int32{seq(0, 6), seq(6, 12), nil},
		},
		"no topic exists": {
			[]member{m(-1)}, map[string]int32{}, [][]int32{nil},
		},
		"claims that can't be": {
			[]member{m(4, -5, 11, 12, 1<<30)}, counts(oldTopics), [][]int32{seq(0, 12)},
		},
		"more members than numbers": {
			[]member{m(4, 0), m(-1), m(4, 1)}, map[string]int32{"events": 2, "commands": 2, "retry-2s": 2}, [][]int32{{0}, nil, {1}},
		},
	} {
		if got := assign(c.members, c.topics); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// drawMembers makes members in one state that a group can be in: each number claimed by one member at most, all claims
// of one generation.
func drawMembers(t *rapid.T, numbers int32) []member {
	members := make([]member, rapid.IntRange(1, 7).Draw(t, "members"))
	for i := range members {
		members[i] = member{topics: oldTopics, generation: 7}
	}
	for p := range numbers {
		if holder := rapid.IntRange(-1, len(members)-1).Draw(t, "holder"); holder >= 0 {
			members[holder].claims = append(members[holder].claims, p, p) // in two topics
		}
	}
	return members
}

func TestPlanProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		numbers := rapid.Int32Range(1, 40).Draw(t, "numbers")
		partitions := map[string]int32{"commands": numbers, "events": numbers, "retry-2s": numbers}
		members := drawMembers(t, numbers)
		plan := assign(members, partitions)
		if again := assign(members, partitions); !reflect.DeepEqual(plan, again) {
			t.Fatalf("equal input, %v and %v", plan, again)
		}

		given := map[int32]int{}
		var kept, withheld int
		for i, list := range plan {
			if !slices.IsSorted(list) {
				t.Fatalf("member %d: %v", i, list)
			}
			for _, p := range list {
				if _, twice := given[p]; twice {
					t.Fatalf("number %d given twice", p)
				}
				given[p] = i
			}
		}
		for p := range numbers {
			holder := slices.IndexFunc(members, func(m member) bool { return slices.Contains(m.claims, p) })
			to, ok := given[p]
			switch {
			case !ok && holder < 0:
				t.Fatalf("number %d is free and given to nobody", p)
			case !ok:
				withheld++
			case holder >= 0 && to != holder:
				t.Fatalf("number %d given to %d while %d holds it", p, to, holder)
			case holder == to:
				kept++
			}
		}
		if most := mostKept(members, int(numbers)); kept != most {
			t.Fatalf("%d stay where they are, %d could: %v", kept, most, plan)
		}

		// The next round, after everybody has released what it lost: all is given, in equal shares, and nothing moves.
		for i := range members {
			members[i].claims = plan[i]
		}
		next := assign(members, partitions)
		low, high, total := int(numbers), 0, 0
		for i, list := range next {
			low, high, total = min(low, len(list)), max(high, len(list)), total+len(list)
			for _, p := range plan[i] {
				if !slices.Contains(list, p) {
					t.Fatalf("number %d was given and taken back", p)
				}
			}
		}
		if total != int(numbers) || high-low > 1 {
			t.Fatalf("%d of %d given, %d to %d a member, after %d withheld", total, numbers, low, high, withheld)
		}
	})
}

// mostKept tries every choice of the members who get one number more than the others, for the largest number of numbers
// that can stay where they are.
func mostKept(members []member, numbers int) int {
	share, more := numbers/len(members), numbers%len(members)
	most := 0
	for choice := range 1 << len(members) {
		kept, chosen := 0, 0
		for i, m := range members {
			room := share
			if choice>>i&1 == 1 {
				room++
				chosen++
			}
			kept += min(room, len(m.claims)/2)
		}
		if chosen == more {
			most = max(most, kept)
		}
	}
	return most
}

func TestEligibility(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := []string{"a", "b", "c", "d"}
		partitions := map[string]int32{}
		for _, topic := range all[:rapid.IntRange(1, 4).Draw(t, "topics that exist")] {
			partitions[topic] = 6
		}
		members := make([]member, rapid.IntRange(1, 5).Draw(t, "members"))
		full := 0
		covers := make([]bool, len(members))
		union := map[string]bool{}
		for i := range members {
			members[i].topics = rapid.SliceOfDistinct(rapid.SampledFrom(all), rapid.ID).Draw(t, "topics")
			for _, topic := range members[i].topics {
				if partitions[topic] > 0 {
					union[topic] = true
				}
			}
		}
		for i, m := range members {
			covers[i] = len(union) > 0
			for topic := range union {
				covers[i] = covers[i] && slices.Contains(m.topics, topic)
			}
			if covers[i] {
				full++
			}
		}
		total := 0
		for i, list := range assign(members, partitions) {
			total += len(list)
			if full > 0 && !covers[i] && len(list) > 0 {
				t.Fatalf("member %d has %v, but not all topics", i, list)
			}
			if full > 0 && covers[i] && len(list) < 6/full {
				t.Fatalf("member %d has %v of 6 numbers among %d", i, list, full)
			}
		}
		if len(union) > 0 && total != 6 {
			t.Fatalf("%d of 6 numbers given", total)
		}
	})
}
