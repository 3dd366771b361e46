package secrets

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/reenvio/reenvio/internal/record"
)

// notInKeyset is in the error about a value whose key a keyset lacks. The error
// is kept as text in the state of the webhook, and is known by this there.
const notInKeyset = "is not in the keyset"

// OtherKeyset says whether a text, such as the last error of a webhook's state,
// is about a value that was encrypted with a key that the keyset lacks.
func OtherKeyset(text string) bool {
	return strings.Contains(text, ErrSealed.Error()) && strings.Contains(text, notInKeyset)
}

// OtherKeysetStep is what a person does about it. The configuration of the
// webhook is well, and writing it again with yet another keyset mends nothing.
func OtherKeysetStep(who, webhook string) string {
	return fmt.Sprintf("%s has another keyset than the one that wrote the webhook: give it that one (secrets.keyset_file, secrets.keyset) and start it again, the webhook goes on by itself; "+
		"only if that keyset is lost: reenvio webhooks delete %s, and create it again", who, webhook)
}

// KeyIDs are the keys that the sealed values of e name, each once. Nothing is
// decrypted.
func KeyIDs(e record.Endpoint) (ids []uint32) {
	_, _ = each(e, func(_, _, value string) (string, error) {
		if id, _, err := parseSealed(value); err == nil && Sealed(value) && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
		return value, nil
	})
	return ids
}

// Has says whether values that name the key open with k.
func (k *Keyset) Has(id uint32) bool { return k.ids[id] }

// Lacks are the keys that the sealed values in an endpoint's record name and that
// k does not have. A record is decoded only when it seems to name one: a number
// looks at all that it has when it starts, which may be 100,000.
func (k *Keyset) Lacks(value []byte) []uint32 {
	if !k.mayLack(value) {
		return nil
	}
	e, err := record.ParseEndpoint(value)
	if err != nil {
		return nil // which is another trouble
	}
	return slices.DeleteFunc(KeyIDs(e), k.Has)
}

// mayLack looks for what begins like a sealed value, which a description may too.
func (k *Keyset) mayLack(value []byte) bool {
	begin := []byte(`"` + sealedPrefix)
	for {
		_, after, found := bytes.Cut(value, begin)
		if !found {
			return false
		}
		head, _, _ := bytes.Cut(after[:min(len(after), 11)], []byte(":")) // a key id has 10 digits at most
		if id, err := strconv.ParseUint(string(head), 10, 32); err != nil || !k.ids[uint32(id)] {
			return true
		}
		value = after
	}
}
