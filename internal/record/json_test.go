package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/reenvio/reenvio/schemas/schematest"
)

// compact is what a JSON text means, for comparing.
func meaning(t *rapid.T, data []byte) any {
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return v
}

func TestStateRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := genState().Draw(t, "state")
		data := s.Marshal()
		if err := schematest.Validate("state", data); err != nil {
			t.Fatal(err)
		}
		got, err := ParseState(data)
		if err != nil || !reflect.DeepEqual(got, s) {
			t.Fatalf("%s\ngot  %+v, %v\nwant %+v", data, got, err, s)
		}
		if again := got.Marshal(); string(again) != string(data) {
			t.Fatalf("%s\nbecame %s", data, again)
		}
	})
}

func TestNumberStateRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := NumberState{Extra: genFields().Draw(t, "extra")}
		for _, topic := range rapid.SliceOf(genTopic()).Draw(t, "topics") {
			n.AddTopic(topic)
		}
		if holds := rapid.SliceOfN(genHold(), 0, 3).Draw(t, "holds"); len(holds) > 0 {
			n.Holds = holds
		}
		data := n.Marshal()
		if err := schematest.Validate("number-state", data); err != nil {
			t.Fatal(err)
		}
		if got, err := ParseNumberState(data); err != nil || !reflect.DeepEqual(got, n) {
			t.Fatalf("%s\ngot  %+v, %v\nwant %+v", data, got, err, n)
		}
	})
}

func TestEndpointRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := genEndpoint().Draw(t, "endpoint")
		data := e.Marshal()
		if err := schematest.Validate("endpoint", data); err != nil {
			t.Fatal(err)
		}
		got, err := ParseEndpoint(data)
		if err != nil || !reflect.DeepEqual(got, e) {
			t.Fatalf("%s\ngot  %#v, %v\nwant %#v", data, plainEndpoint(got), err, plainEndpoint(e))
		}
	})
}

func TestAttemptRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := genAttempt().Draw(t, "attempt")
		data := a.Marshal()
		if err := schematest.Validate("attempt", data); err != nil {
			t.Fatal(err)
		}
		if len(data) > 16<<10 {
			t.Fatalf("%d bytes", len(data))
		}
		got, err := ParseAttempt(data)
		if err != nil {
			t.Fatal(err)
		}
		a.EventType, a.Error, a.URLHost = text(a.EventType, maxTypeText), text(a.Error, maxErrorText), text(a.URLHost, maxHostText)
		a.ResponseExcerpt, a.Dispatcher, a.Version = text(a.ResponseExcerpt, maxResponseText), text(a.Dispatcher, maxInstanceText), text(a.Version, maxVersionText)
		if !reflect.DeepEqual(got, a) {
			t.Fatalf("got  %+v\nwant %+v", got, a)
		}
	})
}

func TestCommandAndResultRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		version := rapid.Int64().Draw(t, "version")
		c := Command{
			ID: "c" + rapid.String().Draw(t, "id"), Webhook: genWebhookID().Draw(t, "webhook"), Action: rapid.SampledFrom([]Action{ActionPause, ActionResume, "newer"}).Draw(t, "action"),
			By: rapid.StringN(0, 20, 80).Draw(t, "by"), At: genTime().Draw(t, "at"), Reason: genAnyText().Draw(t, "reason"), Before: genTime().Draw(t, "before"),
		}
		if rapid.Bool().Draw(t, "expects") {
			c.ExpectVersion = &version
		}
		data := c.Marshal()
		if err := schematest.Validate("command", data); err != nil {
			t.Fatal(err)
		}
		c.By, c.Reason = text(c.By, maxGroupText), text(c.Reason, maxErrorText)
		if got, err := ParseCommand(data); err != nil || !reflect.DeepEqual(got, c) || KindOf(data) != KindCommand {
			t.Fatalf("got %+v, %v, want %+v", got, err, c)
		}
		if _, err := ParseResult(data); err == nil {
			t.Fatal("a command was read as a result")
		}
		r := Result{ID: c.ID, Result: rapid.SampledFrom([]ResultCode{ResultDone, ResultRefused, ResultFailed}).Draw(t, "result"), Detail: genAnyText().Draw(t, "detail"), At: genTime().Draw(t, "at")}
		data = r.Marshal()
		if err := schematest.Validate("result", data); err != nil {
			t.Fatal(err)
		}
		r.Detail = text(r.Detail, maxErrorText)
		if got, err := ParseResult(data); err != nil || got != r || KindOf(data) != KindResult {
			t.Fatalf("got %+v, %v, want %+v", got, err, r)
		}
	})
}

