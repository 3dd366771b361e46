package story_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/story"
)

// TestThePlacesOfOneEvent goes the whole way with one event, and asks after each step. What is done is committed before the question.
func TestThePlacesOfOneEvent(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		events, retry2, retry4 := w.topo.Events(), w.topo.Retry(2*time.Second), w.topo.Retry(4*time.Second)
		w.send(crm, "other")
		d := w.send(crm, "e1")
		w.want(w.tell("e1"), "queued: queued*")
		w.commit(events, 1)
		w.want(w.tell("e1"), "queued: queued*")

		w.fail(d)
		w.retry(d, 2*time.Second)
		w.commit(events, 2, 0) // the other one is slow: e1 is in the set
		s := w.tell("e1")
		w.want(s, "waiting: queued attempt-1:failed waiting-1*")
		if step := s.Copies[0].Last(story.StepWaiting); step.DueAt != d.DueAt || step.Place.Topic != retry2 {
			t.Errorf("got %+v", step)
		}
		w.want(w.tell("other"), "queued: queued*")

		w.fail(d)
		time.Sleep(time.Second)
		w.retry(d, 4*time.Second)
		w.commit(retry2, 1)
		w.want(w.tell("e1"), "waiting: queued attempt-1:failed waiting-1 attempt-2:failed waiting-2*")

		time.Sleep(time.Second)
		w.retry(d, 4*time.Second) // a hop
		w.commit(retry4, 1)
		w.want(w.tell("e1"), "waiting: queued attempt-1:failed waiting-1 attempt-2:failed waiting-2x2*")

		time.Sleep(time.Second)
		paused := &record.State{Parked: &record.Parked{From: 0, Last: 0, Count: 1}}
		paused.AddPause(record.PauseManual)
		w.park(d, record.ParkPaused)
		w.state(paused)
		w.commit(retry4, 2)
		s = w.tell("e1")
		w.want(s, "parked: queued attempt-1:failed waiting-1 attempt-2:failed waiting-2x2 parked-2*")
		if s.State == nil || s.State.Status != record.Paused || s.Copies[0].Last(story.StepParked).Reason != "paused" {
			t.Errorf("got %+v", s)
		}

		w.deliver(d)
		w.state(nil)
		s = w.tell("e1")
		w.want(s, "delivered: queued attempt-1:failed waiting-1 attempt-2:failed waiting-2x2 parked-2 attempt-3:delivered")
		if s.State != nil || s.Copies[0].Bytes != 11 || s.Copies[0].EventType != "order.paid" || s.Copies[0].Source != d.Source {
			t.Errorf("got %+v", s)
		}
	})
}

func TestADeathAndARedrive(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := w.send(crm, "e1")
		d.Attempts = 1
		d.LastAttemptAt = record.At(time.Now())
		w.attempt(d, func(a *record.Attempt) { a.Outcome, a.Next, a.Status = record.Dead, record.NextNone, 500 })
		letter := w.die(d, record.AttemptsExhausted)
		w.commit(w.topo.Events(), 1)
		s := w.tell("e1")
		w.want(s, "dead: queued attempt-1:dead dead-1")
		if step := s.Copies[0].Last(story.StepDead); step.Reason != "attempts_exhausted" || step.Message != "it answered 500" || step.Place != record.SourceOf(letter) {
			t.Errorf("got %+v", step)
		}

		again := w.send(crm, "e1", func(e *record.Event) { e.Redrive = "run7/1" })
		s = w.tell("e1")
		w.want(s, "dead: queued attempt-1:dead dead-1", "queued: queued*")
		if s.Newest().Redrive != "run7/1" || s.Newest().Source != again.Source || s.At(d.Source).Status != story.Dead {
			t.Errorf("got %+v", s)
		}

		// An end without a request: its record says no more than the dead letter.
		w.attempt(again, func(a *record.Attempt) { a.Outcome, a.Next, a.StartedAt = record.Dead, record.NextNone, record.Time{} })
		w.want(w.tell("e1"), "dead: queued attempt-1:dead dead-1", "dead: queued attempt-0:dead")
		w.die(again, record.WebhookDeleted)
		w.want(w.tell("e1"), "dead: queued attempt-1:dead dead-1", "dead: queued dead-0")
	})
}

