package overview_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/overview"
	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/tracker"
	"github.com/reenvio/reenvio/schemas/schematest"
)

// wantProblem finds the one problem that has all parts.
func wantProblem(t *testing.T, o *overview.Overview, parts ...string) {
	t.Helper()
	if o.OK {
		t.Error("it says that all is well")
	}
	for _, p := range o.Problems {
		text := p.Problem + " " + p.NextStep
		if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(text, part) }) {
			return
		}
	}
	t.Errorf("no problem has %q: %+v", parts, o.Problems)
}

func valid(t *testing.T, o *overview.Overview) {
	t.Helper()
	data, err := json.Marshal(o)
	if err == nil {
		err = schematest.Validate("status", data)
	}
	if err != nil {
		t.Errorf("%v\n%s", err, data)
	}
}

func TestNobodyHasEverRun(t *testing.T) {
	inWorld(t, 3, func(t *testing.T, w *world) {
		began := time.Now()
		w.events("a", 2)
		o := w.read()
		if took := time.Since(began); took > time.Second {
			t.Errorf("it took %v, though there is no group to wait for", took)
		}
		wantProblem(t, o, "No dispatcher runs", "Kafka knows no group "+w.group, "reenvio dispatcher")
		n := o.Numbers[w.topo.PartitionFor("a")]
		if o.Backlog != 2 || o.BacklogIsBound || n.Backlog != 2 || n.IncompleteReason != overview.NoOwner || n.IncompleteWebhook != "a" || n.IncompleteEventID != "a-0" || !n.IncompleteSince.Equal(began.Truncate(time.Millisecond)) {
			t.Errorf("got %d, %+v", o.Backlog, n)
		}
		if other := o.Numbers[(n.Number+1)%3]; other.Backlog != 0 || other.IncompleteReason != "" {
			t.Errorf("of a number without events: %+v", other)
		}
		valid(t, o)
	})
}

func TestAllIsWell(t *testing.T) {
	inWorld(t, 3, func(t *testing.T, w *world) {
		w.join("one")
		w.join("two")
		w.until(func(o *overview.Overview) bool { return len(o.Dispatchers) == 2 && o.OwnedNumbers == 3 })
		o := w.read()
		if !o.OK || o.Headline != "3 of 3 numbers owned by 2 dispatchers; backlog 0; 0 retries wait; 0 webhooks paused; 0 dead in the last hour" {
			t.Errorf("got %s, %+v", o.Headline, o.Problems)
		}
		if d := o.Dispatchers[0]; d.Instance != "one" || d.Host != "127.0.0.1" || len(d.Numbers) == 0 || o.Numbers[d.Numbers[0]].Owner != "one" {
			t.Errorf("got %+v", o.Dispatchers)
		}
		valid(t, o)
	})
}