// A newer writer's record, read and written here, means the same but for the
// changed field: unknown fields are kept, at both levels.
func TestUnknownFieldsAreKept(t *testing.T) {
	state := `{"STATUS":"paused","z":{"deep":[1,{"er":null}]},"webhook":"w","status":"active","consecutive_failures":2,"big":123456789012345678901234567890,
		"head":{"source":"t/1/2","attempts":1,"Attempts":9,"note":"<é>"},"parked":{"from":1,"last":2,"count":1,"shards":[1]},"hold":{"by":"ana","why":"x"},"version":5}`
	endpoint := `{"id":"w","url":"https://a.example/","Url":"no","quota":null,"secrets":[{"value":"whsec_a","kind":"hmac"}],"tls":{"ca":"x","min":"1.3"}}`
	number := `{"topics":["t"],"holds":[{"scope":"all","ticket":7}],"next":true}`
	rapid.Check(t, func(t *rapid.T) {
		s, err := ParseState([]byte(state))
		if err != nil || s.Status != Active || s.Head.Attempts != 1 {
			t.Fatalf("%+v, %v", s, err)
		}
		if got := s.Marshal(); !reflect.DeepEqual(meaning(t, got), meaning(t, []byte(state))) {
			t.Fatalf("state became %s", got)
		}
		e, err := ParseEndpoint([]byte(endpoint))
		if err != nil || e.URL != "https://a.example/" {
			t.Fatalf("%v", err)
		}
		if got := e.Clone().Marshal(); !reflect.DeepEqual(meaning(t, got), meaning(t, []byte(endpoint))) {
			t.Fatalf("endpoint became %s", got)
		}
		n, err := ParseNumberState([]byte(number))
		if err != nil {
			t.Fatal(err)
		}
		if got := n.Marshal(); !reflect.DeepEqual(meaning(t, got), meaning(t, []byte(number))) {
			t.Fatalf("number state became %s", got)
		}
	})
}