func TestADeliveryThatWasNotRecorded(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := w.send(crm, "e1")
		w.fail(d)
		w.retry(d, 2*time.Second)
		w.commit(w.topo.Events(), 1)
		w.commit(w.topo.Retry(2*time.Second), 1)
		w.want(w.tell("e1"), "ended: queued attempt-1:failed waiting-1")

		w.send(crm, "e2")
		w.commit(w.topo.Events(), 2)
		w.want(w.tell("e2"), "ended: queued")
		w.send(crm, "slow")
		w.send(crm, "e3")
		w.commit(w.topo.Events(), 4, 2) // e3 is done beyond the offset
		w.want(w.tell("e3"), "ended: queued")
		w.want(w.tell("slow"), "queued: queued*")
	})
}

func TestWhatIsParkedIsSaidByTheState(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		for i := range 4 {
			w.park(w.send(crm, fmt.Sprintf("e%d", i)), record.ParkOverflow)
		}
		w.commit(w.topo.Events(), 4)
		w.state(&record.State{Parked: &record.Parked{From: 1, Done: []int64{2}, Last: 3, Count: 2}})
		for id, want := range map[string]string{"e0": "ended: queued parked-0", "e1": "parked: queued parked-0*", "e2": "ended: queued parked-0", "e3": "parked: queued parked-0*"} {
			w.want(w.tell(id), want)
		}
		w.state(nil)
		w.want(w.tell("e3"), "ended: queued parked-0")
	})
}

// TestWaitingIsFoundHoweverOldItIs: since leaves out what is done, not what is still to come; and the event's own record is looked up by its place.
func TestWaitingIsFoundHoweverOldItIs(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := w.send(crm, "old")
		w.send(crm, "queued")
		w.retry(d, 2*time.Second)
		w.commit(w.topo.Events(), 2, 1)
		p := w.send(crm, "parked")
		w.park(p, record.ParkPaused)
		w.state(&record.State{Parked: &record.Parked{From: 0, Last: 0, Count: 1}})
		w.send(crm, "done")
		w.commit(w.topo.Events(), 4, 1)
		time.Sleep(48 * time.Hour)
		yesterday := time.Now().Add(-24 * time.Hour)
		w.want(w.tellSince("old", yesterday), "waiting: queued waiting-0*")
		w.want(w.tellSince("queued", yesterday), "queued: queued*")
		w.want(w.tellSince("parked", yesterday), "parked: queued parked-0*")
		w.commit(w.topo.Events(), 4)
		w.want(w.tellSince("done", yesterday))
		w.want(w.tellSince("done", yesterday.Add(-48*time.Hour)), "ended: queued")
		s := w.tellSince("nowhere", yesterday)
		if data, err := json.Marshal(s); err != nil || len(s.Copies) != 0 || !json.Valid(data) {
			t.Errorf("got %s, %v", data, err)
		}
	})
}

// TestOthersOfTheNumberAreNotTold: another webhook of the same number, with an event of the same id.
func TestOthersOfTheNumberAreNotTold(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		other := ""
		for i := 0; other == ""; i++ {
			if id := fmt.Sprintf("other-%d", i); w.topo.PartitionFor(id) == w.number {
				other = id
			}
		}
		w.fail(w.send(other, "e1"))
		w.want(w.tell("e1"))
		w.send(crm, "e1")
		w.want(w.tell("e1"), "queued: queued*")
	})
}

func TestAnIDThatIsUsedAgainAndAgain(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		for range 105 {
			w.deliver(w.send(crm, "1"))
		}
		s := w.tell("1")
		if len(s.Copies) != 100 || s.Earlier != 5 || s.Copies[0].Source.Offset != 5 || s.Newest().Source.Offset != 104 {
			t.Fatalf("%d copies, %d earlier", len(s.Copies), s.Earlier)
		}
		for _, c := range s.Copies {
			if outline(c) != "delivered: queued attempt-1:delivered" {
				t.Fatalf("got %s", outline(c))
			}
		}
	})
}

