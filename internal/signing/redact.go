package signing

import (
	"fmt"
	"log/slog"
)

const redacted = "[redacted]"

// String implements fmt.Stringer.
func (Key) String() string { return redacted }

// GoString implements fmt.GoStringer.
func (Key) GoString() string { return redacted }

// Format implements fmt.Formatter: String covers only some verbs, and %d would
// print the bytes.
func (Key) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// LogValue implements slog.LogValuer.
func (Key) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText implements encoding.TextMarshaler, and with it JSON.
func (Key) MarshalText() ([]byte, error) { return []byte(redacted), nil }
