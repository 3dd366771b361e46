package dispatcher

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
)

// The old owner's last transaction is still open on the state topic: a webhook may
// be paused by it. The number starts when that is known, and knows it.
func TestStatesAreReadToTheHighWatermark(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w")
		w.send("w", 0, 1)
		old := w.cluster.Client(t, kgo.TransactionalID("the old owner"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
		if err := old.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		s := record.State{Webhook: "w", Version: 5, PausedAt: record.At(time.Now())}
		s.AddPause(record.PauseManual)
		if err := old.ProduceSync(t.Context(), &kgo.Record{Topic: w.topo.State(), Key: []byte("w"), Value: s.Marshal()}).FirstErr(); err != nil {
			t.Fatal(err)
		}
		a := w.start("a")
		time.Sleep(10 * time.Second)
		if a.has(0) {
			t.Error("the number has started before the state was known")
		}
		if err := old.EndTransaction(t.Context(), kgo.TryCommit); err != nil {
			t.Fatal(err)
		}
		a.owns(0)
		w.until("the event is parked", func() bool { return len(w.parked("w")) == 1 })
		w.counts("w", 0, 0, 0)
	})
}

// A state topic of which only tombstones are left, or nothing but a marker, or nothing at all, is ready at once.
func TestEmptyStates(t *testing.T) {
	for name, fill := range map[string]func(w *world){
		"nothing":    func(*world) {},
		"tombstones": func(w *world) { w.produce(&kgo.Record{Topic: w.topo.State(), Key: []byte("w")}) },
		"an aborted transaction": func(w *world) {
			cl := w.cluster.Client(w.t, kgo.TransactionalID("x"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
			if err := cl.BeginTransaction(); err != nil {
				w.t.Fatal(err)
			}
			if err := cl.ProduceSync(w.t.Context(), &kgo.Record{Topic: w.topo.State(), Key: []byte("w"), Value: []byte("{")}).FirstErr(); err != nil {
				w.t.Fatal(err)
			}
			if err := cl.EndTransaction(w.t.Context(), kgo.TryAbort); err != nil {
				w.t.Fatal(err)
			}
		},
		"what was deleted": func(w *world) {
			w.produce(&kgo.Record{Topic: w.topo.State(), Key: []byte("w")})
			if err := w.cluster.Fake.DeleteRecords(w.topo.State(), 0, 1); err != nil {
				w.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
				w.webhook("w")
				fill(w)
				began := time.Now()
				w.start("a").owns(0)
				if took := time.Since(began); took > time.Second {
					t.Errorf("the number has started after %s", took)
				}
				w.send("w", 0, 1)
				w.until("it is delivered", func() bool { return len(w.delivered("w")) == 1 })
			})
		})
	}
}

// A state that can't be read pauses its webhook, until a person looks; the others are not concerned.
func TestUnreadableState(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("bad")
		w.webhook("good")
		w.produce(&kgo.Record{Topic: w.topo.State(), Key: []byte("bad"), Value: []byte("{")})
		a := w.start("a")
		a.owns(0)
		w.send("bad", 0, 2)
		w.send("good", 0, 2)
		w.until("the good ones are delivered", func() bool { return len(w.delivered("good")) == 2 })
		a.quiesce()
		w.counts("bad", 0, 0, 0)
		if s := w.state("bad"); !s.HasPause(record.PauseManual) || !strings.Contains(s.LastError, "could not be read") {
			t.Errorf("state %s", s.Marshal())
		}
		if r := w.do("bad", record.ActionResume); r.Result != record.ResultDone {
			t.Errorf("resume: %+v", r)
		}
		w.until("the bad ones are delivered", func() bool { return len(w.delivered("bad")) == 2 })
	})
}

// What lies in the topic before the first start is delivered.
func TestFirstStartIsFromTheEarliest(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w")
		w.send("w", 0, 5)
		w.start("a").owns(0)
		w.until("all are delivered", func() bool { return len(w.delivered("w")) == 5 })
		mustEqual(t, "delivered", w.delivered("w"), eventIDs("w", 0, 5))
	})
}

// expire takes the group's offsets away, as the brokers do when it has been empty for long.
func (w *world) expire() {
	w.t.Helper()
	adm := kadm.NewClient(w.client)
	group := w.topo.Prefix() + "dispatcher"
	offsets, err := adm.FetchOffsets(w.t.Context(), group)
	if err != nil {
		w.t.Fatal(err)
	}
	set := kadm.TopicsSet{}
	offsets.Each(func(o kadm.OffsetResponse) { set.Add(o.Topic, o.Partition) })
	if len(set) == 0 {
		w.t.Fatal("there are no offsets that could expire")
	}
	if _, err := adm.DeleteOffsets(w.t.Context(), group, set); err != nil {
		w.t.Fatal(err)
	}
}