// TestAnOpenTransactionIsNotWaitedForForEver: of a dispatcher that was killed.
func TestAnOpenTransactionIsNotWaitedForForEver(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := w.send(crm, "e1")
		if err := w.writer.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		if err := w.writer.ProduceSync(t.Context(), d.RetryRecord(w.topo.Retry(2*time.Second), w.number)).FirstErr(); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		s := w.tell("e1")
		w.want(s, "queued: queued*")
		if len(s.Incomplete) != 1 || s.Incomplete[0] != w.topo.Retry(2*time.Second) || time.Since(began) > 5*time.Second {
			t.Errorf("incomplete: %v, after %s", s.Incomplete, time.Since(began))
		}
		if err := w.writer.EndTransaction(t.Context(), kgo.TryCommit); err != nil {
			t.Fatal(err)
		}
		w.commit(w.topo.Events(), 1)
		s = w.tell("e1")
		w.want(s, "waiting: queued waiting-0*")
		if len(s.Incomplete) != 0 {
			t.Errorf("incomplete: %v", s.Incomplete)
		}
	})
}

func TestAWatchTellsWhatComes(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.deliver(w.send(crm, "e1")) // long ago
		watch, err := w.reader.Watch(t.Context(), crm)
		if err != nil {
			t.Fatal(err)
		}
		look := func() story.Story {
			s, err := watch.Tell(t.Context(), "e1")
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		w.want(look())
		d := w.send(crm, "e1")
		w.want(look(), "queued: queued*")
		w.fail(d)
		w.retry(d, 2*time.Second)
		w.commit(w.topo.Events(), 2)
		w.want(look(), "waiting: queued attempt-1:failed waiting-1*")
		w.want(look(), "waiting: queued attempt-1:failed waiting-1*")
		w.deliver(d)
		w.commit(w.topo.Retry(2*time.Second), 1)
		w.want(look(), "delivered: queued attempt-1:failed waiting-1 attempt-2:delivered")
	})
}

// TestWhatMovesWhileItIsRead: topics are read one after the other, and an event is not lost between two of them, whichever comes first.
func TestWhatMovesWhileItIsRead(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		events, retry := w.topo.Events(), w.topo.Retry(2*time.Second)
		w.after[retry] = func() { // it was not there when retry-2s was read
			d := w.send(crm, "e0")
			w.retry(d, 2*time.Second)
			w.commit(events, 1)
		}
		w.want(w.tell("e0"))

		d := w.send(crm, "e1")
		w.after[retry] = func() {
			w.retry(d, 2*time.Second)
			w.commit(events, 2)
		}
		w.want(w.tell("e1"), "queued: queued*")
		w.want(w.tell("e1"), "waiting: queued waiting-0*")

		w.after[w.topo.State()] = func() {
			w.park(d, record.ParkPaused)
			w.state(&record.State{Parked: &record.Parked{From: 0, Last: 0, Count: 1}})
			w.commit(retry, 2)
		}
		w.want(w.tell("e1"), "parked: queued waiting-0 parked-0*")
		w.want(w.tell("e1"), "parked: queued waiting-0 parked-0*")
	})
}

// TestAnEventThatComesWhileItIsRead is looked up by its place, since its attempt is read before it, and then met.
func TestAnEventThatComesWhileItIsRead(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		watch, err := w.reader.Watch(t.Context(), crm)
		if err != nil {
			t.Fatal(err)
		}
		w.after[w.topo.Events()] = func() { w.fail(w.send(crm, "e1")) }
		for range 2 {
			s, err := watch.Tell(t.Context(), "e1")
			if err != nil {
				t.Fatal(err)
			}
			w.want(s, "queued: queued* attempt-1:failed")
		}
	})
}

// TestClocksThatDiffer: the second attempt was made by a dispatcher whose clock is an hour behind.
func TestClocksThatDiffer(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := w.send(crm, "e1")
		w.fail(d)
		w.retry(d, 2*time.Second)
		d.Attempts, d.LastAttemptAt = 2, record.At(time.Now().Add(-time.Hour))
		w.attempt(d, func(a *record.Attempt) { a.Outcome, a.Next = record.Failed, record.NextRetry })
		behind := d.RetryRecord(w.topo.Retry(4*time.Second), w.number)
		behind.Timestamp = time.Now().Add(-time.Hour)
		w.write(behind)
		w.commit(w.topo.Events(), 1)
		w.commit(w.topo.Retry(2*time.Second), 1)
		w.want(w.tell("e1"), "waiting: queued attempt-1:failed waiting-1 attempt-2:failed waiting-2*")
	})
}
