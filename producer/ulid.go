package producer

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"time"
)

var crockford = base32.NewEncoding("0123456789ABCDEFGHJKMNPQRSTVWXYZ").WithPadding(base32.NoPadding)

// newID makes a ULID (https://github.com/ulid/spec): 48 bits of milliseconds
// since 1970 and 80 random bits, as 26 characters that sort by time.
func newID(at time.Time) string {
	// The specification puts the two bits that 26 characters have over 128 in
	// front, base32 of bytes puts them behind: four bytes in front and six
	// characters dropped shift them (32 + 128 bits are 32 characters).
	var b [20]byte
	binary.BigEndian.PutUint64(b[2:], uint64(at.UnixMilli()))
	rand.Read(b[10:])
	return crockford.EncodeToString(b[:])[6:]
}
