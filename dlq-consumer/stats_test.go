package dlqconsumer

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/record"
)

// died is a letter of an event that died at a time.
func (l *letters) died(t *testing.T, webhook, id string, reason record.DeathReason, at time.Time) *kgo.Record {
	t.Helper()
	number := l.topo.PartitionFor(webhook)
	d, _ := record.FromEvent(&kgo.Record{Topic: l.topo.Events(), Partition: number, Key: []byte(webhook), Headers: l.letter(t, "x", id, reason, 0).Headers})
	r := d.DeadLetter(l.topo.DLQ(), number, record.Death{Reason: reason, At: record.At(at)})
	r.Timestamp = at
	return r
}

func (l *letters) stats(t *testing.T, f Filter, zone *time.Location) Stats {
	t.Helper()
	var calls int
	s, err := l.Stats(t.Context(), f, zone, func(what string, done, total int64) {
		calls++
		if done < 0 || done > total || what == "" {
			t.Errorf("progress of %q: %d of %d", what, done, total)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if s.Count > 0 && calls == 0 {
		t.Error("no progress was told")
	}
	return s
}

func TestStats(t *testing.T) {
	l := start(t)
	a, b := l.webhookIn(0), l.webhookIn(1)
	l.write(t,
		l.died(t, a, "a1", record.AttemptsExhausted, noon.Add(-50*time.Hour)),
		l.died(t, a, "a2", record.AttemptsExhausted, noon.Add(-2*time.Hour+time.Minute)),
		l.died(t, a, "a3", record.URLBlocked, noon.Add(-2*time.Hour)),
		l.died(t, b, "b1", record.AttemptsExhausted, noon),
	)
	s := l.stats(t, Filter{Since: noon.Add(-24 * time.Hour), Until: noon.Add(time.Hour)}, time.UTC)
	if s.Count != 3 || !s.FirstAt.Equal(noon.Add(-2*time.Hour)) || !s.LastAt.Equal(noon) {
		t.Errorf("%d letters from %v to %v", s.Count, s.FirstAt, s.LastAt)
	}
	if len(s.Reasons) != 2 || s.Reasons[0].Reason != record.AttemptsExhausted || s.Reasons[0].Count != 2 ||
		!s.Reasons[0].FirstAt.Equal(noon.Add(-2*time.Hour+time.Minute)) || !s.Reasons[0].LastAt.Equal(noon) || s.Reasons[1].Count != 1 {
		t.Errorf("reasons %+v", s.Reasons)
	}
	if len(s.Webhooks) != 2 || s.Webhooks[0].Webhook != a || s.Webhooks[0].Count != 2 || s.Webhooks[1].Webhook != b || s.Others != 0 {
		t.Errorf("webhooks %+v", s.Webhooks)
	}
	if got := fmt.Sprint(s.Per, s.Times); got != fmt.Sprint(PerHour, []PeriodTally{{record.At(noon.Add(-2 * time.Hour)), 2}, {record.At(noon), 1}}) {
		t.Errorf("times %v", got)
	}
	s.Top(1)
	if len(s.Webhooks) != 1 || s.Webhooks[0].Webhook != a || s.Others != 1 {
		t.Errorf("the top one: %+v, others %d", s.Webhooks, s.Others)
	}
	if s := l.stats(t, Filter{Webhooks: []string{b}}, time.UTC); s.Count != 1 {
		t.Errorf("of one webhook: %d", s.Count)
	}
}

// Days are those of the reader: midnight is another day an hour to the west.
func TestStatsByDay(t *testing.T) {
	l := start(t)
	w := l.webhookIn(0)
	l.write(t, l.died(t, w, "e1", record.Expired, noon.Add(-60*time.Hour)), l.died(t, w, "e2", record.Expired, noon.Add(-58*time.Hour)), l.died(t, w, "e3", record.Expired, noon))
	for hours, want := range map[int]int{0: 2, -1: 3} { // the first two died at 0:00 and 2:00 in UTC
		zone := time.FixedZone("there", hours*60*60)
		s := l.stats(t, Filter{Since: noon.Add(-7 * 24 * time.Hour), Until: noon}, zone)
		if s.Per != PerDay || len(s.Times) != want || s.Times[0].At.In(zone).Hour() != 0 {
			t.Errorf("at %d hours: per %s, %+v", hours, s.Per, s.Times)
		}
	}
}

func TestStatsOfNothing(t *testing.T) {
	data, err := json.Marshal(start(t).stats(t, Filter{}, time.UTC))
	if err != nil || strings.Contains(string(data), "null") || !strings.Contains(string(data), `"count":0`) {
		t.Errorf("%s, %v", data, err)
	}
}

func TestStatsCountWhatIsNotOurs(t *testing.T) {
	l := start(t)
	l.write(t, &kgo.Record{Topic: l.topo.DLQ(), Partition: 1, Value: []byte("?"), Timestamp: noon})
	s := l.stats(t, Filter{Since: noon}, time.UTC)
	if s.Count != 1 || s.Reasons[0].Reason != "" || s.Webhooks[0].Webhook != "" || !s.FirstAt.Equal(noon) {
		t.Errorf("%+v", s)
	}
}

func TestStatsBoundTheirMemory(t *testing.T) {
	c := newCounting(Filter{}, time.UTC, noon)
	for i := range maxWebhooks + 5 {
		c.add(&record.DeadLetter{Delivery: record.Delivery{Event: record.Event{Webhook: fmt.Sprint(i)}}}, noon)
	}
	c.add(&record.DeadLetter{Delivery: record.Delivery{Event: record.Event{Webhook: "7"}}}, noon)
	s := c.stats()
	if len(s.Webhooks) != maxWebhooks || s.Others != 5 || s.Count != maxWebhooks+6 || s.Webhooks[0].Count != 2 {
		t.Errorf("%d webhooks, %d others of %d", len(s.Webhooks), s.Others, s.Count)
	}
}
