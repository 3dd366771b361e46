package delivery

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/reenvio/reenvio/internal/record"
)

// endless writes until nobody listens, and counts.
func endless(sent *atomic.Int64) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		for {
			n, err := w.Write(bytes.Repeat([]byte("x"), 32<<10))
			sent.Add(int64(n))
			if err != nil {
				return
			}
		}
	}
}

// A body without end is neither read without end nor waited for, and a success
// stays one.
func TestEndlessBody(t *testing.T) {
	for _, status := range []int{200, 500} {
		for _, proto := range []string{"http", "https"} { // HTTP/1.1, HTTP/2
			t.Run(fmt.Sprint(proto, status), func(t *testing.T) {
				inBubble(t, func(t *testing.T, w *world) {
					var sent atomic.Int64
					body := endless(&sent)
					handler := func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(status); body(w, r) }
					e := endpoint(t, nil)
					if proto == "http" {
						w.serve(handler)
					} else {
						i := issue(t, "hooks.example")
						w.serveTLS(i, handler, nil)
						e = secure(t, i)
					}
					r := w.sender.Send(t.Context(), attempt(e))
					want := ClassFailed
					if status == 200 {
						want = ClassDelivered
					}
					if r.Class != want || r.Status != status || time.Since(r.StartedAt) != 0 {
						t.Errorf("%+v after %s", r, time.Since(r.StartedAt))
					}
					if status == 500 && (len(r.Excerpt) > maxExcerpt || !strings.HasPrefix(r.Excerpt, "xxx")) {
						t.Errorf("excerpt %q", r.Excerpt)
					}
					time.Sleep(time.Minute)
					// What was read, and what fits between the ends.
					if n := sent.Load(); n > maxAnswerBody+1<<20 {
						t.Errorf("%d bytes were taken", n)
					}
				})
			})
		}
	}
}

// A body that stalls or drips after the header costs half a second, not the
// timeout, and changes nothing.
func TestStallingBody(t *testing.T) {
	for _, status := range []int{201, 503} {
		inBubble(t, func(t *testing.T, w *world) {
			w.serve(func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(status)
				for range 20 {
					io.WriteString(w, "drip ")
					w.(http.Flusher).Flush()
					time.Sleep(100 * time.Millisecond)
				}
				hang(r)
			})
			r := w.sender.Send(t.Context(), attempt(endpoint(t, nil)))
			if r.Status != status || (r.Class == ClassDelivered) != (status == 201) || r.Failure == FailureTimeout {
				t.Errorf("%+v", r)
			}
			if r.Duration != 0 || time.Since(r.StartedAt) != answerGrace {
				t.Errorf("decided after %s, free after %s", r.Duration, time.Since(r.StartedAt))
			}
			if status == 503 && !strings.HasPrefix(r.Excerpt, "drip drip") {
				t.Errorf("excerpt %q", r.Excerpt)
			}
		})
	}
}

// The deadline ends the reading of a body when less than the grace is left.
func TestBodyWithinTheDeadline(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.serve(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(900 * time.Millisecond)
			w.WriteHeader(200)
			w.(http.Flusher).Flush()
			hang(r)
		})
		r := w.sender.Send(t.Context(), attempt(endpoint(t, func(e *record.Endpoint) { e.Timeout = seconds(1) })))
		if r.Class != ClassDelivered || r.Duration != 900*time.Millisecond || time.Since(r.StartedAt) != time.Second {
			t.Errorf("%+v after %s", r, time.Since(r.StartedAt))
		}
	})
}

func TestGzipIsNotDecoded(t *testing.T) {
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	z.Write(make([]byte, 52<<20))
	z.Close()
	for name, body := range map[string][]byte{"bomb": bomb.Bytes(), "broken": []byte("this is not gzip"), "cut off": bomb.Bytes()[:20]} {
		for _, status := range []int{200, 500} {
			t.Run(fmt.Sprint(name, status), func(t *testing.T) {
				inBubble(t, func(t *testing.T, w *world) {
					accepted := ""
					w.serve(func(w http.ResponseWriter, r *http.Request) {
						accepted = r.Header.Get("Accept-Encoding")
						w.Header().Set("Content-Encoding", "gzip")
						w.WriteHeader(status)
						w.Write(body)
					})
					r := w.sender.Send(t.Context(), attempt(endpoint(t, nil)))
					if r.Status != status || (r.Class == ClassDelivered) != (status == 200) || accepted != "" {
						t.Errorf("%+v, Accept-Encoding %q", r, accepted)
					}
					if status == 500 && r.Excerpt != "(gzip, not decoded)" {
						t.Errorf("excerpt %q", r.Excerpt)
					}
				})
			})
		}
	}
}

// Bodies that break off, or break the framing, after a header that decided.
func TestBrokenBodies(t *testing.T) {
	for _, rest := range []string{
		"Content-Length: 100\r\n\r\nshort",
		"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
		"Transfer-Encoding: chunked\r\n\r\n5\r\nabc",
		"Content-Length: 3\r\n\r\nmore than three",
		"\r\nuntil the end",
	} {
		for _, status := range []int{202, 502} {
			inBubble(t, func(t *testing.T, w *world) {
				w.script(func(_ int, c net.Conn, r *bufio.Reader) {
					read(r)
					fmt.Fprintf(c, "HTTP/1.1 %d X\r\n%s", status, rest)
				})
				r := w.sender.Send(t.Context(), attempt(endpoint(t, nil)))
				if r.Status != status || (r.Class == ClassDelivered) != (status == 202) {
					t.Errorf("%q: %+v", rest, r)
				}
			})
		}
	}
}

func TestExcerptShowsNoSecret(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.serve(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(404)
			fmt.Fprintf(w, "<pre>\x1b[31mCannot POST %s</pre>\r\n\t\x00 path %s token %s, key %s, auth %s\xff ", r.RequestURI, r.URL.Path, "token-0123456789",
				r.URL.Query().Get("key"), strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		})
		r := w.sender.Send(t.Context(), attempt(endpoint(t, func(e *record.Endpoint) {
			e.Headers = map[string]string{"Authorization": "Bearer header-0123456789"}
		})))
		want := "<pre> [31mCannot POST [redacted]</pre> path [redacted] token [redacted], key [redacted], auth [redacted]"
		if r.Excerpt != want {
			t.Errorf("%q, want %q", r.Excerpt, want)
		}
	})
}

// A secret that the window cuts in two shows neither half.
func TestExcerptCutInsideASecret(t *testing.T) {
	e := endpoint(t, nil)
	const token = "/in/token-0123456789?key=query-0123456789"
	for n := 1; n < len(token); n++ {
		if got := e.excerpt([]byte("error at "+token[:n]), true, ""); got != "error at" {
			t.Errorf("%d bytes of it: %q", n, got)
		}
	}
	if got := e.excerpt([]byte("error at /"), false, ""); got != "error at /" {
		t.Errorf("%q", got)
	}
}

func TestCleanProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(rapid.String(), rapid.Custom(func(t *rapid.T) string {
			return string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
		})).Draw(t, "text")
		limit := rapid.IntRange(8, 64).Draw(t, "limit")
		got := clean(s, limit)
		if len(got) > limit || clean(got, limit) != got || strings.ContainsAny(got, "\r\n\t\x00\x7f\ufffd") || strings.Contains(got, "  ") {
			t.Fatalf("%q becomes %q", s, got)
		}
	})
}
