package balancer

import "slices"

// member is what one member of the group says of itself.
type member struct {
	topics     []string // it subscribes to
	claims     []int32  // numbers of which it holds a partition, in any topic; may repeat
	generation int32    // of the group when it learnt of its assignment; -1: it has none
}

const nobody = -1

// assign gives numbers to members: element i of the result is for member i, ascending.
//
//   - Each number goes to one eligible member, and how many they have differs by one at most.
//   - A member keeps what it holds as far as that allows. Only what must moves.
//   - A number that another member still claims is given to nobody this time. That member finds that it has lost the
//     number, releases it, and joins again: it is free in the next plan.
//   - Equal members and counts make an equal plan; what is left to choose goes by the order of the members.
func assign(members []member, partitions map[string]int32) [][]int32 {
	numbers := int32(0)
	for _, n := range partitions {
		numbers = max(numbers, n)
	}
	plan := make([][]int32, len(members))
	eligible := eligible(members, partitions)
	if len(eligible) == 0 {
		return plan
	}
	claims := readClaims(members, numbers)
	target := spread(eligible, claims, len(members))
	for p, m := range target {
		if claims[p].free(m) {
			plan[m] = append(plan[m], int32(p))
		}
	}
	return plan
}

// eligible are the members that may hold numbers: those for whom no other member subscribes to all that they do and more.
//
// A number needs all its topics, so a version that doesn't know a new delay topic must not take a number in which that may
// hold records. While one member subscribes to every topic there is, only members that do so are eligible: in a rolling
// upgrade the numbers go over to the new version with its first member, unless the topic exists, and is subscribed to by
// all, before any version produces to it. When nobody subscribes to all (two versions, each with a topic of its own), each
// of the largest sets is as good as another: what they share is delivered, and what only the other reads waits until the
// versions agree. To give out nothing at all would stop everything for that.
//
// Topics that don't exist don't count.
func eligible(members []member, partitions map[string]int32) []int {
	sets := make([]map[string]bool, len(members))
	for i, m := range members {
		sets[i] = map[string]bool{}
		for _, topic := range m.topics {
			if partitions[topic] > 0 {
				sets[i][topic] = true
			}
		}
	}
	var result []int
	for i, set := range sets {
		exceeded := slices.ContainsFunc(sets, func(other map[string]bool) bool {
			return len(other) > len(set) && contains(other, set)
		})
		if len(set) > 0 && !exceeded {
			result = append(result, i)
		}
	}
	return result
}

func contains(set, part map[string]bool) bool {
	for topic := range part {
		if !set[topic] {
			return false
		}
	}
	return true
}

// spread finds the member for each number. Each has its share, or one more, and keeps as much of what it holds; those who
// hold most get the shares with one more, for then the least moves.
func spread(eligible []int, claims []claim, members int) []int {
	target := make([]int, len(claims))
	held := make([]int, members)
	for p, c := range claims {
		target[p] = c.holder
		if c.holder != nobody {
			held[c.holder]++
		}
	}
	byHeld := slices.Clone(eligible)
	slices.SortStableFunc(byHeld, func(a, b int) int { return held[b] - held[a] })
	share, more := len(claims)/len(eligible), len(claims)%len(eligible)
	room := make([]int, members) // none for who is not eligible
	for i, m := range byHeld {
		room[m] = share
		if i < more {
			room[m]++
		}
	}
	for p, m := range target {
		if m == nobody {
			continue
		}
		if room[m] == 0 {
			target[p] = nobody
			continue
		}
		room[m]--
	}
	next := 0
	for p, m := range target {
		if m != nobody {
			continue
		}
		for room[eligible[next]] == 0 {
			next++
		}
		target[p] = eligible[next]
		room[eligible[next]]--
	}
	return target
}
