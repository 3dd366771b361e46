package delivery

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/signing"
)

// seen is what an endpoint got.
type seen struct {
	*http.Request
	body []byte
}

// recorder keeps the requests and answers 200.
func recorder(into *[]seen) http.HandlerFunc {
	return func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		*into = append(*into, seen{r, body})
	}
}

func TestRequestIsTheContracts(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var got []seen
		w.serve(recorder(&got))
		time.Sleep(1234567 * time.Millisecond)
		e := endpoint(t, func(e *record.Endpoint) { e.Headers = map[string]string{"authorization": "Bearer token-0123456789"} })
		result := w.sender.Send(t.Context(), Attempt{Delivery: event(nil), Number: 3, Endpoint: e})
		if result.Class != ClassDelivered || result.Status != 200 || result.Failure != FailureNone || result.Detail != "" {
			t.Fatalf("%+v", result)
		}
		if len(got) != 1 {
			t.Fatalf("%d requests", len(got))
		}
		r := got[0]
		if r.Method != "POST" || r.RequestURI != "/in/token-0123456789?key=query-0123456789" || r.Host != "hooks.example" {
			t.Errorf("%s %s at %s", r.Method, r.RequestURI, r.Host)
		}
		stamp := fmt.Sprint(result.StartedAt.Unix())
		key, _ := signing.ParseSecret(testSecret)
		want := map[string]string{
			"Content-Type": "application/json", "User-Agent": "Reenvio/1.2.3", "X-Webhook-Event-Id": "evt_1",
			"X-Webhook-Delivery-Attempt": "3", "X-Webhook-Event-Type": "order.paid", "Webhook-Id": "evt_1", "Webhook-Timestamp": stamp,
			"Webhook-Signature": signing.Sign([]signing.Key{key}, "evt_1", result.StartedAt, []byte(`{"a": 1}`)),
			"Authorization":     "Bearer token-0123456789", "Content-Length": "8",
		}
		for name, value := range want {
			if got := r.Header[name]; len(got) != 1 || got[0] != value {
				t.Errorf("%s: %q, want %q", name, got, value)
			}
		}
		if len(r.Header) != len(want) {
			t.Errorf("headers %v", r.Header)
		}
		if string(r.body) != `{"a": 1}` {
			t.Errorf("body %q", r.body)
		}
	})
}

func TestTimestampIsOfTheAttempt(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var got []seen
		w.serve(recorder(&got))
		e := endpoint(t, nil)
		first := w.sender.Send(t.Context(), attempt(e))
		time.Sleep(time.Hour)
		second := w.sender.Send(t.Context(), attempt(e))
		for i, r := range []Result{first, second} {
			if got[i].Header.Get(headerTimestamp) != fmt.Sprint(r.StartedAt.Unix()) {
				t.Errorf("attempt %d: %s", i, got[i].Header.Get(headerTimestamp))
			}
		}
		if got[0].Header.Get(headerTimestamp) == got[1].Header.Get(headerTimestamp) {
			t.Error("the timestamp is that of the first attempt")
		}
	})
}

