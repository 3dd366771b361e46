package record

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"
)

// InvalidError says why a record can never be delivered: it goes to the dead
// letters with the reason invalid_record. The Delivery returned beside it still
// carries all that the dead letter needs.
type InvalidError struct {
	// Problem names what is wrong, without the offending bytes.
	Problem string
}

func (e *InvalidError) Error() string { return "invalid record: " + e.Problem }

const (
	maxWebhookID = 256
	maxEventID   = 256
)

// ValidWebhookID says whether id can be the key of a record: 1 to 256 bytes of
// A-Z a-z 0-9 . _ : -
func ValidWebhookID(id string) error {
	switch {
	case id == "":
		return fmt.Errorf("webhook id is empty, want 1 to %d characters of A-Za-z0-9._:-", maxWebhookID)
	case len(id) > maxWebhookID:
		return fmt.Errorf("webhook id has %d bytes, the most is %d", len(id), maxWebhookID)
	}
	for i := range len(id) {
		if !alphanumeric(id[i]) && !strings.ContainsRune("._:-", rune(id[i])) {
			return fmt.Errorf("webhook id has a byte %#02x at position %d, want only A-Za-z0-9._:-", id[i], i)
		}
	}
	return nil
}

// ValidEventID says whether id can be an event's id: 1 to 256 bytes from 0x21 to
// 0x7E.
func ValidEventID(id string) error {
	switch {
	case id == "":
		return fmt.Errorf("event id is empty, want 1 to %d visible ASCII characters", maxEventID)
	case len(id) > maxEventID:
		return fmt.Errorf("event id has %d bytes, the most is %d", len(id), maxEventID)
	}
	for i := range len(id) {
		if id[i] < 0x21 || id[i] > 0x7e {
			return fmt.Errorf("event id has a byte %#02x at position %d, want only visible ASCII", id[i], i)
		}
	}
	return nil
}

func alphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
}

var idEncoding = base32.StdEncoding.WithPadding(base32.NoPadding)

// derivedID names an event that came without an id, by the place of its first
// record: the same at every attempt, through every topic. 128 bits of SHA-256
// are 26 characters.
func derivedID(first Source) string {
	sum := sha256.Sum256([]byte(first.String()))
	return "evt_" + strings.ToLower(idEncoding.EncodeToString(sum[:16]))
}

// maxRedrive bounds the header webhook-redrive, run and count together.
const maxRedrive = 256

// validRedrive says whether s is "<run>/<count>": a run of visible ASCII without
// a slash, a count of 1 to 9 digits.
func validRedrive(s string) bool {
	run, count, ok := strings.Cut(s, "/")
	if !ok || run == "" || len(s) > maxRedrive || len(count) > 9 {
		return false
	}
	_, digits := decimal(count)
	return digits && ValidEventID(run) == nil
}

// redriveRun is the run of "<run>/<count>".
func redriveRun(redrive string) string {
	run, _, _ := strings.Cut(redrive, "/")
	return run
}

// decimal reads an unsigned decimal number of any length; what exceeds 10^9 is
// 10^9 (a number in a header is never worth an overflow).
func decimal(s string) (n int, ok bool) {
	const most = 1_000_000_000
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = min(n*10+int(s[i]-'0'), most)
	}
	return n, s != ""
}
