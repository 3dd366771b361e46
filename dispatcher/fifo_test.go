package dispatcher

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestFIFO(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var (
			q     fifo[int]
			model []int
			next  int
			taken []int // what came out and was not put back
		)
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				for range rapid.IntRange(1, 100).Draw(t, "n") {
					q.push(next)
					model = append(model, next)
					next++
				}
			},
			"pop": func(t *rapid.T) {
				for range rapid.IntRange(1, 100).Draw(t, "n") {
					v, ok := q.pop()
					if ok != (len(model) > 0) || ok && v != model[0] {
						t.Fatalf("popped %d, %v; want the first of %v", v, ok, model)
					}
					if ok {
						model, taken = model[1:], append(taken, v)
					}
				}
			},
			"put back": func(t *rapid.T) {
				if len(taken) == 0 {
					t.Skip("nothing was taken")
				}
				v := taken[len(taken)-1]
				taken = taken[:len(taken)-1]
				q.putBack(v)
				model = slices.Insert(model, 0, v)
			},
			"take": func(t *rapid.T) {
				divisor := rapid.IntRange(2, 20).Draw(t, "divisor")
				match := func(v int) bool { return v%divisor == 0 }
				want := slices.DeleteFunc(slices.Clone(model), func(v int) bool { return !match(v) })
				if got := q.take(match); !slices.Equal(got, want) {
					t.Fatalf("took %v, want %v", got, want)
				}
				model, taken = slices.DeleteFunc(model, match), nil
			},
			"": func(t *rapid.T) {
				if v, ok := q.peek(); ok != (len(model) > 0) || ok && v != model[0] {
					t.Fatalf("peeked at %d, %v; want the first of %v", v, ok, model)
				}
				var all []int
				q.each(func(v int) { all = append(all, v) })
				if slices.Sort(all); !slices.Equal(all, slices.Sorted(slices.Values(model))) || q.len() != len(model) {
					t.Fatalf("it holds %v (%d), want %v", all, q.len(), model)
				}
			},
		})
	})
}

// What was taken out is not held any more: an event's bytes may be large.
func TestFIFOGivesSpaceBack(t *testing.T) {
	var q fifo[*int]
	for range 10_000 {
		q.push(new(int))
		q.push(new(int))
		q.pop()
	}
	if len(q.items) > 3*q.len() {
		t.Errorf("%d places for %d things", len(q.items), q.len())
	}
	for _, v := range q.items[:q.first] {
		if v != nil {
			t.Fatal("a thing that was taken out is still held")
		}
	}
	for range 10_000 {
		q.pop()
	}
	if q.items != nil {
		t.Error("an empty queue keeps its space")
	}
}
