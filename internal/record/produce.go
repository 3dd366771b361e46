package record

import (
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"
)

// ErrTooLarge says that an event has more than MaxNewEventBytes. Test with errors.Is.
var ErrTooLarge = errors.New("the event is too large")

// NewEventRecord makes the record of an event for the events topic, for
// producers: a CloudEvent in binary mode, or the envelope in e.Value as it lies
// when e.Structured is set. Fields of e become headers; e.Headers follow, but for
// ours and for those that a field has written.
//
// It refuses what a dispatcher could not deliver (an illegal webhook or event
// id), an event without an id, and one beyond MaxNewEventBytes, or in a redrive
// MaxEventBytes.
func NewEventRecord(topic string, partition int32, e Event) (*kgo.Record, error) {
	headers := e.attributeHeaders()
	written := len(headers)
	for _, h := range ownHeaders(e.Headers) {
		if !slices.ContainsFunc(headers[:written], func(w kgo.RecordHeader) bool { return w.Key == h.Key }) {
			headers = append(headers, h)
		}
	}
	if e.Redrive != "" {
		if !validRedrive(e.Redrive) {
			return nil, fmt.Errorf("redrive %q, want run/count", cut(e.Redrive, 64))
		}
		headers.text(headerRedrive, e.Redrive)
	}
	r := &kgo.Record{Topic: topic, Partition: partition, Key: []byte(e.Webhook), Value: e.Value, Headers: headers}
	// What a dispatcher will see decides, by the same code.
	d, err := FromEvent(r)
	switch {
	case err != nil:
		return nil, err
	case d.IDDerived:
		return nil, errors.New("the event has no id")
	case e.ID != "" && d.ID != e.ID:
		return nil, fmt.Errorf("its id is %s, its envelope says %s", e.ID, d.ID)
	}
	limit := MaxNewEventBytes
	if e.Redrive != "" {
		limit = MaxEventBytes
	}
	if size := Size(r); size > limit {
		return nil, fmt.Errorf("%w: %d bytes with key and headers, the most is %d", ErrTooLarge, size, limit)
	}
	return r, nil
}

// attributeHeaders are the fields of e as headers. In structured mode the
// envelope has them, and only the content type that says so is a header.
func (e *Event) attributeHeaders() list {
	headers := make(list, 0, 10+len(e.Headers))
	if e.Structured {
		contentType := e.ContentType
		if !isStructured(contentType) {
			contentType = cloudEventsJSON
		}
		headers.text(headerContentType, contentType)
	} else {
		headers.text(ceSpecVersion, cloudEventsVersion)
		headers.text(ceID, e.ID)
		headers.text(ceType, e.Type)
		headers.text(ceSource, e.CESource)
		headers.time(ceTime, e.Time)
		headers.text(cePartitionKey, e.PartitionKey)
		headers.time(ceExpiryTime, e.Expiry)
		headers.text(headerContentType, e.ContentType)
	}
	headers.text(headerTraceparent, e.Traceparent)
	return headers
}