// A name in another case is unknown, also where the known one is absent.
func TestNamesMatchExactly(t *testing.T) {
	s, err := ParseState([]byte(`{"webhook":"w","status":"active","Consecutive_Failures":7,"version":1}`))
	if err != nil || s.ConsecutiveFailures != 0 || string(s.Extra["Consecutive_Failures"]) != "7" {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestExtraNeverOverridesAField(t *testing.T) {
	s := State{Webhook: "w", Extra: Fields{"webhook": json.RawMessage(`"x"`), "y": json.RawMessage(`1`)}}
	if data := string(s.Marshal()); strings.Count(data, `"webhook"`) != 1 || !strings.Contains(data, `"webhook":"w"`) || !strings.Contains(data, `"y":1`) {
		t.Error(data)
	}
}

func TestBrokenJSON(t *testing.T) {
	for name, parse := range map[string]func([]byte) error{
		"attempt":            func(b []byte) error { _, err := ParseAttempt(b); return err },
		"state":              func(b []byte) error { _, err := ParseState(b); return err },
		"state of the":       func(b []byte) error { _, err := ParseNumberState(b); return err },
		"endpoint":           func(b []byte) error { _, err := ParseEndpoint(b); return err },
		"command":            func(b []byte) error { _, err := ParseCommand(b); return err },
		"result":             func(b []byte) error { _, err := ParseResult(b); return err },
		"state, bad time":    func([]byte) error { _, err := ParseState([]byte(`{"paused_at":"noon"}`)); return err },
		"state, bad source":  func([]byte) error { _, err := ParseState([]byte(`{"head":{"source":"x"}}`)); return err },
		"endpoint, duration": func([]byte) error { _, err := ParseEndpoint([]byte(`{"timeout":30}`)); return err },
		"command, no action": func([]byte) error { _, err := ParseCommand([]byte(`{"kind":"command","id":"a"}`)); return err },
	} {
		for _, broken := range []string{"", "{", "[]", `"x"`, "\x00"} {
			if err := parse([]byte(broken)); err == nil || !strings.Contains(err.Error(), "reading "+strings.SplitN(name, ",", 2)[0]) {
				t.Errorf("%s of %q: %v", name, broken, err)
			}
		}
	}
	for name, parse := range map[string]func([]byte) error{
		"state":    func(b []byte) error { _, err := ParseState(b); return err },
		"endpoint": func(b []byte) error { _, err := ParseEndpoint(b); return err },
	} {
		if err := parse([]byte("null")); err == nil {
			t.Errorf("%s: null was read", name)
		}
	}
}

func TestStatePauseReasonsAreASet(t *testing.T) {
	var s State
	if !s.Healthy() || !s.AddPause(PauseManual) || !s.AddPause(PauseConfig) || s.AddPause(PauseManual) || s.Status != Paused || s.Healthy() {
		t.Errorf("%+v", s)
	}
	copied := s
	if !s.RemovePause(PauseConfig) || s.RemovePause(PauseConfig) || s.HasPause(PauseConfig) || !s.HasPause(PauseManual) || s.Status != Paused {
		t.Errorf("%+v", s)
	}
	if !copied.HasPause(PauseConfig) {
		t.Error("a copy changed with the original")
	}
	if !s.RemovePause(PauseManual) || s.Status != Active || !s.Healthy() {
		t.Errorf("%+v", s)
	}
}

func TestParseStateNormalises(t *testing.T) {
	for in, want := range map[string][]PauseReason{
		`{"status":"paused"}`: {PauseManual},
		`{"status":"active","pause_reasons":["manual","config","manual"]}`: {PauseConfig, PauseManual},
		`{"status":"paused","pause_reasons":["newer"]}`:                    {"newer"},
	} {
		s, err := ParseState([]byte(in))
		if err != nil || s.Status != Paused || !reflect.DeepEqual(s.PauseReasons, want) {
			t.Errorf("%s: %+v, %v", in, s, err)
		}
	}
}

func TestStateHealthy(t *testing.T) {
	if s := (State{Webhook: "w", Status: Active, Version: 7, LastStatus: 500, LastError: "x"}); !s.Healthy() {
		t.Error("a last error alone is no reason to keep a state")
	}
	for name, s := range map[string]State{
		"paused": {PauseReasons: []PauseReason{PauseManual}}, "streak": {ConsecutiveFailures: 1}, "held": {HoldUntil: At(goldenProduced)},
		"head": {Head: &Head{}}, "parked": {Parked: &Parked{}}, "hold": {Hold: &Hold{}}, "newer": {Extra: Fields{"x": nil}},
	} {
		if s.Healthy() {
			t.Errorf("%s: a tombstone would lose it", name)
		}
	}
}

func TestNextVersion(t *testing.T) {
	now := time.UnixMilli(1_000_000)
	for prev, want := range map[int64]int64{0: 1_000_000, 999_999: 1_000_000, 1_000_000: 1_000_001, 5_000_000: 5_000_001, -7: 1_000_000, 1<<63 - 1: 1<<63 - 1} {
		if got := NextVersion(prev, now); got != want {
			t.Errorf("after %d: %d, want %d", prev, got, want)
		}
	}
}

func TestNumberStateTopics(t *testing.T) {
	n, err := ParseNumberState([]byte(`{"topics":["b","a","b"]}`))
	if err != nil || !reflect.DeepEqual(n.Topics, []string{"a", "b"}) {
		t.Fatalf("%+v, %v", n, err)
	}
	if n.AddTopic("a") || !n.AddTopic("aa") || !n.HasTopic("aa") || n.HasTopic("c") || !reflect.DeepEqual(n.Topics, []string{"a", "aa", "b"}) {
		t.Errorf("%+v", n)
	}
}

func TestAttemptLeavesOutWhatIsAbsent(t *testing.T) {
	for _, c := range []struct {
		a        Attempt
		has, not string
	}{
		{Attempt{Attempt: 1}, `"duration_ms":0`, "lateness_ms"},
		{Attempt{Attempt: 1, DueAt: At(goldenProduced)}, `"lateness_ms":0`, "started_at"},
		{Attempt{}, `"source_partition":0`, "duration_ms"},
	} {
		if data := string(c.a.Marshal()); !strings.Contains(data, c.has) || strings.Contains(data, c.not) || strings.Contains(data, "null") {
			t.Errorf("%s: want %s and no %s", data, c.has, c.not)
		}
	}
}

func TestPrintingAnEndpointShowsNoSecret(t *testing.T) {
	e := Endpoint{ID: "w", URLHost: "a.example", URL: "https://a.example/s3cr3t", Secrets: []Secret{{Value: "s3cr3t"}}, Headers: map[string]string{"A": "s3cr3t"}, TLS: &TLS{Key: "s3cr3t"}}
	var log strings.Builder
	logger := slog.New(slog.NewJSONHandler(&log, nil))
	logger.Info("x", "e", e, "p", &e, "s", e.Secrets[0], "t", *e.TLS)
	for _, printed := range []string{
		fmt.Sprintf("%v %+v %#v %s", e, e, e, e), fmt.Sprintf("%v %+v %#v", &e, e.Secrets, e.Secrets), fmt.Sprintf("%v %+v %#v", *e.TLS, e.TLS, e.TLS),
		fmt.Sprintf("%+v", struct{ E Endpoint }{e}), log.String(),
	} {
		if strings.Contains(printed, "s3cr3t") {
			t.Error(printed)
		}
	}
}

func TestConfigErrors(t *testing.T) {
	s := State{LastStatus: 500, LastError: "status: HTTP 500"}
	if s.SetConfigError(nil) || s.LastStatus != 500 {
		t.Errorf("a webhook that is well: %s", s.Marshal())
	}
	long := errors.New("no\n" + strings.Repeat("x", 2000))
	if !s.SetConfigError(long) || s.SetConfigError(long) || s.LastStatus != 0 || !strings.HasPrefix(s.LastError, ConfigError+`no\nx`) || len(s.LastError) > maxErrorText {
		t.Errorf("an error: %s", s.Marshal())
	}
	if !s.SetConfigError(nil) || s.LastError != "" {
		t.Errorf("mended: %s", s.Marshal())
	}
}
