package main

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/reenvio/reenvio/internal/config"
	"github.com/reenvio/reenvio/internal/record"
)

// newPage is the page over a cluster of topics, without a dispatcher.
func newPage(t *testing.T) *page {
	t.Helper()
	s := newClusterShell(t)
	s.run(t, "topics", "apply", "--yes").wantCode(t, exitOK)
	s.run(t, "webhooks", "create", "--id", "crm", "--url", "https://hooks.example/secret-path", "--description", "<b>bold</b> & co", "--secret", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").wantCode(t, exitOK)
	c := &cli{stderr: io.Discard, environ: s.environ}
	settings, origins, err := c.loadOver(newRoot(c), defaultSettings(), config.Base{})
	if err != nil {
		t.Fatal(err)
	}
	session, err := c.openWith(t.Context(), settings, origins)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.client.Close)
	listener, err := listenPage("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &page{session: session, flow: newFlow(), receiver: &receiver{}, self: "bin/reenvio", log: slog.New(slog.DiscardHandler), listener: listener}
	if err := p.start(&devFile{Ports: devPorts{Admin: 4711}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.stop(t.Context()); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	})
	return p
}

func (p *page) get(t *testing.T, path string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)
	r.Host = "127.0.0.1:7090"
	for _, c := range change {
		c(r)
	}
	w := httptest.NewRecorder()
	p.handler().ServeHTTP(w, r)
	return w
}

func TestThePageShowsWhatHappens(t *testing.T) {
	p := newPage(t)
	now := record.At(time.Now())
	attempt := func(id string, n int, outcome record.Outcome, next record.Next) {
		p.flow.attempt(record.Attempt{Webhook: "crm", EventID: id, Attempt: n, Outcome: outcome, Next: next, StartedAt: now, Status: 500 + n})
	}
	attempt("e1", 1, record.Failed, record.NextRetry)
	attempt("e1", 2, record.Delivered, record.NextNone)
	attempt("e2", 1, record.Failed, record.NextRetry)
	attempt("<script>e3", 1, record.Failed, record.NextParked)
	attempt("e4", 1, record.Failed, record.NextRetry)
	p.flow.parked(&record.Delivery{Event: record.Event{Webhook: "crm", ID: "e4"}})
	attempt("e5", 5, record.Dead, record.NextNone)
	p.flow.deadLetter(record.DeadLetter{Delivery: record.Delivery{Event: record.Event{Webhook: "crm", ID: "e5", Value: []byte("the body")}}, Reason: record.AttemptsExhausted, Position: record.Source{Partition: 2, Offset: 17}})
	p.receiver.note(received{Webhook: demoFlaky, EventID: "e9", Attempt: 3, Status: 200, Body: `{"a":"<i>"}`})

	w := p.get(t, "/")
	body := w.Body.String()
	if w.Code != http.StatusOK {
		t.Fatalf("%d: %s", w.Code, body)
	}
	row := `<td class="n">1</td><td class="n">5</td><td class="n">1</td><td class="n">0</td><td class="n">1</td>` // delivered, failed, waiting, parked, dead
	for _, part := range []string{
		"No dispatcher runs", "crm", "&lt;b&gt;bold&lt;/b&gt; &amp; co", "hooks.example", row, "&lt;script&gt;e3", "502", "attempts_exhausted", "bin/reenvio dlq show 2/17",
		"e9", "{&#34;a&#34;:&#34;&lt;i&gt;&#34;}", "http://127.0.0.1:4711/metrics", "bin/reenvio send --webhook demo-ok", `http-equiv="refresh" content="2"`,
	} {
		if !strings.Contains(body, part) {
			t.Errorf("the page lacks %s", part)
		}
	}
	for _, part := range []string{"<script", "secret-path", "whsec_", "the body", "<b>", "<i>"} {
		if strings.Contains(body, part) {
			t.Errorf("the page has %s", part)
		}
	}
	if policy := w.Header().Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") {
		t.Errorf("policy %q", policy)
	}
	if t.Failed() {
		t.Log(body)
	}
	if strings.Contains(p.get(t, "/?still").Body.String(), "http-equiv") {
		t.Error("a page that is held still looks again")
	}
	if w := p.get(t, "/style.css"); w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/css") {
		t.Errorf("the style: %d, %v", w.Code, w.Header())
	}
	if w := p.get(t, "/dev_page.html"); w.Code != http.StatusNotFound {
		t.Errorf("another path: %d", w.Code)
	}
}

