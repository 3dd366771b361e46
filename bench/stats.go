package bench

import (
	"slices"
	"time"
)

// percentile is the smallest of the values that at least p of 100 don't exceed; 0
// without any.
func percentile(values []time.Duration, p float64) time.Duration {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	i := int(p / 100 * float64(len(sorted)))
	if float64(i) == p/100*float64(len(sorted)) {
		i--
	}
	return sorted[min(max(0, i), len(sorted)-1)]
}

// median of an even number is the mean of the two in the middle; 0 without any.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	half := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[half]
	}
	return (sorted[half-1] + sorted[half]) / 2
}
