package chaos_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/reenvio/reenvio/internal/record"
)

// deed is one kind of thing that is done to the pipeline beside the faults.
type deed string

const (
	urlMoved        deed = "URL moved"
	secretRotated   deed = "secret rotated"
	timeoutChanged  deed = "timeout changed"
	attemptsChanged deed = "attempts changed"
	orderChanged    deed = "ordering changed"
	rateChanged     deed = "rate limit changed"
	inFlightChanged deed = "max_in_flight changed"
	headerChanged   deed = "header changed"
	deleted         deed = "webhook deleted"
	madeAgain       deed = "webhook made again"
	redriven        deed = "dead events redriven"
	copied          deed = "event sent again"
	shared          deed = "event sent to another webhook, too"
	stoppedBusy     deed = "SIGTERM with requests in flight"
)

// deeds are those that a run must have done: one that did nothing proves nothing.
var deeds = []deed{
	urlMoved, secretRotated, timeoutChanged, attemptsChanged, orderChanged, rateChanged, inFlightChanged, headerChanged,
	deleted, madeAgain, redriven, copied, shared,
	deed(record.ActionPause), deed(record.ActionResume), deed(record.ActionHold), deed(record.ActionRelease),
}

func (w *world) did(d deed) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deeds[d]++
}

// checkDeeds: everything was done that a run of this length has the time for.
func (w *world) checkDeeds(length time.Duration) {
	for _, d := range deeds {
		if w.deeds[d] == 0 && length >= time.Minute {
			w.T.Errorf("%s: not once in %s, so this run does not show that it is survived", d, length)
		}
	}
}

func (w *world) deedsText() string {
	var all []string
	for _, d := range slices.Sorted(maps.Keys(w.deeds)) {
		all = append(all, fmt.Sprintf("%s %d", d, w.deeds[d]))
	}
	return strings.Join(all, ", ")
}
