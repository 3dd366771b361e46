package kafkatest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/reenvio/reenvio/internal/kafkatest"
)

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// client posts as a dispatcher would.
type client struct {
	t    *testing.T
	http *http.Client
}

func newClient(t *testing.T, c *kafkatest.Cluster, timeout time.Duration) client {
	transport := &http.Transport{DialContext: c.Dial}
	t.Cleanup(transport.CloseIdleConnections)
	return client{t, &http.Client{Transport: transport, Timeout: timeout}}
}

func (c client) post(url, event string, attempt int, body, signWith string) (int, error) {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("X-Webhook-Event-Id", event)
	req.Header.Set("X-Webhook-Delivery-Attempt", fmt.Sprint(attempt))
	if signWith != "" {
		signer, err := standardwebhooks.NewWebhook(signWith)
		if err != nil {
			c.t.Fatal(err)
		}
		now := time.Now()
		signature, _ := signer.Sign(event, now, []byte(body))
		req.Header.Set("webhook-id", event)
		req.Header.Set("webhook-timestamp", fmt.Sprint(now.Unix()))
		req.Header.Set("webhook-signature", signature)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

func TestReceiverKeepsWhatArrives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := kafkatest.Virtual(t)
		r := c.Receiver(t, kafkatest.After(time.Second, kafkatest.ByAttempt(503, 204)))
		r.VerifyWith(t, "w:1", secret)
		cl := newClient(t, c, time.Minute)
		begin := time.Now()
		for i, want := range []int{503, 204, 204} {
			if got, err := cl.post(r.URL("w:1"), "e1", i+1, "body", secret); got != want || err != nil {
				t.Fatalf("attempt %d: %d, %v, want %d", i+1, got, err, want)
			}
		}
		_, _ = cl.post(r.URL("w:1"), "e2", 1, "body", "whsec_"+strings.Repeat("A", 32))
		_, _ = cl.post(r.URL("w2"), "e1", 7, "", "")

		got := r.Requests()
		if len(got) != 5 || len(r.Of("w2")) != 1 {
			t.Fatalf("got %d requests, %d of w2; want 5 and 1", len(got), len(r.Of("w2")))
		}
		first, wrong, other := got[0], got[3], got[4]
		if first.Webhook != "w:1" || first.EventID != "e1" || first.Attempt != 1 || first.Nth != 1 || string(first.Body) != "body" ||
			first.Status != 503 || first.Signature != nil || first.Start != begin || first.End != begin.Add(time.Second) {
			t.Errorf("first request: %+v", first)
		}
		if got[2].Nth != 3 || other.Nth != 1 || other.Attempt != 7 {
			t.Errorf("counts: %d of e1, want 3; %d of w2's e1, want 1", got[2].Nth, other.Nth)
		}
		if wrong.Signature == nil {
			t.Error("a wrong signature was accepted")
		}
	})
}

func TestReceiverHangsAndResets(t *testing.T) {
	for name, start := range map[string]func(*testing.T, func(*testing.T, *kafkatest.Cluster)){
		"virtual": func(t *testing.T, f func(*testing.T, *kafkatest.Cluster)) {
			synctest.Test(t, func(t *testing.T) { f(t, kafkatest.Virtual(t)) })
		},
		"tcp": func(t *testing.T, f func(*testing.T, *kafkatest.Cluster)) { f(t, kafkatest.Fake(t)) },
	} {
		t.Run(name, func(t *testing.T) {
			start(t, func(t *testing.T, c *kafkatest.Cluster) {
				r := c.Receiver(t, kafkatest.Always(200))
				r.Answer("hang", func(*kafkatest.Request) kafkatest.Response { return kafkatest.Response{Hang: true} })
				r.Answer("reset", func(*kafkatest.Request) kafkatest.Response { return kafkatest.Response{Reset: true} })
				cl := newClient(t, c, 100*time.Millisecond)
				if _, err := cl.post(r.URL("hang"), "e", 1, "", ""); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("hanging: %v, want the client's timeout", err)
				}
				if _, err := cl.post(r.URL("reset"), "e", 1, "x", ""); !errors.Is(err, syscall.ECONNRESET) {
					t.Errorf("reset: %v, want ECONNRESET", err)
				}
				if _, err := cl.post(r.URL("fine"), "e", 1, "x", ""); err != nil {
					t.Errorf("fine: %v", err)
				}
				ends := map[string]kafkatest.Request{}
				if err := r.Await(t.Context(), func(q kafkatest.Request) bool {
					ends[q.Webhook] = q
					return len(ends) == 3
				}); err != nil {
					t.Fatal(err)
				}
				if ends["hang"].Status != 0 || ends["reset"].Status != 0 || ends["fine"].Status != 200 {
					t.Errorf("ends: %+v", ends)
				}
			})
		})
	}
}

// TestReceiverStopsWithRequestsHanging: nothing may be left in the bubble.
func TestReceiverStopsWithRequestsHanging(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := kafkatest.Virtual(t)
		r := c.Receiver(t, func(*kafkatest.Request) kafkatest.Response { return kafkatest.Response{Hang: true} })
		cl := newClient(t, c, 0)
		go func() { _, _ = cl.post(r.URL("w"), "e", 1, "", "") }()
		synctest.Wait()
		if got := r.Requests(); len(got) != 1 || !got[0].End.IsZero() {
			t.Fatalf("got %+v, want one that still goes on", got)
		}
	})
}

func TestFailSomeFailsTheFraction(t *testing.T) {
	script := kafkatest.FailSome(0.3, 2)
	failed := 0
	for i := range 10_000 {
		q := &kafkatest.Request{EventID: fmt.Sprintf("evt-%d", i), Attempt: 1}
		first := script(q).Status
		q.Attempt = 2
		second := script(q).Status
		q.Attempt = 3
		third := script(q).Status
		if first != second || third != 200 || (first == 500) != kafkatest.Chosen(q.EventID, 0.3) {
			t.Fatalf("event %d: %d, %d, %d", i, first, second, third)
		}
		if first == 500 {
			failed++
		}
	}
	if failed < 2800 || failed > 3200 {
		t.Fatalf("%d of 10000 failed at first, want about 3000", failed)
	}
}
