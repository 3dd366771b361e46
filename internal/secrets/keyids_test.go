package secrets_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/reenvio/reenvio/internal/secrets"
)

func TestLacks(t *testing.T) {
	ours, theirs := generated(t), generated(t)
	e := endpoint()
	if err := theirs.SealEndpoint(&e); err != nil {
		t.Fatal(err)
	}
	ids := secrets.KeyIDs(e)
	if len(ids) != 1 || !strings.HasPrefix(e.URL, fmt.Sprintf("enc:%d:", ids[0])) || !theirs.Has(ids[0]) || ours.Has(ids[0]) {
		t.Fatalf("the keys of %s are %v", e.Marshal(), ids)
	}
	if got := theirs.Lacks(e.Marshal()); len(got) > 0 {
		t.Errorf("they lack %v", got)
	}
	if got := ours.Lacks(e.Marshal()); len(got) != 1 || got[0] != ids[0] {
		t.Errorf("we lack %v, want %v", got, ids)
	}
	// One of many is enough.
	e.URL = endpoint().URL
	e.Secrets = nil
	e.TLS = nil
	if got := ours.Lacks(e.Marshal()); len(got) != 1 {
		t.Errorf("we lack %v", got)
	}
	// What only looks like a sealed value, what lies in clear, and what can't be read.
	e = endpoint()
	if err := ours.SealEndpoint(&e); err != nil {
		t.Fatal(err)
	}
	e.Description = "enc:1:x"
	inClear := endpoint()
	for _, value := range [][]byte{e.Marshal(), inClear.Marshal(), []byte(`{"url":"enc:`), []byte(`"enc:7:`), nil} {
		if got := ours.Lacks(value); len(got) > 0 {
			t.Errorf("%s: we lack %v", value, got)
		}
	}
}

// The error is told from the others by its text, which is what a state keeps of it.
func TestOtherKeyset(t *testing.T) {
	ours, theirs := generated(t), generated(t)
	e := endpoint()
	if err := theirs.SealEndpoint(&e); err != nil {
		t.Fatal(err)
	}
	if _, err := ours.OpenEndpoint(e); err == nil || !secrets.OtherKeyset("config: "+err.Error()) {
		t.Errorf("got %v", err)
	}
	e.ID = "copied"
	if _, err := theirs.OpenEndpoint(e); err == nil || secrets.OtherKeyset(err.Error()) {
		t.Errorf("got %v", err)
	}
}
