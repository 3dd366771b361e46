package secrets

import (
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/tink"
)

const sealedPrefix = "enc:"

// Keyset seals with its primary key and opens with any of its enabled keys, so
// that a key is rotated by adding it everywhere, making it primary, and
// dropping the old one when no value names it any more. It is safe for
// concurrent use.
type Keyset struct {
	aead    tink.AEAD
	primary uint32
	ids     map[uint32]bool // enabled
	require bool
}

// Sealed says whether a value of an endpoint is encrypted.
func Sealed(value string) bool { return strings.HasPrefix(value, sealedPrefix) }

func newKeyset(handle *keyset.Handle, require bool) (*Keyset, error) {
	primitive, err := aead.New(handle)
	if err != nil {
		return nil, fmt.Errorf("the keyset is not one for AEAD: %w", err)
	}
	k := &Keyset{aead: primitive, ids: make(map[uint32]bool), require: require}
	for i := range handle.Len() {
		entry, err := handle.Entry(i)
		if err != nil {
			return nil, err
		}
		if entry.KeyStatus() == keyset.Enabled {
			k.ids[entry.KeyID()] = true
		}
		if entry.IsPrimary() {
			k.primary = entry.KeyID()
		}
	}
	return k, nil
}

// seal encrypts one value. A value that is sealed already is kept as it is, but
// only if it opens here: else a mistake made now (a value copied from another
// webhook) would show as a paused webhook later.
func (k *Keyset) seal(webhook, field, value string) (string, error) {
	if Sealed(value) {
		_, err := k.open(webhook, field, value)
		return value, err
	}
	ciphertext, err := k.aead.Encrypt([]byte(value), associated(webhook, field))
	if err != nil {
		return "", err
	}
	return sealedPrefix + strconv.FormatUint(uint64(k.primary), 10) + ":" + base64.RawURLEncoding.EncodeToString(ciphertext), nil
}

// open is the inverse of seal; a value in clear comes back as it is unless that
// is forbidden.
func (k *Keyset) open(webhook, field, value string) (string, error) {
	if !Sealed(value) {
		if k.require {
			return "", ErrClear
		}
		return value, nil
	}
	id, ciphertext, err := parseSealed(value)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrSealed, err)
	}
	if !k.ids[id] {
		return "", fmt.Errorf("%w: its key %d "+notInKeyset+" (secrets.keyset_file, secrets.keyset)", ErrSealed, id)
	}
	clear, err := k.aead.Decrypt(ciphertext, associated(webhook, field))
	if err != nil {
		return "", fmt.Errorf("%w: it was encrypted for another webhook or field, or damaged", ErrSealed)
	}
	return string(clear), nil
}

func parseSealed(value string) (id uint32, ciphertext []byte, err error) {
	head, body, ok := strings.Cut(strings.TrimPrefix(value, sealedPrefix), ":")
	n, idErr := strconv.ParseUint(head, 10, 32)
	ciphertext, bodyErr := base64.RawURLEncoding.Strict().DecodeString(body)
	if !ok || idErr != nil || bodyErr != nil {
		return 0, nil, errors.New("what starts with " + sealedPrefix + " has the form " + sealedPrefix + "<key id>:<base64url>")
	}
	return uint32(n), ciphertext, nil
}

func associated(webhook, field string) []byte { return []byte(webhook + "/" + field) }

// Format implements fmt.Formatter: key material is never printed.
func (k *Keyset) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "keyset with primary key %d", k.primary)
}

// LogValue implements slog.LogValuer: key material is never logged.
func (k *Keyset) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(k)) }
