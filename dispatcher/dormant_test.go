package dispatcher

import (
	"bytes"
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
)

// The promise: a webhook that only has parked events costs under 100 bytes.
func TestDormantIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(dormant{}) + unsafe.Sizeof(&dormant{}); size >= 100 {
		t.Errorf("%d bytes", size)
	}
}

// What has a short form comes out of it as it was; what would lose something has none.
func TestDormantLosesNothing(t *testing.T) {
	at := rapid.Custom(func(t *rapid.T) record.Time {
		if rapid.Bool().Draw(t, "absent") {
			return record.Time{}
		}
		return record.At(time.UnixMilli(rapid.Int64Range(1, 4e12).Draw(t, "ms")))
	})
	rapid.Check(t, func(t *rapid.T) {
		s := record.State{
			Webhook: "w", ConsecutiveFailures: rapid.OneOf(rapid.Just(10), rapid.IntRange(0, 1<<40)).Draw(t, "failures"),
			StreakStartedAt: at.Draw(t, "streak"), PausedAt: at.Draw(t, "paused"),
			LastStatus: rapid.OneOf(rapid.IntRange(0, 999), rapid.Just(1<<20)).Draw(t, "status"),
			LastError:  rapid.String().Draw(t, "error"), Version: rapid.Int64Min(0).Draw(t, "version"),
		}
		reasons := []record.PauseReason{record.PauseFailures, record.PauseManual, record.PauseGone, record.PauseDisabled, record.PauseConfig, "of a newer build"}
		for _, r := range rapid.SliceOf(rapid.SampledFrom(reasons)).Draw(t, "reasons") {
			s.AddPause(r)
		}
		if rapid.Bool().Draw(t, "has parked") {
			s.Parked = &record.Parked{
				From: rapid.Int64Min(0).Draw(t, "from"), Last: rapid.Int64Min(0).Draw(t, "last"),
				Count: rapid.Int64Min(0).Draw(t, "count"), OldestAt: at.Draw(t, "oldest"),
			}
		}
		switch rapid.IntRange(0, 20).Draw(t, "more") {
		case 0:
			s.Hold = &record.Hold{By: "test"}
		case 1:
			s.HoldUntil = record.At(time.UnixMilli(1))
		case 2:
			s.Head = &record.Head{Source: record.Source{Topic: "events"}}
		case 3:
			s.Heads = []record.Head{{Source: record.Source{Topic: "events"}, Key: "k"}}
		case 4:
			s.Extra = record.Fields{"new": []byte("1")}
		case 5:
			if s.Parked != nil {
				s.Parked.Done = []int64{7}
			}
		case 6:
			if s.Parked != nil {
				s.Parked.Extra = record.Fields{"new": []byte("1")}
			}
		}
		before, err := record.ParseState(s.Marshal()) // as it comes out of the topic
		if err != nil {
			t.Fatal(err)
		}
		d, fits := shorten(&before)
		plain := before.Status == record.Paused && before.HoldUntil.IsZero() && before.HeadCount() == 0 && before.Hold == nil && len(before.Extra) == 0 &&
			!before.HasPause(record.PauseConfig) && !before.HasPause("of a newer build") && before.LastStatus < 1000 && before.ConsecutiveFailures < 1<<30 &&
			(before.Parked == nil || before.Parked.Count > 0 && len(before.Parked.Done) == 0 && len(before.Parked.Extra) == 0)
		if plain != fits {
			t.Fatalf("it has a short form: %v, but should: %v: %s", fits, plain, before.Marshal())
		}
		if !fits {
			return
		}
		if after := d.state("w"); !bytes.Equal(after.Marshal(), before.Marshal()) || after.Status != before.Status {
			t.Fatalf("before %s\nafter %s", before.Marshal(), after.Marshal())
		}
	})
}

// A paused webhook sleeps after a while, and at once after a restart, with its
// configuration unread; it wakes for whatever concerns it.
func TestPausedWebhooksSleep(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		asleep := func(p *process, want bool, parked float64) {
			t.Helper()
			p.look(0, func(n *number) {
				e := n.endpoints.entries["w"]
				if is := n.webhooks["w"] == nil && e.dormant != nil && e.opened == unopened && n.dormants.webhooks == 1; is != want {
					t.Errorf("dormant: %v, %+v", is, n.dormants)
				}
				if n.paused != 1 {
					t.Errorf("%d are paused", n.paused)
				}
			})
			if got := p.metric("parked_records"); got != parked {
				t.Errorf("%v are parked, want %v", got, parked)
			}
			if got := p.metric("webhooks_paused"); got != 1 {
				t.Errorf("%v are paused", got)
			}
		}
		w.webhook("w")
		w.webhook("other")
		a := w.start("a")
		a.owns(0)
		w.do("w", record.ActionPause)
		w.send("w", 0, 5)
		w.until("they are parked", func() bool { return len(w.parked("w")) == 5 })
		asleep(a, false, 5)
		time.Sleep(3 * idleTurn)
		asleep(a, true, 5)

		// An event of another one in the same batch changes nothing; one of its own is parked.
		w.send("other", 0, 1)
		w.send("w", 5, 5)
		w.until("more are parked", func() bool { return len(w.parked("w")) == 10 })
		asleep(a, false, 10)
		for range 5 { // it stays awake while they come
			time.Sleep(idleTurn / 2)
			w.send("w", 10, 1)
			w.send("other", 1, 1)
		}
		w.until("they are parked too", func() bool { return len(w.parked("w")) == 15 })
		asleep(a, false, 15)
		a.stop()
		if err := a.wait(); err != nil {
			t.Fatal(err)
		}

		b := w.start("b")
		b.owns(0)
		asleep(b, true, 15)
		w.change("w", func(e *record.Endpoint) { e.Description = "changed" })
		w.until("it is read", func() (read bool) {
			b.look(0, func(n *number) { read = n.webhooks["w"] != nil })
			return read
		})
		asleep(b, false, 15)
		time.Sleep(3 * idleTurn)
		asleep(b, true, 15)
		if s := w.state("w"); s.Parked == nil || s.Parked.Count != 15 || !s.HasPause(record.PauseManual) {
			t.Errorf("state %s", s.Marshal())
		}
		w.do("w", record.ActionResume)
		w.until("all are delivered", func() bool { return b.metric("parked_records") == 0 && len(w.delivered("w")) == 15 })
		mustEqual(t, "in order", ids(w.receiver.Of("w"))[:10], eventIDs("w", 0, 10))
		b.quiesce()
		if s := w.state("w"); !s.Healthy() {
			t.Errorf("state %s", s.Marshal())
		}
	})
}

// Deleted while it sleeps, its events die.
func TestDeletedWhileItSleeps(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w")
		a := w.start("a")
		a.owns(0)
		w.do("w", record.ActionPause)
		w.send("w", 0, 5)
		w.until("they are parked", func() bool { return len(w.parked("w")) == 5 })
		time.Sleep(3 * idleTurn)
		a.look(0, func(n *number) {
			if n.dormants.webhooks != 1 {
				t.Error("it is awake")
			}
		})
		w.delete("w")
		w.until("they have died", func() bool { return len(w.dead()) == 5 })
		a.look(0, func(n *number) {
			if n.dormants != (dormants{}) || n.paused != 0 {
				t.Errorf("%+v are still dormant, %d paused", n.dormants, n.paused)
			}
		})
	})
}
