package delivery

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/reenvio/reenvio/internal/record"
)

// Every status there can be, in both modes.
func TestStatuses(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		status := 0
		w.script(func(_ int, c net.Conn, r *bufio.Reader) {
			for {
				if request, _ := read(r); request == nil {
					return
				}
				fmt.Fprintf(c, "HTTP/1.1 %d X\r\nContent-Length: 0\r\n\r\n", status)
			}
		})
		success := map[int]bool{200: true, 201: true, 202: true, 204: true}
		final := map[int]bool{400: true, 401: true, 403: true, 404: true, 405: true, 413: true, 415: true, 422: true}
		for _, mode := range []record.RetryOn{"", record.RetryAny, record.RetryTransient} {
			e := endpoint(t, func(e *record.Endpoint) { e.RetryOn = mode })
			transient := mode == record.RetryTransient
			for status = 200; status <= 599; status++ {
				want := Result{Class: ClassFailed, Failure: FailureStatus}
				switch {
				case success[status]:
					want = Result{Class: ClassDelivered}
				case status >= 300 && status <= 399:
					want.Failure = FailureRedirect
				case transient && final[status]:
					want.Class = ClassPermanent
				case transient && status == 410:
					want.Class = ClassGone
				}
				got := w.sender.Send(t.Context(), attempt(e))
				if got.Class != want.Class || got.Failure != want.Failure || got.Status != status || got.URLHost != "hooks.example" {
					t.Errorf("%s %d: %+v", mode, status, got)
				}
				if (got.Detail == "") != (got.Class == ClassDelivered) || got.Class != ClassDelivered && !strings.HasPrefix(got.Detail, fmt.Sprint("HTTP ", status)) {
					t.Errorf("%s %d: detail %q", mode, status, got.Detail)
				}
			}
		}
		if w.dialed() != 1 {
			t.Errorf("%d connections", w.dialed())
		}
	})
}

func TestRedirectsAreAnswers(t *testing.T) {
	for location, want := range map[string]string{
		"":                                "HTTP 302 Found; redirects are not followed",
		"/elsewhere?token=1":              "HTTP 302 Found to the same host; redirects are not followed",
		"https://other.example:8443/t?a=": "HTTP 302 Found to https://other.example:8443; redirects are not followed",
		"https://user:pw@other.example/":  "HTTP 302 Found to https://other.example; redirects are not followed",
		"http://a b/":                     "HTTP 302 Found to an unreadable Location; redirects are not followed",
	} {
		inBubble(t, func(t *testing.T, w *world) {
			requests := 0
			w.serve(func(w http.ResponseWriter, _ *http.Request) {
				requests++
				if location != "" {
					w.Header()["Location"] = []string{location}
				}
				w.WriteHeader(302)
			})
			r := w.sender.Send(t.Context(), attempt(endpoint(t, nil)))
			if r.Class != ClassFailed || r.Failure != FailureRedirect || r.Status != 302 || r.Detail != want || requests != 1 {
				t.Errorf("%q: %+v, %d requests", location, r, requests)
			}
		})
	}
}

func TestRetryAfter(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var status int
		var value string
		w.serve(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", value)
			w.WriteHeader(status)
		})
		now := time.Now().UTC()
		for _, c := range []struct {
			status int
			value  string
			want   time.Duration
		}{
			{429, "120", 2 * time.Minute},
			{503, "1", time.Second},
			{429, "0", 0},
			{500, "120", 0},
			{200, "120", 0},
			{503, now.Add(time.Hour).Format(http.TimeFormat), time.Hour},
			{503, now.Add(-time.Hour).Format(http.TimeFormat), 0},
			{429, "-1", 0},
			{429, "soon", 0},
			{429, "1.5", 0},
			{429, "", 0},
			{429, "18446744073709551615", 1 << 31 * time.Second},
			{429, "18446744073709551616", 0},
		} {
			status, value = c.status, c.value
			if r := w.sender.Send(t.Context(), attempt(endpoint(t, nil))); r.RetryAfter != c.want {
				t.Errorf("%d %q: %s, want %s", c.status, c.value, r.RetryAfter, c.want)
			}
		}
	})
}

// Interim answers are no answers.
func TestInterimAnswers(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.serve(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(103)
			w.WriteHeader(102)
			w.WriteHeader(201)
		})
		if r := w.sender.Send(t.Context(), attempt(endpoint(t, nil))); r.Class != ClassDelivered || r.Status != 201 {
			t.Errorf("%+v", r)
		}
	})
}

// After 101 the connection is no HTTP any more, and a read would last for ever.
func TestSwitchingProtocolsIsAFailure(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.script(func(_ int, c net.Conn, r *bufio.Reader) {
			read(r)
			fmt.Fprint(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n")
			r.ReadByte()
		})
		r := w.sender.Send(t.Context(), attempt(endpoint(t, nil)))
		if r.Class != ClassFailed || r.Failure != FailureStatus || r.Status != 101 || time.Since(r.StartedAt) != 0 {
			t.Errorf("%+v after %s", r, time.Since(r.StartedAt))
		}
	})
}
