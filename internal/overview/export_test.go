package overview

import "testing"

// LowBudget makes what is read of a partition as little as it gets: 200 records.
func LowBudget(t *testing.T) {
	for _, b := range []*budget{&eventsBudget, &retriesBudget, &deadBudget, &commandsBudget} {
		was := *b
		b.records = 1
		t.Cleanup(func() { *b = was })
	}
}
