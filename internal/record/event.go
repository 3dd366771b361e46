package record

import (
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Event is one event as its producer wrote it: a CloudEvent in Kafka binary
// mode, or in structured mode, where Value is the whole envelope and the
// attributes are read from it.
type Event struct {
	// Webhook is the id of the webhook that the event is for: the record's key.
	// It is empty when the key is no legal id.
	Webhook string
	// ID is the event's id, or one derived from the place of its first record
	// (IDDerived) when it came without, or with an illegal one.
	ID        string
	IDDerived bool
	// Type, CESource, ContentType, PartitionKey and Traceparent are as the producer
	// wrote them: of any length, not checked for what an HTTP header may hold.
	Type, CESource, ContentType, PartitionKey, Traceparent string
	// Time and Expiry (ce_expirytime) are zero when absent or unreadable.
	Time, Expiry Time
	// Value is the body to send. Nil is a null value and stays one.
	Value []byte
	// Headers are the event's own: every webhook-* and __dlq.* is taken out, order
	// and duplicates are kept.
	Headers []kgo.RecordHeader
	// Structured says that Value is a CloudEvents JSON envelope.
	Structured bool
	// Redrive is "<run>/<count>" when the event was sent again from a dead letter.
	Redrive string
	// Moved is the place of the first record, when that was in the wrong partition.
	Moved *Source
}

// FromEvent reads a record of the events topic. The error is an *InvalidError;
// the Delivery is returned with it, as far as it could be read.
//
// Of our headers only webhook-moved and webhook-redrive are read, and ignored
// when they are malformed: a producer can't forge attempts or due times.
func FromEvent(r *kgo.Record) (*Delivery, error) {
	d := &Delivery{Key: r.Key, Source: SourceOf(r), ProducedAt: At(r.Timestamp)}
	d.readMoved(r)
	return d, d.readEvent(r)
}

func (e *Event) readMoved(r *kgo.Record) {
	if src, err := ParseSource(lastText(r.Headers, headerMoved)); err == nil {
		e.Moved = &src
	}
	if redrive := lastText(r.Headers, headerRedrive); validRedrive(redrive) {
		e.Redrive = redrive
	}
}

// readEvent reads what the producer wrote. Source and Moved are known already:
// a derived id is made of them.
func (d *Delivery) readEvent(r *kgo.Record) error {
	d.Value = r.Value
	d.Headers = ownHeaders(r.Headers)
	d.readAttributes()
	keyErr := ValidWebhookID(string(r.Key))
	if keyErr == nil {
		d.Webhook = string(r.Key)
	}
	idErr := d.settleID()
	switch {
	case r.Key == nil:
		return &InvalidError{Problem: "the record has no key, want the webhook id"}
	case keyErr != nil:
		return &InvalidError{Problem: keyErr.Error()}
	case idErr != nil:
		return &InvalidError{Problem: idErr.Error()}
	}
	return nil
}

func (e *Event) readAttributes() {
	for _, h := range e.Headers {
		switch h.Key {
		case headerContentType:
			e.ContentType = string(h.Value)
		case headerTraceparent:
			e.Traceparent = string(h.Value)
		case ceID:
			e.ID = string(h.Value)
		case ceType:
			e.Type = string(h.Value)
		case ceSource:
			e.CESource = string(h.Value)
		case cePartitionKey:
			e.PartitionKey = string(h.Value)
		case ceTime:
			e.Time, _ = ParseTime(string(h.Value))
		case ceExpiryTime:
			e.Expiry, _ = ParseTime(string(h.Value))
		}
	}
	if isStructured(e.ContentType) {
		e.Structured = true
		e.readEnvelope()
	}
}

func isStructured(contentType string) bool {
	media, _, _ := strings.Cut(contentType, ";")
	return strings.EqualFold(strings.TrimSpace(media), cloudEventsJSON)
}

// settleID replaces an absent or illegal id by a derived one, so that every
// event has an id to be found by, and reports an illegal one.
func (d *Delivery) settleID() error {
	var err error
	if d.ID != "" {
		err = ValidEventID(d.ID)
	}
	if d.ID == "" || err != nil {
		d.ID, d.IDDerived = derivedID(d.First()), true
	}
	return err
}
