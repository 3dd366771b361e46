package story_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/story"
)

func (w *world) log(q story.LogQuery) (ids []string, next int64) {
	w.t.Helper()
	q.Webhook = crm
	next, err := w.reader.Log(w.t.Context(), q, func(e story.Entry) error { ids = append(ids, e.EventID); return nil })
	if err != nil {
		w.t.Fatal(err)
	}
	return ids, next
}

func TestTheNewestAttemptsNewestLast(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.fail(w.send(crm, "first"))
		time.Sleep(time.Hour)
		noise := make([]*kgo.Record, 2_500) // of others, over several steps back
		for i := range noise {
			noise[i] = &kgo.Record{Topic: w.topo.Attempts(), Partition: w.number, Key: []byte("other"), Value: record.Attempt{EventID: "noise"}.Marshal()}
		}
		w.write(noise...)
		w.write(&kgo.Record{Topic: w.topo.Attempts(), Partition: w.number, Key: []byte(crm), Value: []byte("no attempt at all")})
		for i := range 5 {
			d := w.send(crm, fmt.Sprintf("e%d", i))
			if i == 2 {
				w.fail(d)
			}
			w.deliver(d)
		}
		for name, tt := range map[string]struct {
			q    story.LogQuery
			want string
		}{
			"limit":  {story.LogQuery{Limit: 3}, "e2 e3 e4"},
			"all":    {story.LogQuery{Limit: 50}, "first e0 e1 e2 e2 e3 e4"},
			"failed": {story.LogQuery{Limit: 50, Failed: true}, "first e2"},
			"since":  {story.LogQuery{Limit: 50, Since: time.Now().Add(-time.Minute)}, "e0 e1 e2 e2 e3 e4"},
			"later":  {story.LogQuery{Limit: 50, Since: time.Now().Add(time.Hour)}, ""},
		} {
			if ids, _ := w.log(tt.q); strings.Join(ids, " ") != tt.want {
				t.Errorf("%s: got %v, want %s", name, ids, tt.want)
			}
		}
	})
}

func TestAnEntryHasItsTimeAndItsRecord(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := w.send(crm, "e1")
		time.Sleep(time.Second)
		at := time.Now()
		w.attempt(d, func(a *record.Attempt) { a.Outcome, a.Error = record.Dead, "webhook_deleted: it was deleted" })
		_, err := w.reader.Log(t.Context(), story.LogQuery{Webhook: crm, Limit: 1}, func(e story.Entry) error {
			if !e.At.Equal(at) || !strings.Contains(string(e.Raw), `"outcome":"dead"`) || strings.Contains(string(e.Raw), "duration_ms") {
				t.Errorf("got %s: %s", e.At, e.Raw)
			}
			return errors.New("enough")
		})
		if err == nil || err.Error() != "enough" {
			t.Errorf("got %v", err)
		}
	})
}

func TestFollowGoesOnWhereTheLogEnded(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := w.send(crm, "e1")
		w.fail(d)
		_, next := w.log(story.LogQuery{Limit: 50})
		w.fail(d) // between the two
		ctx, stop := context.WithCancel(t.Context())
		var ids []string
		ended := make(chan error)
		go func() {
			ended <- w.reader.Follow(ctx, story.LogQuery{Webhook: crm, Failed: true}, next, func(e story.Entry) error {
				ids = append(ids, fmt.Sprint(e.EventID, "#", e.Attempt.Attempt))
				return nil
			})
		}()
		time.Sleep(time.Second)
		w.deliver(d) // not asked for
		w.fail(d)
		time.Sleep(time.Second)
		stop()
		if err := <-ended; err != nil || !slices.Equal(ids, []string{"e1#2", "e1#4"}) {
			t.Errorf("got %v, %v", ids, err)
		}
	})
}
