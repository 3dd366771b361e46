package history

import (
	"slices"
	"time"
)

// Distribution is a few figures of many durations.
type Distribution struct {
	Count               int
	P50, P99, P999, Max time.Duration
}

// distribution sorts its argument.
func distribution(all []time.Duration) Distribution {
	if len(all) == 0 {
		return Distribution{}
	}
	slices.Sort(all)
	// The nearest rank: the smallest that as many are not above.
	rank := func(permille int) time.Duration { return all[(len(all)*permille+999)/1000-1] }
	return Distribution{Count: len(all), P50: rank(500), P99: rank(990), P999: rank(999), Max: all[len(all)-1]}
}