func (w *world) until(so func(*overview.Overview) bool) {
	w.t.Helper()
	for range 1_000 {
		if so(w.read()) {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	w.t.Fatalf("it never became so: %+v", w.read())
}

func TestWhatIsDoneBeyondTheOffsetIsNoBacklog(t *testing.T) {
	inWorld(t, 1, func(t *testing.T, w *world) {
		w.events("a", 10)
		tr := tracker.New(0, tracker.Set{})
		for offset := range int64(8) {
			tr.Received(offset)
		}
		for _, offset := range []int64{0, 1, 3, 4, 6} {
			tr.Complete(offset)
		}
		s := tr.Snapshot()
		metadata, err := tracker.Encode(tracker.CycleID{Instance: "gone", Boot: "b", N: 7}, s.Done)
		if err != nil {
			t.Fatal(err)
		}
		w.commit(w.topo.Events(), 0, s.Offset, metadata)
		w.commit(w.topo.Commands(), 0, 0, metadata)
		n := w.read().Numbers[0]
		if n.Backlog != 5 || n.IncompleteOffset != 2 || n.IncompleteEventID != "a-2" || n.LastCommitBy != "gone" || n.IncompleteDetail != "its last owner was gone" { // 2, 5, 7, 8, 9
			t.Errorf("got %+v", n)
		}
	})
}

func TestMetadataOfAnotherToolCountsAllAsOpen(t *testing.T) {
	inWorld(t, 1, func(t *testing.T, w *world) {
		w.events("a", 10)
		w.commit(w.topo.Events(), 0, 4, "somebody's note")
		o := w.read()
		if o.Backlog != 6 || o.Numbers[0].IncompleteOffset != 4 {
			t.Errorf("got %+v", o.Numbers[0])
		}
		if len(o.Notes) != 1 || !strings.Contains(o.Notes[0], w.topo.Events()) || !strings.Contains(o.Notes[0], "something else than a dispatcher") {
			t.Errorf("notes: %q", o.Notes)
		}
	})
}

func TestExpiredOffsets(t *testing.T) {
	inWorld(t, 2, func(t *testing.T, w *world) {
		w.numberState(1, record.NumberState{Topics: []string{w.topo.Commands(), w.topo.Events()}})
		w.numberState(0, record.NumberState{Topics: []string{w.topo.Events()}})
		w.commit(w.topo.Events(), 0, 0, "")
		wantProblem(t, w.read(), "The committed offsets of number 1 have expired", "reenvio dispatcher --from=earliest")
	})
}

func TestOffsetsThatCannotBeRight(t *testing.T) {
	inWorld(t, 1, func(t *testing.T, w *world) {
		w.events("a", 10)
		w.commit(w.topo.Events(), 0, 4, "")
		w.commit(w.topo.Retry(2*time.Second), 0, 40, "")
		w.deleteBelow(w.topo.Events(), 7)
		o := w.read()
		wantProblem(t, o, "Retention took up to 3 records of "+w.topo.Events()+"/0", "offsets 4 to 6")
		wantProblem(t, o, "The committed offset of "+w.topo.Retry(2*time.Second)+"/0 is 40, but the topic ends at 0")
		if o.Backlog != 3 || o.Numbers[0].IncompleteOffset != 7 {
			t.Errorf("got %+v", o.Numbers[0])
		}
	})
}

func TestANumberThatIsSplitHasNoOwner(t *testing.T) {
	inWorld(t, 2, func(t *testing.T, w *world) {
		w.join("one")
		w.join("stranger", w.topo.Events()) // takes events of a number, and nothing else of it
		w.until(func(o *overview.Overview) bool { return len(o.Dispatchers) == 2 && o.GroupState == "Stable" })
		o := w.read()
		wantProblem(t, o, "1 of 2 numbers without an owner", "one version", "retry.tiers")
		if o.OwnedNumbers != 1 || strings.Contains(o.Headline, "2 of 2") {
			t.Errorf("got %s", o.Headline)
		}
	})
}

func TestWhyTheFirstEventIsNotDone(t *testing.T) {
	far := record.At(time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC))
	for _, c := range []struct {
		name     string
		ordering record.Ordering
		state    record.State
		holds    []record.Hold
		want     overview.Reason
		detail   string
		problem  []string
	}{
		{name: "in flight", want: overview.InFlight},
		{name: "behind a strict head", ordering: record.OrderStrict, state: head(0, ""), want: overview.StrictHead, detail: "events/0/0, failed attempts: 3, the next is due 2100-01-01"},
		{name: "behind a head of its key", ordering: record.OrderStrictKey, state: head(0, ""), want: overview.StrictHead},
		{name: "head of another key", ordering: record.OrderStrictKey, state: head(0, "k"), want: overview.InFlight},
		{name: "the head itself", ordering: record.OrderStrict, state: head(1, ""), want: overview.InFlight},
		{name: "a head from before, in no strict order", ordering: record.OrderNone, state: head(0, ""), want: overview.InFlight},
		{name: "asked to wait", state: record.State{HoldUntil: far}, want: overview.Held, detail: "until 2100-01-01"},
		{name: "asked to wait until a time that has passed", state: record.State{HoldUntil: record.At(time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC))}, want: overview.InFlight},
		{name: "held", state: record.State{Hold: &record.Hold{By: "ana"}}, want: overview.Held, detail: "webhook, by ana"},
		{name: "tenant held", holds: []record.Hold{{Scope: record.HoldTenant, Value: "acme", By: "ana"}}, want: overview.Held, detail: "tenant acme, by ana"},
		{name: "another tenant held", holds: []record.Hold{{Scope: record.HoldTenant, Value: "other"}}, want: overview.InFlight},
		{name: "host held", holds: []record.Hold{{Scope: record.HoldHost, Value: "hooks.example"}}, want: overview.Held, detail: "host hooks.example"},
		{name: "all held", holds: []record.Hold{{Scope: record.HoldAll, By: "ana", Reason: "night"}}, want: overview.Held, detail: "all, by ana", problem: []string{"Everything is held by ana (night)", "reenvio release --all"}},
		{name: "configuration", state: paused(record.PauseConfig, record.PauseManual), want: overview.Config, problem: []string{"configuration of the webhook a can't be used", "reenvio webhooks update a"}},
		{name: "paused", state: paused(record.PauseManual), want: overview.WebhookPaused},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, 1, func(t *testing.T, w *world) {
				w.endpoint(record.Endpoint{ID: "a", Tenant: "acme", URL: "https://hooks.example/x", URLHost: "hooks.example", Ordering: c.ordering})
				w.events("a", 2)
				w.commit(w.topo.Events(), 0, 1, "") // the first of them is a head, in a delay topic by now, or done
				if c.state.Head != nil {
					c.state.Head.Source.Topic = w.topo.Events()
				}
				c.state.Webhook = "a"
				w.state(c.state)
				w.numberState(0, record.NumberState{Holds: c.holds})
				w.join("one")
				w.until(func(o *overview.Overview) bool { return o.OwnedNumbers == 1 })
				o := w.read()
				n := o.Numbers[0]
				if n.IncompleteReason != c.want || !strings.Contains(n.IncompleteDetail, c.detail) {
					t.Errorf("got %s (%s)", n.IncompleteReason, n.IncompleteDetail)
				}
				if c.problem != nil {
					wantProblem(t, o, c.problem...)
				} else if !o.OK {
					t.Errorf("problems: %+v", o.Problems)
				}
				valid(t, o)
			})
		})
	}
}

