package dlqconsumer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/kafka"
	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
)

// graveyard is a set of topics in a bubble, without a dispatcher: the test writes what one would.
type graveyard struct {
	*letters
	t *testing.T
}

func inBubble(t *testing.T, test func(t *testing.T, g *graveyard)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cluster := kafkatest.Virtual(t)
		topo := cluster.Topology(t, 3)
		cluster.CreateTopics(t, topo)
		client := cluster.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchMaxBytes(4<<20))
		test(t, &graveyard{&letters{Reader: New(client, topo), topo: topo, cluster: cluster, client: client}, t})
	})
}

// webhook makes a webhook that is known.
func (g *graveyard) webhook(ids ...string) {
	g.t.Helper()
	for _, id := range ids {
		g.write(g.t, &kgo.Record{Topic: g.topo.Endpoints(), Partition: g.topo.PartitionFor(id), Key: []byte(id), Value: record.Endpoint{ID: id, Tenant: "acme"}.Marshal()})
	}
}

// event writes an event and returns it as a dispatcher has it.
func (g *graveyard) event(webhook, id string, change ...func(*record.Event)) *record.Delivery {
	g.t.Helper()
	e := record.Event{Webhook: webhook, ID: id, Type: "order.paid", ContentType: "application/json", Value: []byte(`{"id":"` + id + `"}`)}
	for _, c := range change {
		c(&e)
	}
	rec, err := record.NewEventRecord(g.topo.Events(), g.topo.PartitionFor(webhook), e)
	if err != nil {
		g.t.Fatal(err)
	}
	g.write(g.t, rec)
	return g.read(rec)
}

func (g *graveyard) read(rec *kgo.Record) *record.Delivery {
	g.t.Helper()
	d, err := record.FromEvent(rec)
	if err != nil {
		g.t.Fatal(err)
	}
	return d
}

// die writes what a dispatcher writes in one transaction: the letter, and the attempt that was the last.
func (g *graveyard) die(d *record.Delivery, reason record.DeathReason) {
	g.t.Helper()
	time.Sleep(time.Second)
	p := g.topo.PartitionFor(d.Webhook)
	g.write(g.t, d.DeadLetter(g.topo.DLQ(), p, record.Death{Reason: reason, At: record.At(time.Now()), Dispatcher: "test", Group: "test", Version: "test"}))
	g.attempt(d, record.Dead)
}

func (g *graveyard) attempt(d *record.Delivery, outcome record.Outcome) {
	g.t.Helper()
	g.write(g.t, &kgo.Record{Topic: g.topo.Attempts(), Partition: g.topo.PartitionFor(d.Webhook), Key: d.Key, Value: record.Attempt{
		Webhook: d.Webhook, EventID: d.ID, Attempt: 1, Outcome: outcome, Next: record.NextNone, Status: 200, StartedAt: record.At(time.Now()),
		SourceTopic: d.Source.Topic, SourcePartition: d.Source.Partition, SourceOffset: d.Source.Offset,
	}.Marshal()})
}

// bury is an event that died.
func (g *graveyard) bury(webhook, id string, reason record.DeathReason, change ...func(*record.Event)) *record.Delivery {
	g.t.Helper()
	d := g.event(webhook, id, change...)
	g.die(d, reason)
	return d
}

func (g *graveyard) plan(o RedriveOptions) *Plan {
	g.t.Helper()
	p, err := g.Plan(g.t.Context(), o, quiet)
	if err != nil {
		g.t.Fatal(err)
	}
	return p
}

func quiet(string, int64, int64) {}

func (g *graveyard) writer() *kgo.Client {
	g.t.Helper()
	w, err := NewWriter([]kgo.Opt{kgo.SeedBrokers(g.cluster.Brokers...), kgo.Dialer(g.cluster.Dial)})
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(w.Close)
	return w
}

// redrive plans and sends.
func (g *graveyard) redrive(o RedriveOptions) (*Plan, Sent) {
	g.t.Helper()
	p := g.plan(o)
	sent, err := g.Redrive(g.t.Context(), p, g.writer(), quiet)
	if err != nil {
		g.t.Fatal(err)
	}
	return p, sent
}

// redriven are the events that were sent again, in order of partition and offset.
func (g *graveyard) redriven() (all []*record.Delivery) {
	g.t.Helper()
	for p := range g.topo.Partitions() {
		_, err := kafka.ReadAll(g.t.Context(), g.client, g.topo.Events(), p, func(rec *kgo.Record) error {
			if d := g.read(rec); d.Redrive != "" {
				if want := g.topo.PartitionFor(d.Webhook); p != want {
					g.t.Errorf("%s of %s is in partition %d, want %d", d.ID, d.Webhook, p, want)
				}
				all = append(all, d)
			}
			return nil
		})
		if err != nil {
			g.t.Fatal(err)
		}
	}
	return all
}

