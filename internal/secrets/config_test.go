package secrets_test

import (
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/mac"

	"github.com/reenvio/reenvio/internal/secrets"
)

func TestLoadRefuses(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	macs, err := keyset.NewHandle(mac.HMACSHA256Tag128KeyTemplate())
	if err != nil {
		t.Fatal(err)
	}
	good, err := keyset.NewHandle(aead.AES256GCMKeyTemplate())
	if err != nil {
		t.Fatal(err)
	}
	raw, err := base64.StdEncoding.DecodeString(export(t, good))
	if err != nil {
		t.Fatal(err)
	}
	const hint = "`reenvio secrets keygen -f FILE`"
	for name, c := range map[string]struct {
		cfg  secrets.Config
		want []string
	}{
		"nothing":      {secrets.Config{}, []string{"secrets.keyset_file", "secrets.keyset ", hint}},
		"both":         {secrets.Config{KeysetFile: "a", Keyset: "b"}, []string{"both secrets.keyset_file and secrets.keyset"}},
		"no such file": {secrets.Config{KeysetFile: filepath.Join(dir, "none")}, []string{"secrets.keyset_file", "none", "no such file", hint}},
		"a directory":  {secrets.Config{KeysetFile: dir}, []string{"secrets.keyset_file", dir}},
		"empty file":   {secrets.Config{KeysetFile: file("empty", "")}, []string{"empty", "not a Tink keyset", hint}},
		"cut short":    {secrets.Config{KeysetFile: file("cut", string(raw[:len(raw)/2]))}, []string{"cut", "not a Tink keyset"}},
		"other JSON":   {secrets.Config{KeysetFile: file("other", `{"key":"topsecret"}`)}, []string{"other", "not a Tink keyset"}},
		"not base64":   {secrets.Config{Keyset: "{topsecret}"}, []string{"secrets.keyset: not base64", "secrets.keyset_file"}},
		"MAC keys":     {secrets.Config{Keyset: export(t, macs)}, []string{"reading secrets.keyset:", "not one for AEAD", hint}},
	} {
		_, err := secrets.Load(c.cfg)
		if err == nil {
			t.Errorf("%s: accepted", name)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %q, want %q in it", name, err, want)
			}
		}
		if strings.Contains(err.Error(), "topsecret") {
			t.Errorf("%s: the message quotes the keyset: %v", name, err)
		}
	}
	if _, err := secrets.Load(secrets.Config{Keyset: " " + export(t, good) + "\n"}); err != nil {
		t.Errorf("blanks around the base64: %v", err)
	}
}

func TestGenerate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keyset.json")
	if err := secrets.Generate(path); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, want only the owner to read it", info.Mode())
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := secrets.Generate(path); !errors.Is(err, os.ErrExist) || !strings.Contains(err.Error(), path) {
		t.Errorf("over an existing file: got %v", err)
	}
	if after, err := os.ReadFile(path); err != nil || !slices.Equal(before, after) {
		t.Errorf("the keyset was overwritten (%v)", err)
	}
	if err := secrets.Generate(filepath.Join(filepath.Dir(path), "none", "keyset.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("into a directory that isn't there: got %v", err)
	}
}