// Whatever an event and an endpoint hold: it is delivered, byte for byte, the
// official verifier accepts it, and nothing of ours is overridden.
func TestEveryRequestVerifies(t *testing.T) {
	w := newWorld(t, Egress{AllowHTTP: true}) // the verifier reads the real clock
	var got []seen
	w.serve(recorder(&got))
	rapid.Check(t, func(t *rapid.T) {
		got = nil
		d := event(func(d *record.Delivery) {
			d.ID = rapid.StringMatching(`[!-~]{1,256}`).Draw(t, "id")
			d.Type = rapid.String().Draw(t, "type")
			d.ContentType = rapid.OneOf(rapid.String(), rapid.Just("text/plain; charset=utf-8")).Draw(t, "content type")
			d.Traceparent = rapid.String().Draw(t, "traceparent")
			d.Value = rapid.OneOf(rapid.SliceOf(rapid.Byte()), rapid.Just([]byte(nil))).Draw(t, "value")
		})
		own := map[string]string{"X-Own": "theirs"}
		for _, name := range slices.Sorted(maps.Keys(reserved)) {
			if rapid.Bool().Draw(t, name) {
				own[rapid.SampledFrom([]string{name, strings.ToUpper(name), http.CanonicalHeaderKey(name)}).Draw(t, "form")] = "theirs"
			}
		}
		secrets := []string{testSecret, signing.NewSecret(), signing.NewSecret()}[:rapid.IntRange(1, 3).Draw(t, "secrets")]
		e, err := Prepare(config(func(e *record.Endpoint) {
			e.Headers, e.Secrets = own, nil
			for _, s := range secrets {
				e.Secrets = append(e.Secrets, record.Secret{Value: s})
			}
		}))
		if err != nil {
			t.Fatal(err)
		}
		result := w.sender.Send(context.Background(), Attempt{Delivery: d, Number: 1, Endpoint: e})
		if result.Class != ClassDelivered || len(got) != 1 {
			t.Fatalf("%+v, %d requests", result, len(got))
		}
		r := got[0]
		if !bytes.Equal(r.body, d.Value) || r.ContentLength != int64(len(d.Value)) || len(r.TransferEncoding) > 0 {
			t.Fatalf("body %q, length %d, %v", r.body, r.ContentLength, r.TransferEncoding)
		}
		for _, secret := range secrets {
			verifier, err := standardwebhooks.NewWebhook(secret)
			if err != nil {
				t.Fatal(err)
			}
			if err := verifier.Verify(r.body, r.Header); err != nil {
				t.Fatal(err)
			}
		}
		if r.Header.Get("X-Own") != "theirs" || r.Host != "hooks.example" {
			t.Fatalf("headers %v, host %s", r.Header, r.Host)
		}
		r.Header.Del("X-Own")
		for name, values := range r.Header {
			if len(values) != 1 || values[0] == "theirs" {
				t.Fatalf("%s: %q", name, values)
			}
		}
	})
}

func TestEmptyBodies(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var got []seen
		w.serve(recorder(&got))
		for _, value := range [][]byte{nil, {}} {
			d := event(func(d *record.Delivery) { d.Value = value })
			if r := w.sender.Send(t.Context(), Attempt{Delivery: d, Number: 1, Endpoint: endpoint(t, nil)}); r.Class != ClassDelivered {
				t.Fatalf("%+v", r)
			}
		}
		for _, r := range got {
			if r.Header.Get("Content-Length") != "0" || len(r.body) != 0 {
				t.Errorf("Content-Length %q, body %q", r.Header.Get("Content-Length"), r.body)
			}
		}
		if len(got) != 2 {
			t.Errorf("%d requests", len(got))
		}
	})
}

