package crash_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/reenvio/reenvio/e2e/procs"
	"github.com/reenvio/reenvio/internal/kafkatest"
)

// world is a pipeline whose dispatchers die.
type world struct {
	*procs.World
	stops []procs.Crash // those who went on later
}

// limit ends a test that waits for what does not come.
const limit = 3 * time.Minute

func newWorld(t *testing.T, numbers int32, script kafkatest.Script) *world {
	t.Helper()
	return &world{World: procs.New(t, kafkatest.Start(t), numbers, script, limit)}
}

// first waits until a dispatcher has made an attempt of each of the numbers, begun
// after since, and returns the begin of the first of each. An attempt is seen here
// when it has been committed.
func (w *world) first(dispatcher string, since time.Time, numbers []int32) map[int32]time.Time {
	w.T.Helper()
	first, seen := map[int32]time.Time{}, 0
	err := w.Attempts.Await(w.Ctx, func() bool {
		all := w.Attempts.All()
		for _, a := range all[seen:] {
			if at, ok := first[a.Number]; a.Dispatcher == dispatcher && a.Started.After(since) && (!ok || a.Started.Before(at)) {
				first[a.Number] = a.Started
			}
		}
		seen = len(all)
		for _, p := range numbers {
			if first[p].IsZero() {
				return false
			}
		}
		return true
	})
	w.Must(err, fmt.Sprintf("waiting for dispatcher %s to deliver on %v: %d of %d seen", dispatcher, numbers, len(first), len(numbers)))
	return first
}
