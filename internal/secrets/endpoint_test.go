package secrets_test

import (
	"encoding/base64"
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"pgregory.net/rapid"

	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/secrets"
)

func generated(t *testing.T) *secrets.Keyset {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keyset.json")
	if err := secrets.Generate(path); err != nil {
		t.Fatal(err)
	}
	k, err := secrets.Load(secrets.Config{KeysetFile: path})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func loaded(t *testing.T, handle *keyset.Handle, require *bool) *secrets.Keyset {
	t.Helper()
	k, err := secrets.Load(secrets.Config{Keyset: export(t, handle), RequireEncrypted: require})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func export(t *testing.T, handle *keyset.Handle) string {
	t.Helper()
	var json strings.Builder
	if err := insecurecleartextkeyset.Write(handle, keyset.NewJSONWriter(&json)); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString([]byte(json.String()))
}

func endpoint() record.Endpoint {
	return record.Endpoint{
		ID: "crm", URL: "https://hooks.example.com/t/topsecret", URLHost: "hooks.example.com",
		Secrets: []record.Secret{{Value: "whsec_topsecret1"}, {Value: "whsec_topsecret2"}},
		Headers: map[string]string{"Authorization": "Bearer topsecret", "X-Empty": ""},
		TLS:     &record.TLS{CA: "ca", Cert: "cert", Key: "topsecret key"},
	}
}

// sensitive are the values that the contract wants encrypted.
func sensitive(e record.Endpoint) []string {
	values := []string{e.URL, e.TLS.Key}
	for _, s := range e.Secrets {
		values = append(values, s.Value)
	}
	return append(values, e.Headers["Authorization"])
}

func TestSealAndOpen(t *testing.T) {
	k := generated(t)
	original, e := endpoint(), endpoint()
	shared := e // as a caller's copy would share headers, secrets and TLS
	if err := k.SealEndpoint(&e); err != nil {
		t.Fatal(err)
	}
	for _, v := range sensitive(e) {
		if !secrets.Sealed(v) || !strings.HasPrefix(v, "enc:") || strings.Count(v, ":") != 2 {
			t.Errorf("%q is not sealed", v)
		}
	}
	if strings.Contains(string(e.Marshal()), "topsecret") {
		t.Errorf("in clear: %s", e.Marshal())
	}
	if e.URLHost != original.URLHost || e.TLS.CA != "ca" || e.TLS.Cert != "cert" || e.Headers["X-Empty"] != "" {
		t.Errorf("sealed more than it should: %s", e.Marshal())
	}
	if !reflect.DeepEqual(shared, original) {
		t.Errorf("the caller's copy was changed")
	}

	// Sealed once more it stays byte for byte.
	again := e.Clone()
	if err := k.SealEndpoint(&again); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(again, e) {
		t.Errorf("sealed twice:\n%s\n%s", e.Marshal(), again.Marshal())
	}

	opened, err := k.OpenEndpoint(e)
	if err != nil {
		t.Fatal(err)
	}
	if secrets.Sealed(opened.URL) || !reflect.DeepEqual(opened, original) {
		t.Errorf("got %s, want %s", opened.Marshal(), original.Marshal())
	}
	if !strings.HasPrefix(e.URL, "enc:") {
		t.Error("opening changed the sealed copy")
	}
}

// Any value goes through unchanged, and no two sealings are alike.
func TestRoundTrip(t *testing.T) {
	k := generated(t)
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.String().Filter(func(s string) bool { return !strings.HasPrefix(s, "enc:") }).Draw(t, "value")
		e := record.Endpoint{ID: "w", Headers: map[string]string{"a": value, "b": value}}
		if err := k.SealEndpoint(&e); err != nil {
			t.Fatal(err)
		}
		if value != "" && e.Headers["a"] == e.Headers["b"] {
			t.Error("two fields, one ciphertext")
		}
		opened, err := k.OpenEndpoint(e)
		if err != nil {
			t.Fatal(err)
		}
		if opened.Headers["a"] != value || opened.Headers["b"] != value {
			t.Errorf("got %q", opened.Headers)
		}
	})
}

// A secret added in front must not lock those behind it out.
func TestSecretsMayMove(t *testing.T) {
	k := generated(t)
	e := endpoint()
	if err := k.SealEndpoint(&e); err != nil {
		t.Fatal(err)
	}
	e.Secrets = append([]record.Secret{{Value: "whsec_new"}}, e.Secrets...)
	if err := k.SealEndpoint(&e); err != nil {
		t.Fatal(err)
	}
	opened, err := k.OpenEndpoint(e)
	if err != nil {
		t.Fatal(err)
	}
	if got := opened.Secrets[2].Value; got != "whsec_topsecret2" {
		t.Errorf("got %q", got)
	}
}

func TestSealedValueDoesNotOpenElsewhere(t *testing.T) {
	k := generated(t)
	for name, move := range map[string]func(e *record.Endpoint){
		"other webhook":             func(e *record.Endpoint) { e.ID = "other" },
		"header value as URL":       func(e *record.Endpoint) { e.URL = e.Headers["Authorization"] },
		"secret as header value":    func(e *record.Endpoint) { e.Headers["Authorization"] = e.Secrets[0].Value },
		"URL as secret":             func(e *record.Endpoint) { e.Secrets[1].Value = e.URL },
		"header under another name": func(e *record.Endpoint) { e.Headers["X"] = e.Headers["Authorization"] },
		"URL as TLS key":            func(e *record.Endpoint) { e.TLS.Key = e.URL },
		"a bit flipped":             func(e *record.Endpoint) { e.URL = flip(e.URL) },
		"cut short":                 func(e *record.Endpoint) { e.URL = e.URL[:len(e.URL)-8] },
		"no ciphertext":             func(e *record.Endpoint) { e.URL = e.URL[:strings.LastIndex(e.URL, ":")+1] },
		"no key id":                 func(e *record.Endpoint) { e.URL = "enc::AAAA" },
		"key id too large":          func(e *record.Endpoint) { e.URL = "enc:4294967296:AAAA" },
		"unknown key id":            func(e *record.Endpoint) { e.URL = "enc:1:AAAA" },
		"prefix alone":              func(e *record.Endpoint) { e.URL = "enc:" },
		"not base64url":             func(e *record.Endpoint) { e.URL += "=" },
	} {
		e := endpoint()
		if err := k.SealEndpoint(&e); err != nil {
			t.Fatal(err)
		}
		move(&e)
		before := e.Clone()
		if _, err := k.OpenEndpoint(e); !errors.Is(err, secrets.ErrSealed) || strings.Contains(err.Error(), "topsecret") {
			t.Errorf("%s: opening: got %v", name, err)
		}
		// It must not be stored either.
		if err := k.SealEndpoint(&e); !errors.Is(err, secrets.ErrSealed) {
			t.Errorf("%s: sealing: got %v", name, err)
		}
		if !reflect.DeepEqual(e, before) {
			t.Errorf("%s: changed in spite of the error", name)
		}
	}
}

func flip(s string) string {
	i := strings.LastIndex(s, ":") + 12 // inside the nonce
	c := byte('A')
	if s[i] == c {
		c = 'B'
	}
	return s[:i] + string(c) + s[i+1:]
}
