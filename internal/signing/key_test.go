package signing_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/reenvio/reenvio/internal/signing"
)

func TestParseSecretRefuses(t *testing.T) {
	b64 := func(n int) string { return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{0xAB}, n)) }
	wrongHalf := []byte(vectorPrivate)
	wrongHalf[len(wrongHalf)-6] ^= 1

	for name, c := range map[string]struct{ secret, message string }{
		"empty":               {"", "starts with whsec_"},
		"no prefix":           {b64(32), "starts with whsec_"},
		"prefix in capitals":  {"WHSEC_" + b64(32), "starts with whsec_"},
		"nothing after":       {"whsec_", "length is 0"},
		"too short":           {"whsec_" + b64(23), "length is 23, the specification asks for 24 to 64 bytes"},
		"too long":            {"whsec_" + b64(65), "length is 65"},
		"no base64":           {"whsec_%%%%" + b64(32), "not standard base64"},
		"URL alphabet":        {"whsec_" + strings.Repeat("-_-_", 8), "not standard base64"},
		"no padding":          {"whsec_" + strings.TrimRight(b64(32), "="), "not standard base64"},
		"bits after the end":  {"whsec_" + strings.Repeat("AAAA", 8) + "AB==", "not standard base64"},
		"line break":          {"whsec_" + b64(32) + "\n", "line break"},
		"public half":         {vectorPublic, "can't sign"},
		"private, seed only":  {"whsk_" + b64(32), "length is 32"},
		"private, no base64":  {"whsk_%", "not standard base64"},
		"private, wrong half": {string(wrongHalf), "does not belong"},
	} {
		_, err := signing.ParseSecret(c.secret)
		if err == nil || !strings.Contains(err.Error(), c.message) {
			t.Errorf("%s: got %v, want %q in it", name, err, c.message)
			continue
		}
		if rest := strings.TrimLeft(c.secret, "whsecpk_"); len(rest) > 3 && strings.Contains(err.Error(), rest[:4]) {
			t.Errorf("%s: the message holds some of the secret: %v", name, err)
		}
	}
	for _, n := range []int{24, 64} {
		if _, err := signing.ParseSecret("whsec_" + b64(n)); err != nil {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

func TestKeyNeverPrintsItself(t *testing.T) {
	secret := strings.Repeat("K", 32) // %s would show it, %d its 75s, %x its 4b4b
	for _, s := range []string{"whsec_" + base64.StdEncoding.EncodeToString([]byte(secret)), vectorPrivate} {
		key, err := signing.ParseSecret(s)
		if err != nil {
			t.Fatal(err)
		}
		holder := struct{ key signing.Key }{key}
		var out bytes.Buffer
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%o", "%t"} {
			direct := fmt.Sprintf(verb, key)
			if direct != "[redacted]" {
				t.Errorf("%s prints %q", verb, direct)
			}
			fmt.Fprintf(&out, verb, holder)
			fmt.Fprintf(&out, verb, []signing.Key{key})
			fmt.Fprintf(&out, verb, &holder)
		}
		slog.New(slog.NewJSONHandler(&out, nil)).Info("", "key", key, "holder", holder)
		slog.New(slog.NewTextHandler(&out, nil)).Info("", "key", key, "holder", holder)
		if err := json.NewEncoder(&out).Encode(key); err != nil {
			t.Fatal(err)
		}
		out.WriteString(key.String() + key.GoString())
		for _, trace := range []string{"KKKK", "4b4b", "4B4B", "75 75", "S0tL", "6Xb/", "e976ff", "E976FF", "233 118"} {
			if strings.Contains(out.String(), trace) {
				t.Errorf("%q came out:\n%s", trace, out.String())
			}
		}
	}
}
