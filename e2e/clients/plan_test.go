package clients_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
)

// session is the life of one producer, as produce.py and Produce.java read it. A
// slice of bytes that is nil is null.
type session struct {
	Config  map[string]string `json:"config"`
	End     string            `json:"end"` // "" without a transaction, else commit or abort
	Records []event           `json:"records"`
}

// event is one record to produce.
type event struct {
	Topic     string   `json:"topic"`
	Key       []byte   `json:"key"`
	Value     []byte   `json:"value"`
	Headers   []header `json:"headers"`
	Timestamp int64    `json:"timestamp,omitempty"` // ms since 1970; 0 is the client's own
}

type header struct {
	Name  string `json:"name"`
	Value []byte `json:"value"`
}

func text(name, value string) header { return header{name, []byte(value)} }

// cloudEvent are the headers of an event in binary mode.
func cloudEvent(id string) []header {
	return []header{
		text("ce_specversion", "1.0"), text("ce_id", id), text("ce_type", "order.paid"), text("ce_source", "/orders"),
		text("ce_time", "2026-01-02T03:04:05Z"), text("content-type", "application/json"),
	}
}

// last is the value of the last header of that name, as text.
func (e event) last(name string) string {
	value := ""
	for _, h := range e.Headers {
		if h.Name == name {
			value = string(h.Value)
		}
	}
	return value
}

// batchBytes is the size of a batch that holds this record alone, as a broker
// counts it: 61 bytes for the batch; attributes, and both deltas, which are 0; and
// everything else behind its own length (KIP-98). The length of null is -1.
func (e event) batchBytes() int {
	length := func(n int) int { return len(binary.AppendVarint(nil, int64(n))) }
	bytes := func(b []byte) int {
		if b == nil {
			return length(-1)
		}
		return length(len(b)) + len(b)
	}
	n := 1 + 1 + 1 + bytes(e.Key) + bytes(e.Value) + length(len(e.Headers))
	for _, h := range e.Headers {
		n += bytes([]byte(h.Name)) + bytes(h.Value)
	}
	return 61 + length(n) + n
}

// fill gives the event a value that no compression makes smaller, so long that its
// batch has the size named.
func (e event) fill(batch int) event {
	all := noise(batch)
	e.Value = all[:batch/2]
	e.Value = all[:len(e.Value)+batch-e.batchBytes()]
	// The lengths themselves are longer now.
	e.Value = all[:len(e.Value)+batch-e.batchBytes()]
	if n := e.batchBytes(); n != batch {
		panic(fmt.Sprintf("no value makes a batch of %d bytes, only %d", batch, n))
	}
	return e
}

func noise(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b)
	return b
}