func (g *graveyard) wantRedriven(want ...string) {
	g.t.Helper()
	var got []string
	for _, d := range g.redriven() {
		got = append(got, d.ID+" "+d.Redrive)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		g.t.Errorf("redriven: %q, want %q", got, want)
	}
}

func refusals(p *Plan) string {
	var all []string
	for _, r := range p.Refused {
		all = append(all, fmt.Sprintf("%s %d", r.Refusal, r.Count))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

func (g *graveyard) wantRefused(o RedriveOptions, ready int64, want string) *Plan {
	g.t.Helper()
	p := g.plan(o)
	if p.Ready != ready || refusals(p) != want {
		g.t.Errorf("%+v: %d ready, refused: %s; want %d, %s", o, p.Ready, refusals(p), ready, want)
	}
	return p
}

func of(webhooks ...string) RedriveOptions { return RedriveOptions{Filter: Filter{Webhooks: webhooks}} }

func TestRedriveSendsTheOriginalEventAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, g *graveyard) {
		g.webhook("crm")
		dead := g.bury("crm", "e1", record.AttemptsExhausted, func(e *record.Event) {
			e.Value, e.Headers = []byte("\x00\xff"), []kgo.RecordHeader{{Key: "x", Value: []byte("1")}, {Key: "x", Value: []byte{0xff}}}
		})
		p, sent := g.redrive(of("crm"))
		if p.Matched != 1 || p.Ready != 1 || sent.Sent != 1 || sent.Gone != 0 || len(sent.Failed) != 0 {
			t.Errorf("plan %+v, sent %+v", p, sent)
		}
		again := g.redriven()
		if len(again) != 1 {
			t.Fatalf("%d events", len(again))
		}
		d := again[0]
		if d.ID != "e1" || d.Attempts != 0 || d.Redrive != p.Run+"/1" || !bytes.Equal(d.Value, dead.Value) || string(d.Key) != "crm" ||
			fmt.Sprint(d.Headers) != fmt.Sprint(dead.Headers) || time.Since(d.ProducedAt.Time) > time.Minute {
			t.Errorf("got %+v", d)
		}
	})
}

func TestFiltersOfARedrive(t *testing.T) {
	inBubble(t, func(t *testing.T, g *graveyard) {
		a, b := g.webhookIn(0), g.webhookIn(1)
		g.webhook(a, b)
		g.bury(a, "a1", record.AttemptsExhausted)
		time.Sleep(time.Minute) // less than by what clocks may differ: offsets alone don't tell
		between := time.Now()
		g.bury(a, "a2", record.PermanentStatus)
		g.bury(b, "b1", record.AttemptsExhausted)
		g.bury(b, "b2", record.URLBlocked)
		for name, c := range map[string]struct {
			filter Filter
			want   int64
		}{
			"ids":                   {Filter{IDs: []string{"a1", "b2", "none"}}, 2},
			"webhook":               {Filter{Webhooks: []string{b}}, 2},
			"webhooks":              {Filter{Webhooks: []string{a, b}}, 4},
			"reasons":               {Filter{Reasons: []record.DeathReason{record.AttemptsExhausted, record.URLBlocked}}, 3},
			"since":                 {Filter{Since: between}, 3},
			"until":                 {Filter{Until: between}, 1},
			"webhook and reason":    {Filter{Webhooks: []string{b}, Reasons: []record.DeathReason{record.AttemptsExhausted}}, 1},
			"webhook and id of one": {Filter{Webhooks: []string{a}, IDs: []string{"b1"}}, 0},
		} {
			if p := g.plan(RedriveOptions{Filter: c.filter}); p.Matched != c.want || p.Ready != c.want {
				t.Errorf("%s: %d matched, %d ready, want %d", name, p.Matched, p.Ready, c.want)
			}
		}
		if _, err := g.Plan(t.Context(), RedriveOptions{}, quiet); !errors.Is(err, ErrNoFilter) {
			t.Errorf("no filter: %v", err)
		}
		if _, err := g.Plan(t.Context(), RedriveOptions{Filter: Filter{IDs: []string{"a"}}, Run: "a/b"}, quiet); err == nil {
			t.Error("a run with a slash was accepted")
		}
		p := g.plan(of(a, b))
		if fmt.Sprint(p.Reasons) != "[{attempts_exhausted 2} {permanent_status 1} {url_blocked 1}]" || len(p.Webhooks) != 2 || p.Webhooks[0].Count != 2 {
			t.Errorf("reasons %v, webhooks %v", p.Reasons, p.Webhooks)
		}
		g.wantRedriven() // plans write nothing
	})
}

func TestWhatCanNotBeDeliveredIsRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, g *graveyard) {
		w := g.webhookIn(0)
		all := RedriveOptions{Filter: Filter{Since: time.Now().Add(-time.Hour)}, Force: true}
		g.bury(w, "unknown", record.WebhookUnknown)
		g.wantRefused(all, 0, "webhook_unknown 1")
		g.webhook(w)
		g.wantRefused(all, 1, "")
		g.write(t, &kgo.Record{Topic: g.topo.Endpoints(), Partition: 0, Key: []byte(w)})
		g.wantRefused(all, 0, "webhook_deleted 1")
		g.webhook(w)

		// No key, and what is no letter at all.
		d, _ := record.FromEvent(&kgo.Record{Value: []byte("v")})
		g.write(t, d.DeadLetter(g.topo.DLQ(), 0, record.Death{Reason: record.InvalidRecord, At: record.At(time.Now())}), &kgo.Record{Topic: g.topo.DLQ(), Partition: 1, Value: []byte("?")})
		// An invalid record that is valid now, since it was invalid because of its place; and one that lies in a wrong place.
		g.bury(w, "moved twice", record.InvalidRecord, func(e *record.Event) { e.ID = "moved-twice" })
		stray := g.event(w, "stray")
		g.write(t, stray.DeadLetter(g.topo.DLQ(), 2, record.Death{Reason: record.InvalidRecord, At: record.At(time.Now())}))
		// One without its value.
		g.write(t, g.event(w, "huge").ValuelessDeadLetter(g.topo.DLQ(), 0, record.Death{Reason: record.TooLarge, At: record.At(time.Now())}))
		// One whose time has passed.
		g.bury(w, "late", record.Expired, func(e *record.Event) { e.Expiry = record.At(time.Now().Add(-time.Second)) })
		p := g.wantRefused(all, 2, "expired 1, foreign 1, invalid_record 1, value_dropped 1, wrong_partition 1")
		if i := slices.IndexFunc(p.Refused, func(r Refused) bool { return r.Refusal == Foreign }); p.Refused[i].First != "1/0" {
			t.Errorf("the foreign record is said to be at %s", p.Refused[i].First)
		}
		for _, r := range p.Refused {
			if r.Refusal.Advice() == "" {
				t.Errorf("no advice for %s", r.Refusal)
			}
		}
	})
}

func TestALetterWithoutAllHeadersNeedsForce(t *testing.T) {
	inBubble(t, func(t *testing.T, g *graveyard) {
		g.webhook("crm")
		d := g.event("crm", "e1", func(e *record.Event) { e.Headers = []kgo.RecordHeader{{Key: "x", Value: []byte("1")}} })
		g.write(t, d.MinimalDeadLetter(g.topo.DLQ(), g.topo.PartitionFor("crm"), record.Death{Reason: record.TooLarge, At: record.At(time.Now())}))
		o := of("crm")
		g.wantRefused(o, 0, "headers_dropped 1")
		o.Force = true
		g.wantRefused(o, 1, "")
	})
}

func TestWhatWasDeliveredSinceNeedsForce(t *testing.T) {
	inBubble(t, func(t *testing.T, g *graveyard) {
		g.webhook("crm")
		// Delivered before it died is another event of the same id, or a copy: it does not count.
		copied := g.event("crm", "e1")
		g.attempt(copied, record.Delivered)
		g.bury("crm", "e1", record.AttemptsExhausted)
		o := of("crm")
		g.wantRefused(o, 1, "")

		p, _ := g.redrive(o)
		again := g.redriven()[0]
		g.wantRefused(o, 0, "already_redriven 1")
		forced := o
		forced.Force = true
		g.wantRefused(forced, 0, "already_redriven 1")
		g.attempt(again, record.Failed)
		g.wantRefused(forced, 0, "already_redriven 1")

		g.attempt(again, record.Delivered)
		g.wantRefused(o, 0, "delivered_since 1")
		g.wantRefused(forced, 1, "")
		if same := g.plan(RedriveOptions{Filter: o.Filter, Run: p.Run, Force: true}); same.SentBefore != 1 || same.Ready != 0 {
			t.Errorf("the same run again: %+v", same)
		}
		second, _ := g.redrive(forced)
		g.wantRedriven("e1 "+p.Run+"/1", "e1 "+second.Run+"/1")
		g.wantRefused(forced, 0, "already_redriven 1")
	})
}

