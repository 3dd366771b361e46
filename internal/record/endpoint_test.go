package record

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var defaultTiers = []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second}

func policy() Policy { return Policy{Tiers: defaultTiers, MaxDelay: time.Hour} }

func TestEndpointValidate(t *testing.T) {
	n := func(n int) *int { return &n }
	long := func(n int) string { return strings.Repeat("x", n) }
	delays := func(d ...time.Duration) (s []Duration) {
		for _, d := range d {
			s = append(s, Duration(d))
		}
		return s
	}
	for _, c := range []struct {
		name   string
		change func(*Endpoint)
		want   string // empty: accepted
	}{
		{"plain", func(*Endpoint) {}, ""},
		{"no id", func(e *Endpoint) { e.ID = "" }, "webhook id is empty"},
		{"bad id", func(e *Endpoint) { e.ID = "a/b" }, "webhook id has a byte 0x2f"},
		{"no url", func(e *Endpoint) { e.URL = "" }, "url is missing"},
		{"http", func(e *Endpoint) { e.URL = "http://a.example/" }, "url must be https (http needs egress.allow_http)"},
		{"scheme", func(e *Endpoint) { e.URL = "ftp://a.example/" }, "url must start with https://"},
		{"sealed", func(e *Endpoint) { e.URL = "enc:1:AAAA" }, "url must start with https://"},
		{"upper case", func(e *Endpoint) { e.URL = "HTTPS://A.example/" }, ""},
		{"no host", func(e *Endpoint) { e.URL = "https:///x" }, "url has no host"},
		{"only port", func(e *Endpoint) { e.URL = "https://:443/x" }, "url has no host"},
		{"port", func(e *Endpoint) { e.URL = "https://a.example:70000/" }, "url has port 70000"},
		{"port 0", func(e *Endpoint) { e.URL = "https://a.example:0/" }, "url has port 0"},
		{"user", func(e *Endpoint) { e.URL = "https://u:p@a.example/" }, "url has a user"},
		{"fragment", func(e *Endpoint) { e.URL = "https://a.example/#" }, "url has a fragment"},
		{"newline", func(e *Endpoint) { e.URL = "https://a.example/\n" }, "url can't be read"},
		{"long url", func(e *Endpoint) { e.URL = "https://a.example/" + long(maxURL) }, "the most is 8192"},
		{"literal", func(e *Endpoint) { e.URL = "https://[2001:db8::1]:8443/x?a=1" }, ""},
		{"short timeout", func(e *Endpoint) { e.Timeout = Duration(999 * time.Millisecond) }, "timeout is 999ms, want 1s to 2m0s"},
		{"long timeout", func(e *Endpoint) { e.Timeout = Duration(2*time.Minute + 1) }, "timeout is"},
		{"bounds of timeout", func(e *Endpoint) { e.Timeout = Duration(2 * time.Minute) }, ""},
		{"negative attempts", func(e *Endpoint) { e.MaxAttempts = -1 }, "max_attempts is -1, want 1 to 50"},
		{"attempts", func(e *Endpoint) { e.MaxAttempts, e.Schedule = 51, delays(time.Second) }, "max_attempts is 51, want 1 to 50"},
		{"50 attempts", func(e *Endpoint) { e.MaxAttempts, e.Schedule = 50, delays(time.Second) }, ""},
		{"8 attempts", func(e *Endpoint) { e.MaxAttempts = 8 }, ""},
		{"9 attempts", func(e *Endpoint) { e.MaxAttempts = 9 }, "retry.tiers"},
		{"1 attempt", func(e *Endpoint) { e.MaxAttempts = 1 }, ""},
		{"schedule, short", func(e *Endpoint) { e.Schedule = delays(time.Second, 499*time.Millisecond) }, "schedule[1] is 499ms, want 500ms to 168h0m0s"},
		{"schedule, long", func(e *Endpoint) { e.Schedule = delays(7*24*time.Hour + 1) }, "schedule[0] is 168h0m0.000000001s, want"},
		{"schedule, 8 hops", func(e *Endpoint) { e.Schedule = delays(128 * time.Second) }, ""},
		{"schedule, 9 hops", func(e *Endpoint) { e.Schedule = delays(time.Second, 128*time.Second+1) }, "schedule[1] is 2m8.000000001s, more than 8 hops of the longest delay topic (16s): add a longer one to retry.tiers"},
		{"schedule, many", func(e *Endpoint) { e.Schedule = make([]Duration, 50) }, "schedule has 50 delays"},
		{"ordering", func(e *Endpoint) { e.Ordering = "fifo" }, `ordering is "fifo"`},
		{"in flight", func(e *Endpoint) { e.MaxInFlight = 2 }, "max_in_flight is 2, but ordering first_attempt allows 1"},
		{"in flight, strict", func(e *Endpoint) { e.Ordering, e.MaxInFlight = OrderStrict, 2 }, "ordering strict allows 1"},
		{"in flight, key", func(e *Endpoint) { e.Ordering, e.MaxInFlight = OrderStrictKey, 100 }, ""},
		{"in flight below", func(e *Endpoint) { e.MaxInFlight = -1 }, "max_in_flight is -1"},
		{"rate", func(e *Endpoint) { e.RateLimit = -0.5 }, "rate_limit is -0.5"},
		{"rate NaN", func(e *Endpoint) { e.RateLimit = math.NaN() }, "rate_limit is NaN"},
		{"retry on", func(e *Endpoint) { e.RetryOn = "5xx" }, `retry_on is "5xx"`},
		{"jitter", func(e *Endpoint) { e.Jitter = "some" }, `jitter is "some"`},
		{"never pauses", func(e *Endpoint) { e.AutoPauseAfter = n(0) }, ""},
		{"pause", func(e *Endpoint) { e.AutoPauseAfter = n(-1) }, "auto_pause_after is -1"},
		{"resume", func(e *Endpoint) { e.AutoResume = -1 }, "auto_resume is -1ns"},
		{"types", func(e *Endpoint) { e.EventTypes = []string{"a.*", ""} }, "event_types[1] is empty"},
		{"many types", func(e *Endpoint) { e.EventTypes = make([]string, 101) }, "event_types has 101"},
		{"long type", func(e *Endpoint) { e.EventTypes = []string{long(257)} }, "event_types[0] has 257 bytes"},
		{"description", func(e *Endpoint) { e.Description = long(1025) }, "description has 1025 bytes"},
		{"tenant", func(e *Endpoint) { e.Tenant = "\xff" }, "tenant is not valid UTF-8"},
		{"secret", func(e *Endpoint) { e.Secrets = []Secret{{}} }, "secrets[0].value has 0 bytes"},
		{"secrets", func(e *Endpoint) { e.Secrets = make([]Secret, 11) }, "secrets has 11"},
		{"header", func(e *Endpoint) { e.Headers = map[string]string{"X-Api-Key": "a b", "authorization": "Bearer x"} }, ""},
		{"header name", func(e *Endpoint) { e.Headers = map[string]string{"a b": "x"} }, `headers has the name "a b"`},
		{"header, empty name", func(e *Endpoint) { e.Headers = map[string]string{"": "x"} }, `headers has the name ""`},
		{"header line", func(e *Endpoint) { e.Headers = map[string]string{"A": "x\r\nB: y"} }, "headers.A has a value that can't be sent"},
		{"header, not ASCII", func(e *Endpoint) { e.Headers = map[string]string{"A": "é"} }, "headers.A has a value"},
		{"header, spaces", func(e *Endpoint) { e.Headers = map[string]string{"A": " x"} }, "headers.A has a value"},
		{"header twice", func(e *Endpoint) { e.Headers = map[string]string{"a-b": "x", "A-B": "y"} }, "in different case"},
		{"header of ours", func(e *Endpoint) { e.Headers = map[string]string{"Webhook-Signature": "x"} }, "headers has Webhook-Signature"},
		{"header of ours, x", func(e *Endpoint) { e.Headers = map[string]string{"x-webhook-event-id": "x"} }, "headers has x-webhook-event-id"},
		{"content type", func(e *Endpoint) { e.Headers = map[string]string{"content-TYPE": "x"} }, "headers has content-TYPE"},
		{"hop by hop", func(e *Endpoint) { e.Headers = map[string]string{"Transfer-Encoding": "chunked"} }, "headers has Transfer-Encoding"},
		{"host", func(e *Endpoint) { e.Headers = map[string]string{"Host": "x"} }, "headers has Host"},
		{"ca", func(e *Endpoint) { e.TLS = &TLS{CA: "x"} }, "tls.ca holds no certificate"},
		{"cert without key", func(e *Endpoint) { e.TLS = &TLS{Cert: "x"} }, "tls.cert and tls.key must be"},
		{"large key", func(e *Endpoint) { e.TLS = &TLS{Key: long(maxPEM + 1)} }, "tls.key has 65537 bytes"},
	} {
		e := Endpoint{ID: "w", URL: "https://a.example/hook?token=s3cr3t"}
		c.change(&e)
		err := e.Validate(policy())
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func TestEndpointValidatePolicy(t *testing.T) {
	e := Endpoint{ID: "w", URL: "http://127.0.0.1:8080/", MaxAttempts: 50}
	for _, c := range []struct {
		p    Policy
		want string
	}{
		{Policy{AllowHTTP: true}, ""},
		{Policy{AllowHTTP: true, Tiers: defaultTiers, MaxDelay: 128 * time.Second}, ""},
		{Policy{AllowHTTP: true, Tiers: append([]time.Duration{10 * time.Minute}, defaultTiers...), MaxDelay: time.Hour}, ""},
		{Policy{AllowHTTP: true, Tiers: defaultTiers, MaxDelay: time.Hour}, "max_attempts is 50, the delay before the last one 1h0m0s, more than 8 hops"},
		{Policy{AllowHTTP: true, Tiers: defaultTiers}, "more than 8 hops"},
		{Policy{Tiers: defaultTiers, MaxDelay: time.Second}, "https"},
	} {
		err := e.Validate(c.p)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v, want %q", c.p, err, c.want)
		}
	}
}

// One mistake is told once, though a later check could complain of it too.
func TestEndpointValidateSaysEachMistakeOnce(t *testing.T) {
	for _, change := range []func(*Endpoint){
		func(e *Endpoint) { e.MaxAttempts = 51 },
		func(e *Endpoint) { e.Schedule = []Duration{Duration(8 * 24 * time.Hour)} },
	} {
		e := Endpoint{ID: "w", URL: "https://a.example/"}
		change(&e)
		if err := e.Validate(policy()); err == nil || strings.Contains(err.Error(), ";") {
			t.Errorf("got %v", err)
		}
	}
}

func TestEndpointValidateSaysWhichSchemesThereAre(t *testing.T) {
	for _, url := range []string{"ftp://a.example/", "a.example"} {
		e := Endpoint{ID: "w", URL: url}
		for _, c := range []struct {
			allow    bool
			has, not string
		}{{true, "url must start with https:// or http://", "egress"}, {false, "url must start with https://", "http://"}} {
			if err := e.Validate(Policy{AllowHTTP: c.allow}); err == nil || !strings.Contains(err.Error(), c.has) || strings.Contains(err.Error(), c.not) {
				t.Errorf("%s: %v, want %q", url, err, c.has)
			}
		}
	}
}

func TestEndpointValidateSaysAllAtOnceWithoutSecrets(t *testing.T) {
	e := Endpoint{ID: "w", URL: "ftp://u:s3cr3t@a.example/s3cr3t#s3cr3t", Timeout: 1, Headers: map[string]string{"A": "s3cr3t\n"}, TLS: &TLS{Cert: "s3cr3t", Key: "s3cr3t"}}
	err := e.Validate(policy())
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{"url must", "url has a user", "fragment", "timeout", "headers.A", "tls.cert"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v: nothing of %s", err, want)
		}
	}
	if strings.Contains(err.Error(), "s3cr3t") || strings.Contains(err.Error(), "\n") {
		t.Error(err)
	}
	broken := Endpoint{ID: "w", URL: "https://a.example/%zz?s3cr3t"}
	if err := broken.Validate(policy()); err == nil || strings.Contains(err.Error(), "s3cr3t") {
		t.Error(err)
	}
}