// head is the state of a webhook whose event of that offset has failed.
func head(offset int64, key string) record.State {
	due := record.At(time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC))
	return record.State{Head: &record.Head{Attempts: 3, DueAt: due, Key: record.OrderingKeyHash(key), Source: record.Source{Offset: offset}}}
}

func paused(reasons ...record.PauseReason) record.State {
	s := record.State{PausedAt: record.At(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))}
	for _, r := range reasons {
		s.AddPause(r)
	}
	return s
}

func TestWebhooksThatWaitForAPerson(t *testing.T) {
	inWorld(t, 3, func(t *testing.T, w *world) {
		w.endpoint(record.Endpoint{ID: "down", Tenant: "acme", URL: "https://down.example/secret/path", URLHost: "down.example"})
		w.endpoint(record.Endpoint{ID: "well"})
		w.endpoint(record.Endpoint{ID: "gone"})
		w.produce(&kgo.Record{Topic: w.topo.Endpoints(), Partition: w.topo.PartitionFor("gone"), Key: []byte("gone")})
		down := paused(record.PauseFailures)
		down.Webhook, down.ConsecutiveFailures, down.LastStatus, down.LastError = "down", 10, 503, "status 503"
		down.Parked = &record.Parked{Count: 7, OldestAt: record.At(time.Now())}
		w.state(down)
		later := paused(record.PauseDisabled, record.PauseManual)
		later.Webhook, later.PausedAt = "later", record.At(down.PausedAt.Add(time.Hour))
		w.state(later)
		w.state(record.State{Webhook: "back", Parked: &record.Parked{Count: 3}})
		w.endpoint(record.Endpoint{ID: "of-tenant", Tenant: "held corp"})
		w.state(record.State{Webhook: "of-tenant", Parked: &record.Parked{Count: 6}})
		w.numberState(w.topo.PartitionFor("of-tenant"), record.NumberState{Holds: []record.Hold{{Scope: record.HoldTenant, Value: "held corp", At: record.At(time.Now())}}})
		w.state(record.State{Webhook: "held", Hold: &record.Hold{By: "ana"}, Parked: &record.Parked{Count: 2}})
		healed := paused(record.PauseManual)
		healed.Webhook = "healed"
		w.state(healed)
		w.produce(&kgo.Record{Topic: w.topo.State(), Partition: w.topo.PartitionFor("healed"), Key: []byte("healed")})

		o := w.read()
		if o.Webhooks != 3 || o.WebhooksPaused != 2 || o.WebhooksReturning != 1 || o.ParkedEvents != 18 {
			t.Errorf("got %d webhooks, %d paused, %d returning, %d parked", o.Webhooks, o.WebhooksPaused, o.WebhooksReturning, o.ParkedEvents)
		}
		if p := o.Paused[1]; p.Webhook != "down" || p.Tenant != "acme" || p.URLHost != "down.example" || p.Parked != 7 || p.LastStatus != 503 || p.ConsecutiveFailures != 10 || !strings.Contains(p.NextStep, "reenvio webhooks resume down") {
			t.Errorf("got %+v", p)
		}
		if p := o.Paused[0]; p.Webhook != "later" || p.NextStep != "reenvio webhooks update later --enabled=true" {
			t.Errorf("got %+v", p)
		}
		if r := o.Returning[0]; r.Webhook != "back" || r.Parked != 3 {
			t.Errorf("got %+v", r)
		}
		if h := o.Holds[1]; h.Value != "held corp" || h.Parked != 6 {
			t.Errorf("got %+v", h)
		}
		if h := o.Holds[0]; len(o.Holds) != 2 || h.Scope != record.HoldWebhook || h.Value != "held" || h.Parked != 2 || h.NextStep != "reenvio release --webhook held" {
			t.Errorf("got %+v", o.Holds)
		}
		data, err := json.Marshal(o)
		if err != nil || strings.Contains(string(data), "secret/path") {
			t.Errorf("the path of a URL is shown, or: %v", err)
		}
		valid(t, o)
	})
}

