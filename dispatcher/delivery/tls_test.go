package delivery

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reenvio/reenvio/internal/record"
)

func TestTLSFailures(t *testing.T) {
	for want, set := range map[string]func(t *testing.T, w *world) *Endpoint{
		"x509: certificate signed by unknown authority": func(t *testing.T, w *world) *Endpoint {
			w.serveTLS(issue(t, "hooks.example"), answer(200), nil)
			return secure(t, issue(t, "hooks.example"))
		},
		"x509: certificate is valid for other.example, not hooks.example": func(t *testing.T, w *world) *Endpoint {
			i := issue(t, "other.example")
			w.serveTLS(i, answer(200), nil)
			return secure(t, i)
		},
		"the endpoint refused: tls: certificate required": func(t *testing.T, w *world) *Endpoint {
			// With TLS 1.3 the client has finished its handshake by then. This server
			// closes late, so that the alert is not lost to a broken pipe.
			i := issue(t, "hooks.example")
			l := w.listen(publicIP + ":443")
			w.played.Go(func() {
				c, err := l.Accept()
				if err != nil {
					return
				}
				defer c.Close()
				tls.Server(c, &tls.Config{Certificates: []tls.Certificate{i.pair}, ClientAuth: tls.RequireAnyClientCert}).Handshake()
				io.Copy(io.Discard, c)
			})
			return secure(t, i)
		},
		"the endpoint does not speak TLS": func(t *testing.T, w *world) *Endpoint {
			l := w.listen(publicIP + ":443")
			go func() {
				c, _ := l.Accept()
				bufio.NewReader(c).ReadByte()
				fmt.Fprint(c, "HTTP/1.1 400 Bad Request\r\n\r\n")
			}()
			return secure(t, issue(t, "hooks.example"))
		},
		"the connection ended in the TLS handshake": func(t *testing.T, w *world) *Endpoint {
			l := w.listen(publicIP + ":443")
			go func() {
				c, _ := l.Accept()
				bufio.NewReader(c).ReadByte()
				c.Close()
			}()
			return secure(t, issue(t, "hooks.example"))
		},
		"the endpoint refused: tls: protocol version not supported": func(t *testing.T, w *world) *Endpoint {
			i := issue(t, "hooks.example")
			w.serveTLS(i, answer(200), func(s *httptest.Server) {
				s.TLS.MinVersion, s.TLS.MaxVersion, s.EnableHTTP2 = tls.VersionTLS10, tls.VersionTLS11, false
			})
			return secure(t, i)
		},
	} {
		t.Run(want, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				r := w.sender.Send(t.Context(), attempt(set(t, w)))
				synctest.Wait()
				if w.opened() != 0 {
					t.Errorf("%d connections are left open", w.opened())
				}
				if r.Class != ClassFailed || r.Failure != FailureTLS || !strings.HasPrefix(r.Detail, want) || r.SecondTry {
					t.Errorf("%+v", r)
				}
			})
		})
	}
}

func TestClientCertificate(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		server, client := issue(t, "hooks.example"), issue(t)
		w.serveTLS(server, answer(200), func(s *httptest.Server) {
			s.TLS.ClientAuth, s.TLS.ClientCAs = tls.RequireAndVerifyClientCert, client.pool
		})
		e := endpoint(t, func(e *record.Endpoint) {
			e.URL, e.TLS = "https://hooks.example/", &record.TLS{CA: server.certPEM, Cert: client.certPEM, Key: client.keyPEM}
		})
		if r := w.sender.Send(t.Context(), attempt(e)); r.Class != ClassDelivered {
			t.Errorf("%+v", r)
		}
	})
}

// Endpoints share connections exactly when their TLS settings are equal, and the
// number of different settings kept is bounded.
func TestOwnTLSTransports(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		i, client := issue(t, "hooks.example"), issue(t)
		w.serveTLS(i, answer(200), nil)
		one, same := secure(t, i), secure(t, i)
		other := endpoint(t, func(e *record.Endpoint) {
			e.URL, e.TLS = "https://hooks.example/", &record.TLS{CA: i.certPEM, Cert: client.certPEM, Key: client.keyPEM}
		})
		send := func(e *Endpoint, reused bool) {
			t.Helper()
			if r := w.sender.Send(t.Context(), attempt(e)); r.Class != ClassDelivered || r.Reused != reused {
				t.Errorf("%+v, want reused %v", r, reused)
			}
		}
		send(one, false)
		send(same, true)
		send(other, false)
		send(other, true)
		made := byte(0)
		push := func(n int) { // n settings nobody has used yet
			for range n {
				e := *one
				e.tls = &ownTLS{config: one.tls.config}
				e.tls.id = tlsID{made, byte(n)}
				made++
				w.sender.transports.of(&e)
			}
		}
		push(maxOwnTransports - 2)
		send(one, true) // used last, so it stays when the next one comes
		if w.opened() != 2 {
			t.Errorf("%d connections", w.opened())
		}
		push(1)
		send(one, true)
		synctest.Wait()
		if w.opened() != 1 {
			t.Errorf("%d connections are open when one transport was pushed out", w.opened())
		}
		send(other, false)
		if n := w.sender.transports.order.Len(); n != maxOwnTransports || len(w.sender.transports.own) != n {
			t.Errorf("%d transports", n)
		}
	})
}

