package secrets_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/keyset"

	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/secrets"
)

func TestClearValues(t *testing.T) {
	handle, err := keyset.NewHandle(aead.AES256GCMKeyTemplate())
	if err != nil {
		t.Fatal(err)
	}
	yes, no := true, false
	for name, require := range map[string]*bool{"by default": nil, "when asked": &yes} {
		_, err := loaded(t, handle, require).OpenEndpoint(endpoint())
		if !errors.Is(err, secrets.ErrClear) || !strings.Contains(err.Error(), "url of webhook crm") || strings.Contains(err.Error(), "topsecret") {
			t.Errorf("refused %s: got %v", name, err)
		}
	}
	e, err := loaded(t, handle, &no).OpenEndpoint(endpoint())
	if err != nil || !reflect.DeepEqual(e, endpoint()) {
		t.Errorf("accepted when allowed: got %v, %v", e, err)
	}
	// One clear value among sealed ones is as bad.
	k := loaded(t, handle, nil)
	for name, clear := range map[string]func(e *record.Endpoint){
		"secrets.value":         func(e *record.Endpoint) { e.Secrets[1].Value = "whsec_x" },
		"headers.Authorization": func(e *record.Endpoint) { e.Headers["Authorization"] = "x" },
		"tls.key":               func(e *record.Endpoint) { e.TLS.Key = "x" },
	} {
		e := endpoint()
		if err := k.SealEndpoint(&e); err != nil {
			t.Fatal(err)
		}
		clear(&e)
		if _, err := k.OpenEndpoint(e); !errors.Is(err, secrets.ErrClear) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestRotation(t *testing.T) {
	manager := keyset.NewManager()
	add := func() uint32 {
		id, err := manager.Add(aead.AES256GCMKeyTemplate())
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	current := func() *secrets.Keyset {
		handle, err := manager.Handle()
		must(err)
		return loaded(t, handle, nil)
	}
	first := add()
	must(manager.SetPrimary(first))
	old := current()
	e := endpoint()
	must(old.SealEndpoint(&e))
	if !strings.HasPrefix(e.URL, fmt.Sprintf("enc:%d:", first)) {
		t.Errorf("%q does not name key %d", e.URL, first)
	}

	second := add()
	must(manager.SetPrimary(second))
	both := current()
	if _, err := both.OpenEndpoint(e); err != nil {
		t.Errorf("the old key is still in the keyset: %v", err)
	}
	fresh := endpoint()
	must(both.SealEndpoint(&fresh))
	if !strings.HasPrefix(fresh.URL, fmt.Sprintf("enc:%d:", second)) {
		t.Errorf("%q does not name the primary key %d", fresh.URL, second)
	}
	if _, err := old.OpenEndpoint(fresh); !errors.Is(err, secrets.ErrSealed) || !strings.Contains(err.Error(), fmt.Sprint(second)) {
		t.Errorf("a keyset without the key: got %v", err)
	}

	must(manager.Disable(first))
	if _, err := current().OpenEndpoint(e); !errors.Is(err, secrets.ErrSealed) || !strings.Contains(err.Error(), fmt.Sprint(first)) {
		t.Errorf("the old key is disabled: got %v", err)
	}
}

func TestKeysetNeverPrintsItself(t *testing.T) {
	handle, err := keyset.NewHandle(aead.AES256GCMKeyTemplate())
	if err != nil {
		t.Fatal(err)
	}
	k := loaded(t, handle, nil)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%d"} {
		if got := fmt.Sprintf(verb, k); !strings.HasPrefix(got, "keyset with primary key ") {
			t.Errorf("%s prints %q", verb, got)
		}
	}
	if got := k.LogValue().String(); !strings.HasPrefix(got, "keyset with primary key ") {
		t.Errorf("logged as %q", got)
	}
}