func TestAHoldThatNotAllHaveTaken(t *testing.T) {
	inWorld(t, 3, func(t *testing.T, w *world) {
		hold := record.Hold{Scope: record.HoldTenant, Value: "acme corp", By: "ana", At: record.At(time.Now())}
		for number := range int32(2) {
			w.numberState(number, record.NumberState{Holds: []record.Hold{hold}})
		}
		o := w.read()
		wantProblem(t, o, "hold of tenant acme corp is in force in 2 of 3 numbers only")
		if h := o.Holds[0]; len(o.Holds) != 1 || h.Numbers != 2 || h.NextStep != "reenvio release --tenant 'acme corp'" {
			t.Errorf("got %+v", o.Holds)
		}
		w.numberState(2, record.NumberState{Holds: []record.Hold{hold}})
		for _, p := range w.read().Problems {
			if strings.Contains(p.Problem, "in force") {
				t.Errorf("all have taken it: %+v", p)
			}
		}
	})
}

func TestStatesThatCannotBeRead(t *testing.T) {
	inWorld(t, 1, func(t *testing.T, w *world) {
		w.produce(&kgo.Record{Topic: w.topo.State(), Key: []byte("a"), Value: []byte("{")}, &kgo.Record{Topic: w.topo.State(), Key: []byte(record.NumberKey), Value: []byte("[]")},
			&kgo.Record{Topic: w.topo.State(), Key: []byte("b"), Value: []byte("{")})
		w.state(record.State{Webhook: "b", ConsecutiveFailures: 1})
		o := w.read()
		wantProblem(t, o, "The state of the webhook a can't be read", w.topo.State()+"/0/0", "reenvio webhooks resume a")
		wantProblem(t, o, "The state of number 0 can't be read")
		for _, p := range o.Problems {
			if strings.Contains(p.Problem, "webhook b") {
				t.Errorf("it was written anew since: %+v", p)
			}
		}
	})
}