func TestHeadersFromTheEvent(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	state := func(v string) func(*record.Delivery) {
		return func(d *record.Delivery) {
			d.Traceparent = parent
			d.Headers = []kgo.RecordHeader{{Key: "x-unknown", Value: []byte("1")}, {Key: "tracestate", Value: []byte(v)}}
		}
	}
	for name, c := range map[string]struct {
		change func(*record.Delivery)
		header string
		want   string
	}{
		"no content type":         {func(d *record.Delivery) { d.ContentType = "" }, "Content-Type", "application/json"},
		"content type":            {func(d *record.Delivery) { d.ContentType = "text/plain; charset=utf-8" }, "Content-Type", "text/plain; charset=utf-8"},
		"structured":              {func(d *record.Delivery) { d.ContentType = "application/cloudevents+json" }, "Content-Type", "application/cloudevents+json"},
		"content type with CR/LF": {func(d *record.Delivery) { d.ContentType = "text/plain\r\nX-Evil: 1" }, "Content-Type", "application/json"},
		"type with LF":            {func(d *record.Delivery) { d.Type = "a\nb" }, "X-Webhook-Event-Type", ""},
		"type beyond ASCII":       {func(d *record.Delivery) { d.Type = "bestellung.bezahlt.größe" }, "X-Webhook-Event-Type", ""},
		"type with DEL":           {func(d *record.Delivery) { d.Type = "a\x7f" }, "X-Webhook-Event-Type", ""},
		"type with NUL":           {func(d *record.Delivery) { d.Type = "a\x00b" }, "X-Webhook-Event-Type", ""},
		"no type":                 {func(d *record.Delivery) { d.Type = "" }, "X-Webhook-Event-Type", ""},
		"other headers stay":      {state("a=1"), "X-Unknown", ""},
		"traceparent":             {func(d *record.Delivery) { d.Traceparent = parent }, "Traceparent", parent},
		"traceparent of later":    {func(d *record.Delivery) { d.Traceparent = "01" + parent[2:] + "-x" }, "Traceparent", "01" + parent[2:] + "-x"},
		"traceparent ff":          {func(d *record.Delivery) { d.Traceparent = "ff" + parent[2:] }, "Traceparent", ""},
		"traceparent too long":    {func(d *record.Delivery) { d.Traceparent = parent + "-x" }, "Traceparent", ""},
		"traceparent upper case":  {func(d *record.Delivery) { d.Traceparent = strings.ToUpper(parent) }, "Traceparent", ""},
		"traceparent zero":        {func(d *record.Delivery) { d.Traceparent = "00-" + strings.Repeat("0", 32) + parent[35:] }, "Traceparent", ""},
		"traceparent with LF":     {func(d *record.Delivery) { d.Traceparent = "01" + parent[2:] + "-\nX: 1" }, "Traceparent", ""},
		"tracestate":              {state("a=1,b=2"), "Tracestate", "a=1,b=2"},
		"tracestate with LF":      {state("a=1\n"), "Tracestate", ""},
		"tracestate too long":     {state(strings.Repeat("a", 513)), "Tracestate", ""},
		"tracestate alone": {func(d *record.Delivery) {
			state("a=1")(d)
			d.Traceparent = "nonsense"
		}, "Tracestate", ""},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				var got []seen
				w.serve(recorder(&got))
				r := w.sender.Send(t.Context(), Attempt{Delivery: event(c.change), Number: 1, Endpoint: endpoint(t, nil)})
				if r.Class != ClassDelivered {
					t.Fatalf("%+v", r)
				}
				if value := got[0].Header.Get(c.header); value != c.want {
					t.Errorf("%s: %q, want %q", c.header, value, c.want)
				}
			})
		})
	}
}

func TestSecretsRotate(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var got []seen
		w.serve(recorder(&got))
		start := time.Now()
		at := func(d time.Duration) record.Time { return record.Time{Time: start.Add(d)} }
		old, newest, middle := signing.NewSecret(), signing.NewSecret(), signing.NewSecret()
		e := endpoint(t, func(e *record.Endpoint) {
			e.Secrets = []record.Secret{
				{Value: middle, CreatedAt: at(-2 * time.Hour), ExpiresAt: at(2 * time.Hour)},
				{Value: newest, CreatedAt: at(-time.Hour), ExpiresAt: at(3 * time.Hour)},
				{Value: old, CreatedAt: at(-3 * time.Hour), ExpiresAt: at(time.Hour)},
			}
		})
		for i, active := range [][]string{{newest, middle, old}, {newest, middle}, {newest}} {
			w.sender.Send(t.Context(), attempt(e))
			var keys []signing.Key
			for _, s := range active {
				key, _ := signing.ParseSecret(s)
				keys = append(keys, key)
			}
			if want := signing.Sign(keys, "evt_1", time.Now(), []byte(`{"a": 1}`)); got[i].Header.Get(headerSignature) != want {
				t.Errorf("after %d h: %s, want %s", i, got[i].Header.Get(headerSignature), want)
			}
			time.Sleep(time.Hour)
		}
		r := w.sender.Send(t.Context(), attempt(e))
		if r.Class != ClassFailed || r.Failure != FailureConfig || len(got) != 3 {
			t.Errorf("without an active secret: %+v, %d requests", r, len(got))
		}
	})
}