func TestAnEventThatDiesAgainIsCounted(t *testing.T) {
	inBubble(t, func(t *testing.T, g *graveyard) {
		g.webhook("crm")
		g.bury("crm", "e1", record.AttemptsExhausted)
		o := of("crm")
		var want []string
		for n := 1; n <= MaxRedrives; n++ {
			p, _ := g.redrive(o)
			want = append(want, fmt.Sprintf("e1 %s/%d", p.Run, n))
			again := g.redriven()
			g.die(again[len(again)-1], record.AttemptsExhausted)
		}
		g.wantRedriven(want...)
		g.wantRefused(o, 0, "redriven_too_often 1, superseded 5")
		o.Force = true
		p := g.wantRefused(o, 1, "superseded 5")
		if p.Matched != 6 {
			t.Errorf("%d letters matched", p.Matched)
		}
	})
}

// A producer that sends an id anew begins another life of it, of which an earlier redrive says nothing.
func TestARedriveOfAnEarlierLifeDoesNotCount(t *testing.T) {
	inBubble(t, func(t *testing.T, g *graveyard) {
		g.webhook("crm")
		g.bury("crm", "e0", record.AttemptsExhausted) // has both lives be looked at
		g.bury("crm", "e1", record.AttemptsExhausted)
		g.redrive(RedriveOptions{Filter: Filter{IDs: []string{"e1"}}})
		g.attempt(g.redriven()[0], record.Delivered)
		g.bury("crm", "e1", record.AttemptsExhausted)
		g.wantRefused(of("crm"), 2, "superseded 1")
	})
}

func TestWhatLiesTooFarBackIsSaidToBeUnknowable(t *testing.T) {
	inBubble(t, func(t *testing.T, g *graveyard) {
		g.webhook("crm")
		p := g.topo.PartitionFor("crm")
		g.bury("crm", "e0", record.AttemptsExhausted)
		g.event("crm", "between")
		time.Sleep(time.Hour)
		last := g.bury("crm", "e1", record.AttemptsExhausted)
		if plan := g.plan(of("crm")); plan.Unknowable != 0 || plan.Ready != 2 {
			t.Errorf("%d of %d are unknowable, while all is there", plan.Unknowable, plan.Ready)
		}
		gone := kadm.Offsets{}
		gone.Add(kadm.Offset{Topic: g.topo.Events(), Partition: p, At: last.Source.Offset})
		if _, err := kadm.NewClient(g.client).DeleteRecords(t.Context(), gone); err != nil {
			t.Fatal(err)
		}
		if plan := g.plan(of("crm")); plan.Unknowable != 1 || plan.Ready != 2 {
			t.Errorf("%d of %d are unknowable, want 1 of 2", plan.Unknowable, plan.Ready)
		}
	})
}

func TestALetterThatIsGoneIsCounted(t *testing.T) {
	inBubble(t, func(t *testing.T, g *graveyard) {
		g.webhook("crm")
		for _, id := range []string{"e0", "e1", "e2"} {
			g.bury("crm", id, record.AttemptsExhausted)
		}
		plan := g.plan(of("crm"))
		gone := kadm.Offsets{}
		gone.Add(kadm.Offset{Topic: g.topo.DLQ(), Partition: g.topo.PartitionFor("crm"), At: 2})
		if _, err := kadm.NewClient(g.client).DeleteRecords(t.Context(), gone); err != nil {
			t.Fatal(err)
		}
		sent, err := g.Redrive(t.Context(), plan, g.writer(), quiet)
		if err != nil || sent.Sent != 1 || sent.Gone != 2 {
			t.Errorf("sent %+v, %v", sent, err)
		}
		g.wantRedriven("e2 " + plan.Run + "/1")
	})
}

// The later letter stands for the event even when the filter does not want it.
func TestALaterLetterSupersedesWhateverItsReason(t *testing.T) {
	inBubble(t, func(t *testing.T, g *graveyard) {
		g.webhook("crm", "other")
		g.bury("crm", "e1", record.AttemptsExhausted)
		g.bury("other", "e1", record.AttemptsExhausted) // the id of another webhook is another event
		g.redrive(of("crm"))
		g.die(g.redriven()[0], record.URLBlocked)
		g.wantRefused(RedriveOptions{Filter: Filter{Reasons: []record.DeathReason{record.AttemptsExhausted}}}, 1, "superseded 1")
	})
}

