package record

import (
	"log/slog"
)

// The JSON methods keep the fields that this build does not know (Extra).

type (
	plainEndpoint Endpoint
	plainSecret   Secret
	plainTLS      TLS
)

// MarshalJSON writes the endpoint as it is, sealed or clear.
func (e Endpoint) MarshalJSON() ([]byte, error) { return encodeKeeping(plainEndpoint(e), e.Extra) }

// UnmarshalJSON reads the endpoint.
func (e *Endpoint) UnmarshalJSON(data []byte) (err error) {
	e.Extra, err = decodeKeeping(data, (*plainEndpoint)(e))
	return err
}

// MarshalJSON writes the secret as it is, sealed or clear.
func (s Secret) MarshalJSON() ([]byte, error) { return encodeKeeping(plainSecret(s), s.Extra) }

// UnmarshalJSON reads the secret.
func (s *Secret) UnmarshalJSON(data []byte) (err error) {
	s.Extra, err = decodeKeeping(data, (*plainSecret)(s))
	return err
}

// MarshalJSON writes the settings as they are, sealed or clear.
func (t TLS) MarshalJSON() ([]byte, error) { return encodeKeeping(plainTLS(t), t.Extra) }

// UnmarshalJSON reads the settings.
func (t *TLS) UnmarshalJSON(data []byte) (err error) {
	t.Extra, err = decodeKeeping(data, (*plainTLS)(t))
	return err
}

// What follows keeps secrets out of logs, whichever way a value gets there.

const redacted = "[redacted]"

// String names the endpoint, without its sensitive values.
func (e Endpoint) String() string { return "endpoint " + e.ID + " (" + e.URLHost + ")" }

// GoString is String.
func (e Endpoint) GoString() string { return e.String() }

// LogValue is String.
func (e Endpoint) LogValue() slog.Value { return slog.StringValue(e.String()) }

// String hides the secret.
func (Secret) String() string { return redacted }

// GoString is String.
func (Secret) GoString() string { return redacted }

// LogValue is String.
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// String hides the key.
func (TLS) String() string { return redacted }

// GoString is String.
func (TLS) GoString() string { return redacted }

// LogValue is String.
func (TLS) LogValue() slog.Value { return slog.StringValue(redacted) }