func TestTiers(t *testing.T) {
	inWorld(t, 3, func(t *testing.T, w *world) {
		now := time.Now()
		a, b, c := w.webhookIn(0), w.webhookIn(1), w.webhookIn(2) // the number in the middle has the earliest of all
		w.retry(4*time.Second, a, now.Add(3*time.Second))
		w.retry(4*time.Second, b, now.Add(2*time.Second))
		w.retry(4*time.Second, c, now.Add(-time.Minute))
		w.retry(4*time.Second, b, now.Add(-time.Hour))
		w.retry(4*time.Second, a, now.Add(-2*time.Minute))
		w.retry(4*time.Second, c, now.Add(-500*time.Millisecond)) // may be done, in a transaction that is under way
		old := w.topo.Prefix() + "retry-1m"
		if _, err := w.admin.CreateTopic(t.Context(), 3, 1, nil, old); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
		w.state(record.State{Webhook: b, Hold: &record.Hold{By: "ana"}})
		w.join("one")
		w.until(func(o *overview.Overview) bool { return o.OwnedNumbers == 3 })

		options := overview.Options{Client: w.client, Topology: w.topo, Group: w.group}
		var told []int
		options.Progress = func(done, all int) { told = append(told, done, all) }
		tiers, err := overview.Tiers(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(told, []int{1, 3, 2, 3, 3, 3}) {
			t.Errorf("progress: %v", told)
		}
		var names []string
		for _, tier := range tiers {
			names = append(names, tier.Tier)
			data, err := json.Marshal([]overview.Tier{tier})
			if err == nil {
				err = schematest.Validate("retry-tiers", data)
			}
			if err != nil {
				t.Errorf("%v\n%s", err, data)
			}
		}
		if !slices.Equal(names, []string{"2s", "4s", "8s", "16s", "1m"}) || tiers[4].Configured || !tiers[1].Configured {
			t.Errorf("tiers %v", names)
		}
		four := tiers[1]
		if four.Waiting != 6 || four.WaitingIsBound || four.Overdue != 3 || !four.OverdueSince.Equal(now.Add(-time.Hour)) || four.OverdueWebhook != b || *four.OverdueNumber != 1 {
			t.Errorf("got %+v", four)
		}
		if !four.NextDueAt.Equal(now.Add(2*time.Second)) || !four.OldestAt.Equal(now) {
			t.Errorf("next due %s, oldest %s", four.NextDueAt, four.OldestAt)
		}
		o := w.read()
		if four := o.RetryTiers[1]; four.Waiting != 6 || four.OverdueReason != overview.Held {
			t.Errorf("got %+v", four)
		}
		if !strings.Contains(o.Headline, "6 retries wait, ") || !strings.Contains(o.Headline, " of them overdue") { // how many depends on when the group was settled
			t.Errorf("got %s", o.Headline)
		}
	})
}

func TestDeadInTheLastHour(t *testing.T) {
	inWorld(t, 3, func(t *testing.T, w *world) {
		die := func(webhook string, reason record.DeathReason) {
			d := record.Delivery{Event: record.Event{Webhook: webhook, ID: "x"}, Source: record.Source{Topic: w.topo.Events()}}
			w.produce(d.DeadLetter(w.topo.DLQ(), w.topo.PartitionFor(webhook), record.Death{Reason: reason, At: record.At(time.Now())}))
		}
		die("a", record.TooLarge)
		time.Sleep(time.Hour + time.Second)
		die("a", record.AttemptsExhausted)
		die("b", record.AttemptsExhausted)
		die("c", record.WebhookUnknown)
		o := w.read()
		want := []overview.Dead{{Reason: record.AttemptsExhausted, Count: 2}, {Reason: record.WebhookUnknown, Count: 1}}
		if o.DeadLastHour != 3 || !slices.Equal(o.DeadByReason, want) {
			t.Errorf("got %d: %v", o.DeadLastHour, o.DeadByReason)
		}
	})
}

func TestCommandsWithoutAResult(t *testing.T) {
	inWorld(t, 1, func(t *testing.T, w *world) {
		c := record.Command{ID: "1", Webhook: "a", Action: record.ActionPause}
		w.produce(&kgo.Record{Topic: w.topo.Commands(), Key: []byte("a"), Value: c.Marshal()},
			&kgo.Record{Topic: w.topo.Commands(), Key: []byte("a"), Value: record.Result{ID: "1", Result: record.ResultDone}.Marshal()},
			&kgo.Record{Topic: w.topo.Commands(), Key: []byte("a"), Value: c.Marshal()})
		w.commit(w.topo.Commands(), 0, 1, "")
		if n := w.read().Numbers[0]; n.CommandsWaiting != 1 {
			t.Errorf("got %+v", n)
		}
	})
}

func TestAMissingTopicIsAnErrorAtOnce(t *testing.T) {
	inWorld(t, 1, func(t *testing.T, w *world) {
		if _, err := w.admin.DeleteTopics(t.Context(), w.topo.DLQ()); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_, err := overview.Read(t.Context(), overview.Options{Client: w.client, Topology: w.topo, Group: w.group})
		if err == nil || !strings.Contains(err.Error(), w.topo.DLQ()) || errors.Is(err, t.Context().Err()) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

func TestRanges(t *testing.T) {
	for want, numbers := range map[string][]int32{"": nil, "3": {3}, "1, 2": {2, 1}, "0 to 3, 7, 9, 10": {7, 0, 1, 9, 2, 3, 10}} {
		if got := overview.Ranges(numbers); got != want {
			t.Errorf("%v: got %q, want %q", numbers, got, want)
		}
	}
}