func TestARunGoesOnWhereItWasInterrupted(t *testing.T) {
	inBubble(t, func(t *testing.T, g *graveyard) {
		g.webhook("crm")
		g.event("crm", "another") // the letters' own events would lie here
		const n = 2*roundRecords + 500
		var recs []*kgo.Record
		for i := range n {
			recs = append(recs, g.letter(t, "crm", fmt.Sprintf("e%d", i), record.AttemptsExhausted, i))
		}
		g.write(t, recs...)
		o := of("crm")
		o.Run = "nightly"
		ctx, cancel := context.WithCancel(t.Context())
		first := g.plan(o)
		sent, err := g.Redrive(ctx, first, g.writer(), func(_ string, done, _ int64) {
			if done > 0 {
				cancel()
			}
		})
		if !errors.Is(err, context.Canceled) || sent.Sent != roundRecords {
			t.Fatalf("interrupted after %d: %v", sent.Sent, err)
		}
		// One of those sent dies again meanwhile: a run never takes up what it sent.
		g.die(g.redriven()[0], record.AttemptsExhausted)
		p, sent := g.redrive(o)
		if p.Run != "nightly" || p.SentBefore != roundRecords || p.Ready != n-roundRecords || sent.Sent != n-roundRecords || refusals(p) != "superseded 1" {
			t.Errorf("going on: %d sent before, %d ready, %d sent, refused: %s", p.SentBefore, p.Ready, sent.Sent, refusals(p))
		}
		seen := map[string]int{}
		for _, d := range g.redriven() {
			seen[d.ID]++
		}
		if len(seen) != n || len(g.redriven()) != n {
			t.Errorf("%d events, %d records, want %d of each", len(seen), len(g.redriven()), n)
		}
		if p, _ := g.redrive(o); p.Ready != 0 || p.SentBefore != n {
			t.Errorf("once more: %+v", p)
		}
	})
}

func TestEventsOfAPausedOrHeldWebhookWait(t *testing.T) {
	inBubble(t, func(t *testing.T, g *graveyard) {
		a, b, c := g.webhookIn(0), g.webhookIn(1), g.webhookIn(2)
		g.webhook(a, b, c)
		for _, w := range []string{a, b, c} {
			g.bury(w, "e-"+w, record.AttemptsExhausted)
		}
		s := record.State{Webhook: a}
		s.AddPause(record.PauseFailures)
		g.write(t,
			&kgo.Record{Topic: g.topo.State(), Partition: 0, Key: []byte(a), Value: s.Marshal()},
			&kgo.Record{Topic: g.topo.State(), Partition: 1, Key: []byte(b), Value: s.Marshal()},
			&kgo.Record{Topic: g.topo.State(), Partition: 1, Key: []byte(b)}, // healthy again
			&kgo.Record{Topic: g.topo.State(), Partition: 2, Key: []byte(record.NumberKey), Value: record.NumberState{Holds: []record.Hold{{Scope: record.HoldTenant, Value: "acme"}}}.Marshal()},
		)
		p := g.plan(of(a, b, c))
		waiting := map[string]bool{}
		for _, w := range p.Webhooks {
			waiting[w.Webhook] = w.Waiting
		}
		if p.Ready != 3 || p.Waiting != 2 || !waiting[a] || waiting[b] || !waiting[c] {
			t.Errorf("%d ready, %d waiting: %v", p.Ready, p.Waiting, waiting)
		}
	})
}

func TestARecordThatKafkaRefusesHoldsUpNoOther(t *testing.T) {
	inBubble(t, func(t *testing.T, g *graveyard) {
		g.webhook("crm")
		noise := make([]byte, record.MaxEventBytes)
		for i, x := 0, uint32(1); i < len(noise); i++ {
			x = x*1664525 + 1013904223
			noise[i] = byte(x >> 24)
		}
		p := g.topo.PartitionFor("crm")
		for i, value := range [][]byte{[]byte("a"), noise, bytes.Repeat([]byte("z"), 1<<20), []byte("b")} {
			d, _ := record.FromEvent(&kgo.Record{Topic: g.topo.Events(), Partition: p, Key: []byte("crm"), Value: value, Headers: []kgo.RecordHeader{{Key: "ce_id", Value: fmt.Appendf(nil, "e%d", i)}}})
			g.write(t, d.DeadLetter(g.topo.DLQ(), p, record.Death{Reason: record.TooLarge, At: record.At(time.Now())}))
		}
		plan, sent := g.redrive(of("crm"))
		if sent.Sent != 3 || len(sent.Failed) != 1 || sent.Failed[0].Refusal != Unwritable || sent.Failed[0].First != fmt.Sprintf("%d/1", p) || sent.Gone != 0 {
			t.Errorf("sent %+v", sent)
		}
		g.wantRedriven("e0 "+plan.Run+"/1", "e2 "+plan.Run+"/1", "e3 "+plan.Run+"/1")
	})
}