func TestEndpointValidateTLS(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1)}, &x509.Certificate{}, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cert := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	keyPEM := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}))
	e := Endpoint{ID: "w", URL: "https://a.example/", TLS: &TLS{CA: cert, Cert: cert, Key: keyPEM}}
	if err := e.Validate(policy()); err != nil {
		t.Error(err)
	}
	e.TLS = &TLS{Key: keyPEM}
	if err := e.Validate(policy()); err == nil || strings.Contains(err.Error(), keyPEM[30:60]) {
		t.Error(err)
	}
}

// The largest endpoint that is accepted still fits its topic, encrypted.
func TestEndpointAtItsBoundsFits(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	e := Endpoint{ID: long(maxWebhookID), Tenant: long(maxTenant), URL: "https://a.example/" + long(maxURL-18), Description: long(maxText), UpdatedBy: long(maxText), Headers: map[string]string{}, TLS: &TLS{}}
	for range maxEventTypes {
		e.EventTypes = append(e.EventTypes, long(maxTypeGlob))
	}
	for range maxSecrets {
		e.Secrets = append(e.Secrets, Secret{Value: long(maxSecretValue)})
	}
	for i := range maxHeaders {
		e.Headers[long(maxHeaderName-2)+string(rune('a'+i/26))+string(rune('a'+i%26))] = long(maxHeaderValue)
	}
	if err := e.Validate(policy()); err != nil {
		t.Fatal(err)
	}
	e.TLS = &TLS{CA: long(maxPEM), Cert: long(maxPEM), Key: long(maxPEM)}
	seal := func(s string) string { return "enc:4294967295:" + long((len(s)+33)*4/3+2) }
	e.URL, e.TLS.Key = seal(e.URL), seal(e.TLS.Key)
	for name, value := range e.Headers {
		e.Headers[name] = seal(value)
	}
	for i := range e.Secrets {
		e.Secrets[i].Value = seal(e.Secrets[i].Value)
	}
	if size := len(e.Marshal()); size > MaxRecordBytes-1024 {
		t.Errorf("%d bytes, the topic takes %d", size, MaxRecordBytes)
	}
}

