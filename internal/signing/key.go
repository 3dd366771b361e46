package signing

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// The prefixes of serialised keys, by which a scheme is told from the key alone.
const (
	sharedPrefix  = "whsec_" // v1: both sides hold it
	privatePrefix = "whsk_"  // v1a: stays with the sender
	publicPrefix  = "whpk_"  // v1a: for the receiver
)

// Bounds of a shared secret in bytes, by the specification (192 to 512 bits).
const (
	minSecret = 24
	maxSecret = 64
)

// Key signs. The zero Key is invalid; ParseSecret makes valid ones.
//
// It can't be printed: whatever verb or logger is used, "[redacted]" comes out.
type Key struct {
	// The secret lies in a closure because fmt calls no methods on unexported
	// fields: of a Key inside somebody's struct it would print the bytes (with a
	// wrong verb even those behind a pointer), of a function the address only.
	sign   scheme
	public string // "" for v1
}

// ParseSecret reads a secret as endpoints store it: "whsec_" and the base64 of
// 24 to 64 bytes for v1, "whsk_" and the base64 of an ed25519 private key (32
// bytes seed, 32 bytes public key) for v1a. No error holds any of the secret.
func ParseSecret(s string) (Key, error) {
	switch {
	case strings.HasPrefix(s, sharedPrefix):
		secret, err := decode(s[len(sharedPrefix):])
		if err != nil {
			return Key{}, fmt.Errorf("parsing the %s secret: %w", sharedPrefix, err)
		}
		if len(secret) < minSecret || len(secret) > maxSecret {
			return Key{}, fmt.Errorf("parsing the %s secret: its length is %d, the specification asks for %d to %d bytes",
				sharedPrefix, len(secret), minSecret, maxSecret)
		}
		return Key{sign: v1(secret)}, nil
	case strings.HasPrefix(s, privatePrefix):
		raw, err := decode(s[len(privatePrefix):])
		if err != nil {
			return Key{}, fmt.Errorf("parsing the %s key: %w", privatePrefix, err)
		}
		if len(raw) != ed25519.PrivateKeySize {
			return Key{}, fmt.Errorf("parsing the %s key: its length is %d, an ed25519 private key with its public half has %d bytes",
				privatePrefix, len(raw), ed25519.PrivateKeySize)
		}
		// A public half that does not belong to the seed would sign without an
		// error, and no receiver could ever verify it.
		private := ed25519.NewKeyFromSeed(raw[:ed25519.SeedSize])
		if !private.Equal(ed25519.PrivateKey(raw)) {
			return Key{}, fmt.Errorf("parsing the %s key: its public half does not belong to its private half", privatePrefix)
		}
		return Key{
			sign:   v1a(private),
			public: publicPrefix + base64.StdEncoding.EncodeToString(raw[ed25519.SeedSize:]),
		}, nil
	case strings.HasPrefix(s, publicPrefix):
		return Key{}, fmt.Errorf("a %s key is the receiver's half and can't sign: give the %s key", publicPrefix, privatePrefix)
	}
	return Key{}, fmt.Errorf("a secret starts with %s (v1) or %s (v1a), then base64", sharedPrefix, privatePrefix)
}

// NewSecret makes a v1 secret of 32 random bytes, the output size of SHA-256:
// a longer key would add nothing.
func NewSecret() string {
	secret := make([]byte, 32)
	rand.Read(secret) // never fails: crypto/rand ends the process instead
	return sharedPrefix + base64.StdEncoding.EncodeToString(secret)
}

// PublicKey is what a receiver of v1a signatures needs ("whpk_" and base64);
// false for a v1 key, which has no public half.
func (k Key) PublicKey() (string, bool) { return k.public, k.public != "" }

// decode takes padded standard base64 only, since the published verifiers do;
// Go's decoder would skip line breaks as well.
func decode(s string) ([]byte, error) {
	if strings.ContainsAny(s, "\r\n") {
		return nil, errors.New("what follows the prefix holds a line break")
	}
	b, err := base64.StdEncoding.Strict().DecodeString(s)
	if err != nil {
		return nil, errors.New("what follows the prefix is not standard base64 with padding")
	}
	return b, nil
}
