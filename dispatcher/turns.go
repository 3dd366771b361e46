package dispatcher

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Two clients take turns at fetching, since kgo can't change how long a fetch waits
// for news. New records end it at once, but a partition that was added or resumed
// meanwhile is not in it, and waits for its end. So whenever something was added or
// is paused, the quick client fetches. When nothing was for a while, nothing can be
// waiting, and the patient one takes over: an idle dispatcher asks Kafka a tenth as
// often.
//
// The interleaving that matters, with the patient client's fetch waiting:
//
//  1. a topic is paused, and the fetch that began just then leaves it out;
//  2. the number has taken in what it had, and resumes the topic;
//  3. its records must not wait for that fetch.
//
// So a pause by itself gives the turn to the quick client, which ends the other one's
// fetch; a resume comes too late for it.
const (
	quickWait   = 500 * time.Millisecond
	patientWait = 5 * time.Second
	// quickFor is how long nothing must have been added or paused before the patient
	// client takes over: a change costs about as much as a number's start.
	quickFor = 10 * time.Second
)

// hurryLocked makes the quick client take over, or keep, its turn.
func (f *fetcher) hurryLocked() {
	f.quickUntil = time.Now().Add(quickFor)
	if f.cl == f.patient && f.stop != nil {
		f.stop()
	}
}

// takeTurnLocked gives the turn to the client whose it is now, between two polls,
// and tells how long it is sure to keep it.
func (f *fetcher) takeTurnLocked(now time.Time) time.Duration {
	if !now.Before(f.quickUntil) && f.pausedLocked() {
		f.quickUntil = now.Add(quickFor)
	}
	if keeps := f.quickUntil.Sub(now); keeps > 0 {
		f.moveLocked(f.quick)
		return keeps
	}
	f.moveLocked(f.patient)
	return forever
}

// forever: hurryLocked ends it.
const forever time.Duration = math.MaxInt64

func (f *fetcher) pausedLocked() bool {
	for _, s := range f.sinks {
		for topic := range s.next {
			if s.paused(topic) {
				return true
			}
		}
	}
	return false
}

// moveLocked has a client fetch on from where the other one has got to. What that
// one holds and has handed to nobody is fetched again.
func (f *fetcher) moveLocked(to *kgo.Client) {
	if f.cl == to {
		return
	}
	from, paused := map[string]map[int32]kgo.Offset{}, map[string][]int32{}
	for p, s := range f.sinks {
		s.offsets(from)
		for topic := range s.next {
			if s.paused(topic) {
				paused[topic] = append(paused[topic], p)
			}
		}
	}
	f.dropLocked(slices.Collect(maps.Values(f.sinks))...)
	to.PauseFetchPartitions(paused)
	to.AddConsumePartitions(from)
	f.cl = to
}