func TestEndpointDefaults(t *testing.T) {
	e := Endpoint{ID: "w", URL: "https://User-Host.example:8443/x"}
	EndpointDefaults(&e)
	if e.URLHost != "user-host.example:8443" || e.Timeout != Duration(30*time.Second) || e.MaxAttempts != 5 || e.Ordering != OrderFirstAttempt ||
		e.RetryOn != RetryAny || e.Jitter != JitterAdditive || *e.AutoPauseAfter != 10 || !*e.Enabled || e.MaxInFlight != 0 || e.MaxInFlightOr() != 1 {
		t.Errorf("%#v", plainEndpoint(e))
	}
	sealed := Endpoint{ID: "w", URL: "enc:1:AAAA", URLHost: "a.example"}
	EndpointDefaults(&sealed)
	if sealed.URLHost != "a.example" {
		t.Errorf("the host of a sealed URL became %q", sealed.URLHost)
	}
	for ordering, want := range map[Ordering]int{OrderStrict: 1, OrderKey: 8, OrderStrictKey: 8, OrderNone: 8} {
		if e := (Endpoint{Ordering: ordering}); e.MaxInFlightOr() != want {
			t.Errorf("%s: %d in flight", ordering, e.MaxInFlightOr())
		}
	}
	zero, off := 0, false
	if e := (Endpoint{AutoPauseAfter: &zero, Enabled: &off}); e.AutoPauseAfterOr() != 0 || e.IsEnabled() {
		t.Error("an explicit zero was taken for absent")
	}
}

func TestEndpointClone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := genEndpoint().Draw(t, "endpoint")
		before := string(e.Marshal())
		c := e.Clone()
		if !reflect.DeepEqual(c, e) {
			t.Fatal("the copy differs")
		}
		for i := range c.Secrets {
			c.Secrets[i].Value = "sealed"
		}
		for name := range c.Headers {
			c.Headers[name] = "sealed"
		}
		for i := range c.EventTypes {
			c.EventTypes[i] = "x"
		}
		if c.TLS != nil {
			c.TLS.Key = "sealed"
		}
		if c.Enabled != nil {
			*c.Enabled = !*c.Enabled
		}
		if c.AutoPauseAfter != nil {
			*c.AutoPauseAfter++
		}
		if string(e.Marshal()) != before {
			t.Fatal("changing the copy changed the original")
		}
	})
}
