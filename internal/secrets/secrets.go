// Package secrets keeps the sensitive values of an endpoint (signing secrets,
// URL, header values, TLS client key) out of Kafka in clear: each is encrypted
// by itself with a Tink AEAD keyset (https://developers.google.com/tink/aead)
// before the endpoint is written, and opened by those who deliver.
//
// A sealed value reads "enc:<key id, decimal>:<base64url of the ciphertext>".
// Its associated data is "<webhook id>/<field path>", so that a value copied to
// another webhook, or to another field (a header value into the URL, say),
// does not open.
//
// It refuses to guess: a value that starts with "enc:" is a sealed one and
// nothing else, and a keyset that can't be read stops the process. No error and
// no log line of this package holds a value or a key.
package secrets

import "errors"

// ErrClear says that a value lies in clear where only sealed ones are accepted
// (secrets.require_encrypted). Test with errors.Is.
var ErrClear = errors.New("the value is not encrypted, and secrets.require_encrypted accepts only encrypted ones")

// ErrSealed says that a sealed value does not open: its key is not in the
// keyset, it belongs to another webhook or field, or it was damaged. Test with
// errors.Is.
var ErrSealed = errors.New("the encrypted value does not open")
