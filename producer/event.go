package producer

import (
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/record"
)

// Event is one event for one webhook: a CloudEvent
// (https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/spec.md).
//
// Where ContentType is application/cloudevents+json, Data is a whole CloudEvent
// in JSON (structured mode). It is sent as it lies, and its own attributes
// count: of the fields only Webhook, ContentType, Data, Traceparent and Headers
// are read, and an ID, when given, must be the one in Data.
type Event struct {
	// Webhook is the id of the webhook: 1 to 256 of A-Za-z0-9._:- . Required.
	Webhook string
	// ID tells this event from others, and receivers recognise it by: 1 to 256
	// visible ASCII characters, without blanks. Default: a new ULID.
	ID string
	// Type says what happened, such as order.paid. It goes to the receiver.
	Type string
	// Source says where, as a URI reference, such as /orders. CloudEvents wants it.
	Source string
	// Time is when it happened. Default: now.
	Time time.Time
	// Expiry is when it is of no use any more (ce_expirytime): after it the event
	// ends as a dead letter instead of going out. Default: never.
	Expiry time.Time
	// OrderingKey is what has to stay in order within the webhook, for webhooks
	// whose ordering is by key. Default: none.
	OrderingKey string
	// ContentType is the body's. Default: application/json, set by the dispatcher.
	ContentType string
	// Data is the body, sent byte for byte; nil is an event without data, an empty
	// body. With key and headers at most MaxBytes.
	Data []byte
	// Traceparent goes on with a trace (W3C Trace Context). Default: none.
	Traceparent string
	// Headers are further headers of the Kafka record, such as tracestate. Those
	// with the prefixes webhook- and __dlq. are Reenvio's own and left out.
	Headers []Header
}

// Header is a header of a Kafka record.
type Header struct {
	Key   string
	Value []byte
}

// Published says where an event was written.
type Published struct {
	ID        string `json:"id"`
	Webhook   string `json:"webhook"`
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
}

func (e Event) structured() bool {
	media, _, _ := strings.Cut(e.ContentType, ";")
	return strings.EqualFold(strings.TrimSpace(media), "application/cloudevents+json")
}

// internal is the event as the record package has it, with an id and a time.
func (e Event) internal() record.Event {
	headers := make([]kgo.RecordHeader, len(e.Headers))
	for i, h := range e.Headers {
		headers[i] = kgo.RecordHeader{Key: h.Key, Value: h.Value}
	}
	in := record.Event{
		Webhook: e.Webhook, ID: e.ID, Type: e.Type, CESource: e.Source, ContentType: e.ContentType, PartitionKey: e.OrderingKey,
		Traceparent: e.Traceparent, Value: e.Data, Headers: headers, Structured: e.structured(),
	}
	if !e.Expiry.IsZero() {
		in.Expiry = record.At(e.Expiry)
	}
	if in.Structured {
		return in
	}
	now := time.Now()
	if in.ID == "" {
		in.ID = newID(now)
	}
	in.Time = record.At(now)
	if !e.Time.IsZero() {
		in.Time = record.At(e.Time)
	}
	return in
}
