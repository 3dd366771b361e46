package kafkatest

import (
	"fmt"
	"os"
	"strconv"
	"testing"
)

// Seeds runs a test of random deeds for so many seeds, each a subtest: a quarter of them with -short,
// and as many as REENVIO_TEST_SEEDS says.
func Seeds(t *testing.T, usual int, run func(t *testing.T, seed uint64)) {
	t.Helper()
	seeds := usual
	if testing.Short() {
		seeds = max(1, usual/4)
	}
	if s := os.Getenv("REENVIO_TEST_SEEDS"); s != "" {
		var err error
		if seeds, err = strconv.Atoi(s); err != nil {
			t.Fatalf("REENVIO_TEST_SEEDS: %v", err)
		}
	}
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { run(t, seed) })
	}
}