// Offsets that have expired are not guessed: the dispatcher refuses, and names the way out. A person answers once.
func TestExpiredOffsets(t *testing.T) {
	for where, want := range map[string][]string{
		"earliest": eventIDs("w", 0, 6),
		"latest":   nil,
		"time":     eventIDs("w", 3, 3),
	} {
		t.Run(where, func(t *testing.T) {
			inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
				w.webhook("w")
				a := w.start("a")
				a.owns(0)
				w.send("w", 0, 2)
				w.until("two are delivered", func() bool { return len(w.delivered("w")) == 2 })
				a.stop()
				if err := a.wait(); err != nil {
					t.Fatal(err)
				}
				w.expire()
				w.send("w", 2, 1)
				time.Sleep(time.Hour)
				middle := time.Now()
				time.Sleep(time.Hour)
				w.send("w", 3, 3)

				err := w.startQuietly("b").wait()
				if err == nil || !strings.Contains(err.Error(), "--from=earliest") || !strings.Contains(err.Error(), w.topo.Events()) {
					t.Fatalf("it ended with %v, want an error that names the topic and --from", err)
				}
				answer := where
				if where == "time" {
					answer = middle.UTC().Format(time.RFC3339)
				}
				from, err := ParseFrom(answer)
				if err != nil {
					t.Fatal(err)
				}
				before := len(w.receiver.Of("w"))
				c := w.start("c", func(o *Options) { o.From = from })
				c.owns(0)
				c.quiesce()
				time.Sleep(time.Minute)
				mustEqual(t, "sent after the answer", ids(w.receiver.Of("w")[before:]), want)

				// It is asked once: the next start goes on from there.
				c.stop()
				if err := c.wait(); err != nil {
					t.Fatal(err)
				}
				before = len(w.receiver.Of("w"))
				w.send("w", 6, 1)
				d := w.start("d")
				d.owns(0)
				time.Sleep(time.Minute)
				mustEqual(t, "sent by the next", ids(w.receiver.Of("w")[before:]), eventIDs("w", 6, 1))
			})
		})
	}
}

// A commit that somebody else has made (a reset of offsets by hand) is taken as it is.
func TestForeignMetadata(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w")
		a := w.start("a")
		a.owns(0)
		w.send("w", 0, 4)
		w.until("all are delivered", func() bool { return len(w.delivered("w")) == 4 })
		a.stop()
		<-a.ended
		offsets := kadm.Offsets{}
		offsets.Add(kadm.Offset{Topic: w.topo.Events(), Partition: 0, At: 2, LeaderEpoch: -1, Metadata: "by hand"})
		if err := kadm.NewClient(w.client).CommitAllOffsets(t.Context(), a.d.cfg.Group, offsets); err != nil {
			t.Fatal(err)
		}
		w.start("a").owns(0)
		w.until("two are sent again", func() bool { return len(w.receiver.Of("w")) == 6 })
		time.Sleep(time.Minute)
		mustEqual(t, "sent", ids(w.receiver.Of("w")), append(eventIDs("w", 0, 4), eventIDs("w", 2, 2)...))
	})
}

// A webhook was deleted while nobody owned its number: its parked events die when
// the number starts. The brokers are slow, so that a cycle looks in while it starts.
func TestDeletedWhileNobodyOwnedIt(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w")
		a := w.start("a")
		a.owns(0)
		w.do("w", record.ActionPause)
		w.send("w", 0, 3)
		w.until("all are parked", func() bool { return len(w.parked("w")) == 3 })
		a.quiesce()
		a.stop()
		<-a.ended
		w.delete("w")
		w.cluster.Net.Host("a").Delay(70*time.Millisecond, w.cluster.Brokers...)
		b := w.start("a")
		w.until("all are dead", func() bool { return len(w.dead()) == 3 })
		b.quiesce()
		for _, d := range w.dead() {
			if d.Reason != record.WebhookDeleted {
				t.Errorf("%s died as %s", d.ID, d.Reason)
			}
		}
		w.counts("w", 0, 3, 0)
		if s := w.state("w"); !s.Healthy() {
			t.Errorf("state %s", s.Marshal())
		}
	})
}

// A number that began twice, because reading failed, acts on nothing of the first try.
func TestRestoreTwice(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w")
		w.receiver.Answer("w", asksToWait(eventID("w", 0), 10*time.Minute))
		a := w.start("a")
		a.owns(0)
		w.send("w", 0, 1)
		w.until("parked", func() bool { return len(w.parked("w")) == 1 })
		a.quiesce()
		a.stop()
		<-a.ended
		failed := w.cluster.Fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Err: kerr.TopicAuthorizationFailed, Count: 1, When: func(r kmsg.Request) bool {
			return r.(*kmsg.ListOffsetsRequest).Topics[0].Topic == w.topo.Parked()
		}})
		w.receiver.Answer("w", kafkatest.After(20*time.Second, kafkatest.Always(200)))
		b := w.start("b")
		b.owns(0)
		if failed.Hits() != 1 {
			t.Fatal("it began only once: this test shows nothing")
		}
		until := w.state("w").HoldUntil
		w.send("w", 1, 30)
		time.Sleep(time.Until(until.Add(10 * time.Second)))
		b.kill()
		c := w.start("c")
		c.owns(0)
		time.Sleep(20 * time.Minute)
		if n := len(w.delivered("w")); n != 31 {
			t.Errorf("%d delivered, want 31; state %s", n, w.state("w").Marshal())
		}
	})
}
