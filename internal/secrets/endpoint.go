package secrets

import (
	"fmt"
	"maps"
	"slices"

	"github.com/reenvio/reenvio/internal/record"
)

// SealEndpoint encrypts the sensitive values of e in place; what is encrypted
// already is kept, if it opens. After an error e is as it was. What e shares with
// other copies (headers, secrets) is not touched.
func (k *Keyset) SealEndpoint(e *record.Endpoint) error {
	sealed, err := each(*e, k.seal)
	if err != nil {
		return fmt.Errorf("encrypting %w", err)
	}
	*e = sealed
	return nil
}

// OpenEndpoint returns a copy of e with its sensitive values in clear. The error
// names the field and is ErrClear or ErrSealed.
func (k *Keyset) OpenEndpoint(e record.Endpoint) (record.Endpoint, error) {
	opened, err := each(e, k.open)
	if err != nil {
		return record.Endpoint{}, fmt.Errorf("decrypting %w", err)
	}
	return opened, nil
}

// each passes every sensitive value of e through fn, with its field path, and
// returns the copy that results. Absent values are left alone.
//
// The path of a secret has no index: rotation puts a new one in front, and those
// behind it must still open. Within one webhook it makes no difference which of
// its secrets is which.
func each(e record.Endpoint, fn func(webhook, field, value string) (string, error)) (record.Endpoint, error) {
	e = e.Clone()
	var failed error
	pass := func(field string, value *string) {
		if *value == "" || failed != nil {
			return
		}
		v, err := fn(e.ID, field, *value)
		if err != nil {
			failed = fmt.Errorf("%s of webhook %s: %w", field, e.ID, err)
			return
		}
		*value = v
	}
	pass("url", &e.URL)
	for i := range e.Secrets {
		pass("secrets.value", &e.Secrets[i].Value)
	}
	for _, name := range slices.Sorted(maps.Keys(e.Headers)) {
		value := e.Headers[name]
		pass("headers."+name, &value)
		e.Headers[name] = value
	}
	if e.TLS != nil {
		pass("tls.key", &e.TLS.Key)
	}
	return e, failed
}
