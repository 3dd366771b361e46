package record

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/schemas/schematest"
)

var update = flag.Bool("update", false, "write the golden records in schemas/golden instead of comparing")

// The one event whose life the golden records tell.
var (
	goldenPlace    = Source{Topic: "webhooks.events", Partition: 3, Offset: 1042}
	goldenProduced = time.Date(2026, 11, 30, 12, 0, 0, 250e6, time.UTC)
	goldenEvent    = Event{
		Webhook: "crm.orders", ID: "evt_2kq9", Type: "order.created", CESource: "/shop/eu",
		Time: At(goldenProduced.Add(-time.Second)), Expiry: At(goldenProduced.Add(24 * time.Hour)),
		ContentType: "application/json", PartitionKey: "order-77",
		Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		Value:       []byte(`{"order":77,"note":"naïve <b>&</b>"}`),
		Headers:     []kgo.RecordHeader{{Key: "tracestate", Value: []byte("a=1")}, {Key: "x-blob", Value: []byte{0, 255}}, {Key: "x-twice", Value: []byte("1")}, {Key: "x-twice", Value: nil}},
	}
)

func goldenRecord(t *testing.T) *kgo.Record {
	t.Helper()
	r, err := NewEventRecord(goldenPlace.Topic, goldenPlace.Partition, goldenEvent)
	if err != nil {
		t.Fatal(err)
	}
	r.Offset, r.Timestamp = goldenPlace.Offset, goldenProduced
	return r
}

// goldenDelivery is the event after two failed attempts.
func goldenDelivery(t *testing.T) *Delivery {
	t.Helper()
	d, err := FromEvent(goldenRecord(t))
	if err != nil {
		t.Fatal(err)
	}
	d.Attempts = 2
	d.FirstAttemptAt = At(goldenProduced.Add(100 * time.Millisecond))
	d.LastAttemptAt = At(goldenProduced.Add(2500 * time.Millisecond))
	d.DueAt = NotBefore(goldenProduced.Add(6700 * time.Millisecond))
	d.LastStatus = 503
	d.LastError = "status 503:\tService Unavailable"
	return d
}

func goldenDeath() Death {
	return Death{
		Reason: AttemptsExhausted, Group: "webhooks.dispatcher", Dispatcher: "node-1", Version: "1.2.3", URLHost: "crm.example:8443",
		Message: "attempt 5 of 5 failed: status 503", Response: "<h1>down</h1>\n", At: At(goldenProduced.Add(32 * time.Second)),
	}
}

// goldenForm is a record for people and for programs without a Kafka client.
type goldenForm struct {
	Topic     string         `json:"topic"`
	Partition int32          `json:"partition"`
	Key       *string        `json:"key"`
	Value     *string        `json:"value"`
	Headers   []goldenHeader `json:"headers"`
}

// goldenHeader has value, or value_base64 where that is no text; null is null.
type goldenHeader struct {
	Name   string  `json:"name"`
	Value  *string `json:"value"`
	Base64 string  `json:"value_base64,omitempty"`
}