func TestThePageIsForThisMachineOnly(t *testing.T) {
	p := newPage(t)
	for host, want := range map[string]int{
		"127.0.0.1:7090": 200, "localhost:7090": 200, "localhost": 200, "[::1]:7090": 200, "[::1]": 200, "127.0.0.5": 200,
		"evil.example": 403, "evil.example:7090": 403, "localhost.evil.example": 403, "127.0.0.1.evil.example:7090": 403, "10.0.0.1:7090": 403, "": 403,
	} {
		if w := p.get(t, "/", func(r *http.Request) { r.Host = host }); w.Code != want {
			t.Errorf("host %q: %d, want %d", host, w.Code, want)
		} else if want == 403 && strings.Contains(w.Body.String(), "crm") {
			t.Errorf("host %q is told something", host)
		}
	}
	if w := p.get(t, "/", func(r *http.Request) { r.Method = http.MethodPost }); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", w.Code)
	}
	for _, address := range []string{"0.0.0.0:0", ":0", "192.0.2.1:0", "example.com:0", "[::]:0"} {
		if l, err := listenPage(address); err == nil || !strings.Contains(err.Error(), "dlq.listen") {
			t.Errorf("%s: %v, %v", address, l, err)
		}
	}
}

func TestThePageThatKafkaDoesNotAnswer(t *testing.T) {
	p := newPage(t)
	p.session.client.Close()
	if w := p.get(t, "/"); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "Reading the topics failed") {
		t.Errorf("%d: %s", w.Code, w.Body)
	}
}

func TestTheFlowIsBounded(t *testing.T) {
	f := newFlow()
	for i := range flowWaiting + 50 {
		f.attempt(record.Attempt{Webhook: "a", EventID: fmt.Sprint(i), Attempt: 1, Outcome: record.Failed, Next: record.NextRetry})
		f.deadLetter(record.DeadLetter{Delivery: record.Delivery{Event: record.Event{Webhook: "b", ID: fmt.Sprint(i)}}})
	}
	s := f.shown()
	if len(s.attempts) != flowLast || len(s.dead) != flowLast || s.attempts[0].EventID != fmt.Sprint(flowWaiting+49) || s.webhooks["a"].Waiting != flowWaiting || s.webhooks["b"].Dead != flowWaiting+50 {
		t.Errorf("got %d attempts, %d dead, %+v", len(s.attempts), len(s.dead), s.webhooks)
	}
}

// The page of a `reenvio dev` that runs, beside what status says of it.
func TestDevHasAPage(t *testing.T) {
	s := newShell(t)
	d := startDev(t, s, "--dispatcher.group=mine") // clients must look at the same
	d.await(t, d.ended, "Page", "http://127.0.0.1:")
	d.await(t, d.ended, demoOK, "delivered")
	s.run(t, "webhooks", "pause", demoOK).wantCode(t, exitOK)
	s.run(t, "hold", "--webhook", demoFlaky).wantCode(t, exitOK)
	file, err := findDev(".reenvio/dev.json")
	if err != nil || file == nil || file.Ports.Page == 0 {
		t.Fatalf("dev.json: %+v, %v", file, err)
	}
	response, err := http.Get(fmt.Sprintf("http://localhost:%d/", file.Ports.Page))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"3 of 3 numbers owned by 1 dispatcher", "HELD BY HAND: webhook demo-flaky", selfCommand() + " release --webhook demo-flaky", "manual", selfCommand() + " webhooks resume demo-ok"} {
		if !strings.Contains(string(body), part) {
			t.Errorf("the page lacks %s:\n%s", part, body)
		}
	}
	s.run(t, "status").wantCode(t, exitOK).wantOut(t, "Nothing needs a person at once.", "HELD BY HAND", "webhook demo-flaky", "reenvio release --webhook demo-flaky", "demo-ok", "manual", "reenvio webhooks resume demo-ok")
	d.end(t)
	if _, err := http.Get(fmt.Sprintf("http://localhost:%d/", file.Ports.Page)); err == nil {
		t.Error("the page is served when dev has ended")
	}
}

// An event may end without a request: its record has no start, but a time.
func TestADeathWithoutAnAttemptHasATime(t *testing.T) {
	settings := defaultSettings()
	topo, err := settings.topology()
	if err != nil {
		t.Fatal(err)
	}
	tell := &tail{topo: topo, flow: newFlow(), tell: newNarrator(io.Discard, "reenvio")}
	a := record.Attempt{Webhook: "nobody", EventID: "e1", Outcome: record.Dead, Next: record.NextNone, Error: "webhook_unknown", SourceTopic: "webhooks.events"}
	r, at := a.Record(topo.Attempts(), 0, nil), time.Now().Truncate(time.Millisecond)
	r.Timestamp = at
	s, err := tell.scene(r)
	if err != nil {
		t.Fatal(err)
	}
	s.tell()
	if shown := tell.flow.shown().attempts; len(shown) != 1 || !shown[0].StartedAt.Equal(at) || !s.at.Equal(at) {
		t.Errorf("got %+v at %s, want %s", shown, s.at, at)
	}
}
