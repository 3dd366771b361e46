package tracker

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

const (
	// MaxInstance and MaxBoot bound the parts of a cycle's id, in bytes.
	MaxInstance = 64
	MaxBoot     = 32

	// Apache Kafka refuses commit metadata longer than offset.metadata.max.bytes, 4,096 by default: the whole commit,
	// and with it the transaction.
	maxMetadata = 4095
	prefix      = "1." // version of the format

	maxBytes = (maxMetadata - len(prefix)) * 3 / 4 // before base64
	maxID    = 1 + MaxInstance + 1 + MaxBoot + binary.MaxVarintLen64
	setBytes = maxBytes - maxID // what the set may take whatever the id
)

// CycleID names one cycle of one dispatcher: it tells, after the answer to a commit was lost, whose commit is there.
type CycleID struct {
	Instance string // kafka.instance_id
	Boot     string // the process: another one at each start
	N        uint64 // the cycle, counted from the start of the process
}

// String gives the id as it stands in logs.
func (c CycleID) String() string { return fmt.Sprintf("%s/%s/%d", c.Instance, c.Boot, c.N) }

// Encode writes the metadata of an offset commit, less than 4,096 bytes of ASCII. It fails when the set does not fit,
// which Tracker.Fits prevents, or when a part of the id is too long.
//
//	metadata = "1." base64url( instance boot n set )
//	instance, boot = length (one byte), bytes;  n = varint;  set = nothing when empty, else see coding.go
func Encode(cycle CycleID, done Set) (string, error) {
	if len(cycle.Instance) > MaxInstance || len(cycle.Boot) > MaxBoot {
		return "", fmt.Errorf("writing commit metadata: cycle id %q is too long: at most %d bytes of instance and %d of boot",
			cycle, MaxInstance, MaxBoot)
	}
	raw := make([]byte, 0, maxBytes)
	raw = append(raw, byte(len(cycle.Instance)))
	raw = append(raw, cycle.Instance...)
	raw = append(raw, byte(len(cycle.Boot)))
	raw = append(raw, cycle.Boot...)
	raw = binary.AppendUvarint(raw, cycle.N)
	raw, ok := appendSet(raw, done, maxBytes-len(raw))
	if !ok {
		return "", errors.New("writing commit metadata: the set of complete offsets does not fit in 4,096 bytes")
	}
	return prefix + base64.RawURLEncoding.EncodeToString(raw), nil
}

// Decode reads what Encode wrote. The empty text, which other tools commit (a reset of offsets, say), is no cycle and an
// empty set. All else is an error.
func Decode(metadata string) (CycleID, Set, error) {
	if metadata == "" {
		return CycleID{}, Set{}, nil
	}
	cycle, set, err := decode(metadata)
	if err != nil {
		return CycleID{}, Set{}, fmt.Errorf("reading commit metadata: %w", err)
	}
	return cycle, set, nil
}

func decode(metadata string) (c CycleID, s Set, err error) {
	text, ok := strings.CutPrefix(metadata, prefix)
	if !ok {
		return c, s, fmt.Errorf("it does not begin with %q: not written by a dispatcher, or by a newer one", prefix)
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return c, s, err
	}
	if c.Instance, raw, err = cutString(raw, MaxInstance); err != nil {
		return c, s, fmt.Errorf("instance: %w", err)
	}
	if c.Boot, raw, err = cutString(raw, MaxBoot); err != nil {
		return c, s, fmt.Errorf("boot: %w", err)
	}
	n, size := binary.Uvarint(raw)
	if size <= 0 {
		return c, s, errors.New("cycle number: cut off or too large")
	}
	c.N = n
	if s, err = parseSet(raw[size:]); err != nil {
		return c, s, fmt.Errorf("set of complete offsets: %w", err)
	}
	return c, s, nil
}

func cutString(raw []byte, limit int) (string, []byte, error) {
	if len(raw) == 0 || int(raw[0]) > limit || len(raw)-1 < int(raw[0]) {
		return "", nil, errors.New("cut off or too long")
	}
	end := 1 + int(raw[0])
	return string(raw[1:end]), raw[end:], nil
}