func readable(r *kgo.Record) []byte {
	form := goldenForm{Topic: r.Topic, Partition: r.Partition}
	form.Key, _ = textOrBase64(r.Key)
	form.Value, _ = textOrBase64(r.Value)
	for _, h := range r.Headers {
		gh := goldenHeader{Name: h.Key}
		gh.Value, gh.Base64 = textOrBase64(h.Value)
		form.Headers = append(form.Headers, gh)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	_ = enc.Encode(form)
	return b.Bytes()
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("..", "..", "schemas", "golden", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (a changed wire format breaks other programs; if it is meant: go test ./internal/record -update)\ngot  %s\nwant %s", name, got, want)
	}
}

func TestGoldenRecords(t *testing.T) {
	d := goldenDelivery(t)
	moved := *d
	moved.Moved = &Source{Topic: "webhooks.events", Partition: 1, Offset: 7}
	moved.Redrive = "run-1/2"
	null := *d
	null.Value = nil
	letter, err := ParseDeadLetter(moved.DeadLetter("webhooks.dlq", 3, goldenDeath()))
	if err != nil {
		t.Fatal(err)
	}
	redriven, err := letter.RedriveRecord("webhooks.events", 3, "run-2")
	if err != nil {
		t.Fatal(err)
	}
	structured := eventAt("crm.orders", []byte(`{"specversion":"1.0","id":"evt_2kq9","type":"order.created","source":"/shop/eu","data":{"order":77}}`),
		header(headerContentType, cloudEventsJSON))
	for _, c := range []struct {
		file, schema string
		record       *kgo.Record
	}{
		{"event.json", "event-headers", goldenRecord(t)},
		{"event-structured.json", "event-headers", structured},
		{"event-moved.json", "event-headers", d.MovedRecord("webhooks.events", 5)},
		{"retry.json", "retry-headers", d.RetryRecord("webhooks.retry-4s", 3)},
		{"retry-moved.json", "retry-headers", moved.RetryRecord("webhooks.retry-4s", 3)},
		{"retry-null-value.json", "retry-headers", null.RetryRecord("webhooks.retry-4s", 3)},
		{"parked.json", "parked-headers", d.ParkedRecord("webhooks.parked", 3, ParkPaused)},
		{"dead-letter.json", "dead-letter-headers", d.DeadLetter("webhooks.dlq", 3, goldenDeath())},
		{"dead-letter-minimal.json", "dead-letter-headers", d.MinimalDeadLetter("webhooks.dlq", 3, goldenDeath())},
		{"dead-letter-valueless.json", "dead-letter-headers", d.ValuelessDeadLetter("webhooks.dlq", 3, goldenDeath())},
		{"event-redriven.json", "event-headers", redriven},
	} {
		golden(t, c.file, readable(c.record))
		if err := schematest.ValidateHeaders(c.schema, c.record.Headers); err != nil {
			t.Errorf("%s: %v", c.file, err)
		}
		if !c.record.Timestamp.IsZero() && c.schema != "event-headers" {
			t.Errorf("%s has a timestamp, the client must stamp it", c.file)
		}
	}
	delivered := DeliveredRecord("webhooks.delivered", 3, []DeliveredID{HashDelivered("crm.orders", "evt_2kq9", ""), HashDelivered("crm.orders", "evt_2kq9", "run-1/2")})
	if delivered.Key != nil || delivered.Headers != nil {
		t.Error("a delivered record has neither key nor headers")
	}
	golden(t, "delivered.bin", delivered.Value)
}

func TestGoldenJSON(t *testing.T) {
	at := At(goldenProduced.Add(5 * time.Second))
	ten, on, version := 10, true, int64(1795953605250)
	letter, err := ParseDeadLetter(goldenDelivery(t).DeadLetter("webhooks.dlq", 3, goldenDeath()))
	if err != nil {
		t.Fatal(err)
	}
	dead, err := json.Marshal(letter)
	if err != nil {
		t.Fatal(err)
	}
	attempt := Attempt{
		Webhook: "crm.orders", EventID: "evt_2kq9", EventType: "order.created", Attempt: 2, Outcome: Failed, Next: NextRetry,
		Status: 503, Error: "status", ProducedAt: At(goldenProduced), StartedAt: At(goldenProduced.Add(2500 * time.Millisecond)), DurationMS: 0,
		DueAt: At(goldenProduced.Add(2490 * time.Millisecond)), LatenessMS: 10, NextAttemptAt: at, URLHost: "crm.example:8443", ResponseExcerpt: "<h1>down</h1>",
		SourceTopic: "webhooks.events", SourcePartition: 3, SourceOffset: 1042, Dispatcher: "node-1", Version: "1.2.3",
	}
	unknown := Attempt{
		EventID: derivedID(goldenPlace), Outcome: Dead, Next: NextNone, Error: "invalid_record: the record has no key",
		ProducedAt: At(goldenProduced), SourceTopic: "webhooks.events", SourcePartition: 0, SourceOffset: 0, Dispatcher: "node-1", Version: "1.2.3",
	}
	state := State{
		Webhook: "crm.orders", ConsecutiveFailures: 10, StreakStartedAt: At(goldenProduced), PausedAt: at, HoldUntil: at,
		LastStatus: 503, LastError: "status", Head: &Head{Source: goldenPlace, Attempts: 2, DueAt: at},
		Parked: &Parked{From: 40, Done: []int64{42, 43}, Last: 99, Count: 58, OldestAt: at}, Hold: &Hold{By: "ana", At: at}, Version: version,
	}
	state.AddPause(PauseManual)
	state.AddPause(PauseFailures)
	endpoint := Endpoint{
		ID: "crm.orders", Tenant: "acme", URL: "enc:1799434:AZ0x", URLHost: "crm.example:8443", Description: "orders", EventTypes: []string{"order.*"},
		Secrets: []Secret{{Value: "enc:1799434:BX12", CreatedAt: at, ExpiresAt: At(goldenProduced.Add(time.Hour))}}, Timeout: Duration(30 * time.Second), MaxAttempts: 5,
		Schedule: []Duration{Duration(time.Second), Duration(90 * time.Second)}, Ordering: OrderKey, MaxInFlight: 4, RateLimit: 2.5, RetryOn: RetryTransient, Jitter: JitterFull,
		AutoPauseAfter: &ten, AutoResume: Duration(time.Hour), Headers: map[string]string{"Authorization": "enc:1799434:Cq9_"}, TLS: &TLS{CA: "ca", Cert: "cert", Key: "enc:1799434:Dk-"},
		Enabled: &on, CreatedAt: at, UpdatedAt: at, UpdatedBy: "ana",
	}
	number := NumberState{Topics: []string{"webhooks.commands", "webhooks.events"}, Holds: []Hold{{Scope: HoldTenant, Value: "acme", By: "ana", At: at, Reason: "migration"}}}
	command := Command{ID: "cmd_1", Webhook: "crm.orders", Action: ActionPause, By: "ana", At: at, Reason: "migration", ExpectVersion: &version}
	hold := Command{ID: "cmd_2", Action: ActionHold, By: "ana", At: at, Scope: HoldTenant, Value: "acme"}
	discard := Command{ID: "cmd_3", Webhook: "crm.orders", Action: ActionDiscardParked, By: "ana", At: at, Before: At(goldenProduced)}
	skip := Command{ID: "cmd_4", Action: ActionSkip, By: "ana", At: at, Value: goldenPlace.String()}
	result := Result{ID: "cmd_1", Result: ResultDone, Detail: "paused, 12 events parked", At: at}

	for _, c := range []struct {
		file, schema string
		json         []byte
		back         func([]byte) (any, error)
		want         any
	}{
		{"attempt.json", "attempt", attempt.Marshal(), func(b []byte) (any, error) { return ParseAttempt(b) }, attempt},
		{"attempt-without-request.json", "attempt", unknown.Marshal(), func(b []byte) (any, error) { return ParseAttempt(b) }, unknown},
		{"state.json", "state", state.Marshal(), func(b []byte) (any, error) { return ParseState(b) }, state},
		{"number-state.json", "number-state", number.Marshal(), func(b []byte) (any, error) { return ParseNumberState(b) }, number},
		{"endpoint.json", "endpoint", endpoint.Marshal(), func(b []byte) (any, error) { return ParseEndpoint(b) }, endpoint},
		{"command.json", "command", command.Marshal(), func(b []byte) (any, error) { return ParseCommand(b) }, command},
		{"command-number.json", "command", hold.Marshal(), func(b []byte) (any, error) { return ParseCommand(b) }, hold},
		{"command-discard-parked.json", "command", discard.Marshal(), func(b []byte) (any, error) { return ParseCommand(b) }, discard},
		{"command-skip.json", "command", skip.Marshal(), func(b []byte) (any, error) { return ParseCommand(b) }, skip},
		{"result.json", "result", result.Marshal(), func(b []byte) (any, error) { return ParseResult(b) }, result},
		{"dead-letter-view.json", "dead-letter", dead, nil, nil},
	} {
		golden(t, c.file, c.json)
		if err := schematest.Validate(c.schema, c.json); err != nil {
			t.Errorf("%s: %v", c.file, err)
		}
		if c.back == nil {
			continue
		}
		if got, err := c.back(c.json); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s read back: %+v, %v\nwant %+v", c.file, got, err, c.want)
		}
	}
}
