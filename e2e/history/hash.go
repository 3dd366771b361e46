package history

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Hash stands for bytes: a run has too many of them to keep.
type Hash [sha256.Size]byte

// HashOf is the hash of a record's value. A null value has a hash of its own.
func HashOf(value []byte) Hash {
	if value == nil {
		return Hash{}
	}
	return sha256.Sum256(value)
}

// emptyBody is how a null value looks in a request.
var emptyBody = Hash(sha256.Sum256(nil))

func (h Hash) asBody() Hash {
	if h == (Hash{}) {
		return emptyBody
	}
	return h
}

func (h Hash) String() string { return hex.EncodeToString(h[:4]) }

// hashOfHeaders tells headers apart by name, value and order.
func hashOfHeaders(headers []kgo.RecordHeader) Hash {
	h := sha256.New()
	var size [8]byte
	part := func(b []byte) {
		binary.BigEndian.PutUint64(size[:], uint64(len(b)))
		h.Write(size[:])
		h.Write(b)
	}
	for _, header := range headers {
		part([]byte(header.Key))
		part(header.Value)
	}
	return Hash(h.Sum(nil))
}