func TestTLSSettingsAreToldApart(t *testing.T) {
	i := issue(t)
	one := record.TLS{CA: i.certPEM, Cert: "a\n" + i.certPEM, Key: i.keyPEM}
	ids := map[tlsID]string{}
	for name, change := range map[string]func(*record.TLS){
		"one":             func(*record.TLS) {},
		"another CA":      func(s *record.TLS) { s.CA += "\n" },
		"equal in length": func(s *record.TLS) { s.Cert = "b\n" + i.certPEM },
		"another cert":    func(s *record.TLS) { s.Cert += "\n" },
		"another key":     func(s *record.TLS) { s.Key += "\n" },
		"moved boundary":  func(s *record.TLS) { s.CA, s.Cert = i.certPEM+"a\n", i.certPEM },
	} {
		settings := one
		change(&settings)
		own, err := newOwnTLS(&settings)
		if err != nil {
			t.Fatal(err)
		}
		if other, taken := ids[own.id]; taken {
			t.Errorf("%s is taken for %s", name, other)
		}
		ids[own.id] = name
	}
	if own, err := newOwnTLS(&record.TLS{}); own != nil || err != nil {
		t.Errorf("empty settings: %v, %v", own, err)
	}
}

func TestPrepareRefuses(t *testing.T) {
	i, j := issue(t), issue(t)
	for name, c := range map[string]struct {
		change func(*record.Endpoint)
		want   string
	}{
		"no URL":            {func(e *record.Endpoint) { e.URL = "" }, "url: want an https URL"},
		"unreadable URL":    {func(e *record.Endpoint) { e.URL = "https://h.example/%zz-hidden" }, "url: it can't be read"},
		"scheme":            {func(e *record.Endpoint) { e.URL = "ftp://h.example/hidden" }, "url: want an https URL"},
		"no host":           {func(e *record.Endpoint) { e.URL = "https:///hidden" }, "url: want a URL with a host"},
		"opaque":            {func(e *record.Endpoint) { e.URL = "https:hidden" }, "url: want a URL with a host"},
		"user":              {func(e *record.Endpoint) { e.URL = "https://u:hidden@h.example/" }, "without user"},
		"port":              {func(e *record.Endpoint) { e.URL = "https://h.example:65536/hidden" }, "port"},
		"port 0":            {func(e *record.Endpoint) { e.URL = "https://h.example:0/hidden" }, "port"},
		"zone":              {func(e *record.Endpoint) { e.URL = "https://[fe80::1%25eth0]/hidden" }, "zone"},
		"host beyond ASCII": {func(e *record.Endpoint) { e.URL = "https://münchen.example/hidden" }, "xn--"},
		"numeric host":      {func(e *record.Endpoint) { e.URL = "https://127.1/hidden" }, "four numbers"},
		"number for a host": {func(e *record.Endpoint) { e.URL = "https://2130706433/hidden" }, "four numbers"},
		"no secret":         {func(e *record.Endpoint) { e.Secrets = nil }, "secrets: there is none"},
		"bad secret":        {func(e *record.Endpoint) { e.Secrets[0].Value = "hidden" }, "secrets: [0]:"},
		"header name":       {func(e *record.Endpoint) { e.Headers = map[string]string{"a b": "hidden"} }, "headers: the name"},
		"empty name":        {func(e *record.Endpoint) { e.Headers = map[string]string{"": "hidden"} }, "headers: the name"},
		"header value":      {func(e *record.Endpoint) { e.Headers = map[string]string{"X-A": "hidden\r\nX: 1"} }, "headers: the value of X-A"},
		"non-ASCII value":   {func(e *record.Endpoint) { e.Headers = map[string]string{"X-A": "hiddené"} }, "headers: the value of X-A"},
		"bad CA":            {func(e *record.Endpoint) { e.TLS = &record.TLS{CA: "hidden"} }, "tls: ca:"},
		"cert alone":        {func(e *record.Endpoint) { e.TLS = &record.TLS{Cert: "hidden"} }, "tls: cert and key: want both"},
		"key alone":         {func(e *record.Endpoint) { e.TLS = &record.TLS{Key: "hidden"} }, "tls: cert and key: want both"},
		"bad pair":          {func(e *record.Endpoint) { e.TLS = &record.TLS{Cert: "hidden", Key: "hidden"} }, "tls: cert and key"},
		"unlike pair":       {func(e *record.Endpoint) { e.TLS = &record.TLS{Cert: i.certPEM, Key: j.keyPEM} }, "tls: cert and key"},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := Prepare(config(c.change))
			if err == nil {
				t.Fatalf("accepted: %+v", e)
			}
			if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hidden") {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

func TestEndpointPrintsNoSecret(t *testing.T) {
	e := endpoint(t, func(e *record.Endpoint) { e.Headers = map[string]string{"X-Key": "header-0123456789"} })
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if got := fmt.Sprintf(verb, e); got != "endpoint at hooks.example" {
			t.Errorf("%s: %s", verb, got)
		}
	}
	if e.URLHost() != "hooks.example" || e.Timeout() != 30*time.Second {
		t.Errorf("%s, %s", e.URLHost(), e.Timeout())
	}
}
