package main

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/record"
)

var died = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// bury writes dead letters as a dispatcher does.
func bury(t *testing.T, s *shell, deaths map[string]record.Death) {
	t.Helper()
	buryFor(t, s, func(string) string { return "crm" }, deaths)
}

// buryFor is bury for the webhook of each event.
func buryFor(t *testing.T, s *shell, webhook func(id string) string, deaths map[string]record.Death) {
	t.Helper()
	client := s.client(t)
	for id, death := range deaths {
		event, err := record.NewEventRecord("webhooks.events", 0, record.Event{
			Webhook: webhook(id), ID: id, Type: "order.paid", ContentType: "application/json", Value: []byte(`{"order":1}`),
			Headers: []kgo.RecordHeader{{Key: "x-odd", Value: []byte("a\x1b[31mb")}},
		})
		if err != nil {
			t.Fatal(err)
		}
		delivery, err := record.FromEvent(event)
		if err != nil {
			t.Fatal(err)
		}
		delivery.Attempts, delivery.LastStatus, delivery.LastError = 5, 503, "status: HTTP 503"
		letter := delivery.DeadLetter("webhooks.dlq", 0, death)
		letter.Timestamp = death.At.Time
		if err := client.ProduceSync(t.Context(), letter).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDLQListAndShow(t *testing.T) {
	s := newClusterShell(t)
	s.run(t, "topics", "apply", "--yes").wantCode(t, exitOK)
	s.run(t, "dlq", "list").wantCode(t, exitOK).wantErr(t, "No dead letter matches")
	if none := s.run(t, "dlq", "list", "-o", "json").wantCode(t, exitOK).array(t); len(none) != 0 {
		t.Errorf("got %v", none)
	}
	bury(t, s, map[string]record.Death{
		"e1":  {Reason: record.AttemptsExhausted, At: record.At(died), Message: "it answered 503"},
		"e/2": {Reason: record.Discarded, At: record.At(died.Add(time.Minute))},
		"7/7": {Reason: record.Discarded, At: record.At(died.Add(time.Hour))},
	})

	list := s.run(t, "dlq", "list").wantCode(t, exitOK).wantOut(t, "crm", "order.paid", "attempts_exhausted", "503")
	if newest, oldest := strings.Index(list.out, "7/7"), strings.Index(list.out, "e1"); newest < 0 || newest > oldest {
		t.Errorf("newest first, please:\n%s", list.out)
	}
	for _, filter := range [][]string{{"--id", "e1"}, {"--reason", "attempts_exhausted"}, {"--webhook", "crm", "--id", "e1"}} {
		letters := s.run(t, append([]string{"dlq", "list", "-o", "json"}, filter...)...).wantCode(t, exitOK).array(t)
		if len(letters) != 1 || letters[0].(map[string]any)["event_id"] != "e1" {
			t.Errorf("%v: got %v", filter, letters)
		}
	}
	if letters := s.run(t, "dlq", "list", "--limit", "2", "-o", "json").wantCode(t, exitOK).array(t); len(letters) != 2 {
		t.Errorf("got %d letters", len(letters))
	}

	show := s.run(t, "dlq", "show", "e1").wantCode(t, exitOK).wantOut(t, "it answered 503", `{"order":1}`, "x-odd", "webhooks.dlq/")
	if strings.Contains(show.out, "\x1b") {
		t.Error("a header drives the terminal")
	}
	letter := s.run(t, "dlq", "show", "--id", "7/7", "-o", "json").wantCode(t, exitOK).object(t)
	if letter["key"] != "crm" || letter["value"] != `{"order":1}` || letter["webhook_dlq_reason"] != "discarded" {
		t.Errorf("got %v", letter)
	}
	place := strings.Fields(strings.Split(s.run(t, "dlq", "list", "--id", "e/2").out, "\n")[1])
	s.run(t, "dlq", "show", place[len(place)-1]).wantCode(t, exitOK).wantOut(t, "e/2")
	s.run(t, "dlq", "show", "webhooks.dlq/"+place[len(place)-1]).wantCode(t, exitOK).wantOut(t, "e/2")
	s.run(t, "dlq", "show", "webhooks.dlq/0/0", "--webhook", "crm").wantCode(t, exitUsage).wantErr(t, "names one letter")
	s.run(t, "dlq", "show", "events/0/0").wantCode(t, exitFailed).wantErr(t, "of the event events/0/0")
	s.run(t, "dlq", "show", "e/2").wantCode(t, exitOK).wantOut(t, "e/2")
	s.run(t, "dlq", "show", "7/7").wantCode(t, exitFailed).wantErr(t, "no dead letter at webhooks.dlq/7/7")
	s.run(t, "dlq", "show", "e9").wantCode(t, exitFailed).wantErr(t, "e9")
}

func TestTheNewestOfSeveralLettersIsShown(t *testing.T) {
	s := newClusterShell(t)
	s.run(t, "topics", "apply", "--yes").wantCode(t, exitOK)
	bury(t, s, map[string]record.Death{"e1": {Reason: record.Discarded, At: record.At(died)}})
	bury(t, s, map[string]record.Death{"e1": {Reason: record.Expired, At: record.At(died.Add(time.Hour))}})
	s.run(t, "dlq", "show", "e1").wantCode(t, exitOK).wantOut(t, "expired").wantErr(t, "newest of several", "dlq list --id e1")
}

// A key that is no webhook's, and a type, can be as long as a record.
func TestLongKeysLeaveTheTableNarrow(t *testing.T) {
	long := strings.Repeat("k", 300)
	var l record.DeadLetter
	l.Key, l.Type = []byte(long), long
	row := strings.Join(letterRow(l), " ")
	if len(row) > 300 || !strings.Contains(row, "kkk…") {
		t.Errorf("got %s", row)
	}
	l.Webhook, l.ID = long[:256], long[:256]
	if !strings.Contains(strings.Join(letterRow(l), " "), l.Webhook+" "+l.ID) {
		t.Error("ids that commands take are cut")
	}
}

func TestValuesForATerminal(t *testing.T) {
	for value, want := range map[string]string{"plain\ntext": "plain\ntext", "\x1b[2J": "(4 bytes, no text", "\xff": "(1 byte, no text", "": ""} {
		if got := valueText([]byte(value)); !strings.HasPrefix(got, want) || (want == "" && got != "") {
			t.Errorf("%q: got %q", value, got)
		}
	}
	if got := valueText(nil); !strings.Contains(got, "null") {
		t.Errorf("nil: got %q", got)
	}
}
