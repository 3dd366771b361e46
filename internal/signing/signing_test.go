package signing_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"pgregory.net/rapid"

	"github.com/reenvio/reenvio/internal/signing"
)

// The vectors that the specification's own libraries are tested with; the
// second one is of the reference server for v1a.
const (
	vectorShared  = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	vectorPrivate = "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg=="
	vectorPublic  = "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4="
	vectorID      = "msg_p5jXN8AQM9LWM0D4loKWxJek"
	vectorBody    = `{"test": 2432232314}`
	vectorV1      = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	vectorV1a     = "v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg=="
)

var vectorTime = time.Unix(1614265330, 999_999_999) // parts of a second don't count

func mustParse(t interface{ Fatal(...any) }, secrets ...string) []signing.Key {
	keys := make([]signing.Key, len(secrets))
	for i, s := range secrets {
		k, err := signing.ParseSecret(s)
		if err != nil {
			t.Fatal(err)
		}
		keys[i] = k
	}
	return keys
}

func TestPublishedVectors(t *testing.T) {
	for name, c := range map[string]struct {
		secrets []string
		want    string
	}{
		"v1":      {[]string{vectorShared}, vectorV1},
		"v1a":     {[]string{vectorPrivate}, vectorV1a},
		"both":    {[]string{vectorPrivate, vectorShared}, vectorV1a + " " + vectorV1},
		"swapped": {[]string{vectorShared, vectorPrivate}, vectorV1 + " " + vectorV1a},
		"no key":  {nil, ""},
	} {
		if got := signing.Sign(mustParse(t, c.secrets...), vectorID, vectorTime, []byte(vectorBody)); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func TestPublicKey(t *testing.T) {
	if got, ok := mustParse(t, vectorPrivate)[0].PublicKey(); !ok || got != vectorPublic {
		t.Errorf("got %q %v, want %q", got, ok, vectorPublic)
	}
	if got, ok := mustParse(t, vectorShared)[0].PublicKey(); ok || got != "" {
		t.Errorf("a shared secret has a public half: %q", got)
	}
}

// Whatever is signed, the official verifier accepts it with each of the v1
// secrets, and refuses it when a byte has changed.
func TestOfficialVerifierAccepts(t *testing.T) {
	id := rapid.StringMatching(`[!-~]{1,64}`)
	rapid.Check(t, func(t *rapid.T) {
		secrets := make([]string, rapid.IntRange(1, 3).Draw(t, "secrets"))
		for i := range secrets {
			secrets[i] = "whsec_" + base64.StdEncoding.EncodeToString(
				rapid.SliceOfN(rapid.Byte(), 24, 64).Draw(t, "secret"))
		}
		body := rapid.SliceOf(rapid.Byte()).Draw(t, "body")
		at := time.Unix(rapid.Int64Range(0, 1<<40).Draw(t, "at"), 0)
		h := http.Header{}
		h.Set("webhook-id", id.Draw(t, "id"))
		h.Set("webhook-timestamp", strconv.FormatInt(at.Unix(), 10))
		h.Set("webhook-signature", signing.Sign(mustParse(t, secrets...), h.Get("webhook-id"), at, body))

		for _, s := range secrets {
			verifier, err := standardwebhooks.NewWebhook(s)
			if err != nil {
				t.Fatal(err)
			}
			if err := verifier.VerifyIgnoringTimestamp(body, h); err != nil {
				t.Errorf("refused: %v", err)
			}
			if verifier.VerifyIgnoringTimestamp(append(body, 0), h) == nil {
				t.Error("accepted with one byte more")
			}
		}
	})
}

// v1a has no verifier in Go: the standard library's ed25519 is the judge.
func TestV1aVerifies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		private := ed25519.NewKeyFromSeed(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "seed"))
		body := rapid.SliceOf(rapid.Byte()).Draw(t, "body")
		key := mustParse(t, "whsk_"+base64.StdEncoding.EncodeToString(private))
		got := signing.Sign(key, "id", time.Unix(12, 0), body)
		signature, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(got, "v1a,"))
		if err != nil {
			t.Fatalf("%q: %v", got, err)
		}
		if !ed25519.Verify(private.Public().(ed25519.PublicKey), append([]byte("id.12."), body...), signature) {
			t.Errorf("%q does not verify", got)
		}
	})
}

func TestNewSecret(t *testing.T) {
	a, b := signing.NewSecret(), signing.NewSecret()
	mustParse(t, a, b)
	if a == b {
		t.Errorf("twice the same secret")
	}
}
