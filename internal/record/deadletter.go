package record

import (
	"encoding/base64"
	"errors"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"
)

// DeadLetter is a record of the DLQ topic, read back.
type DeadLetter struct {
	Delivery
	// Position is where the dead letter itself lies.
	Position Source
	Reason   DeathReason
	Group    string
	// Message and Response are as written: escaped, one line.
	Message, Response            string
	URLHost, Dispatcher, Version string
	DiedAt                       Time
	// HeadersDropped counts headers of the event that did not fit.
	HeadersDropped int
	// ValueDropped is the size of the event's value, in bytes, when even that did
	// not fit; 0 when the value is the event's.
	ValueDropped int
}

// errNotDead says that a record is no dead letter of Reenvio.
var errNotDead = errors.New("reading dead letter: header " + headerDeathReason + " is missing, the record was not written by Reenvio")

// ParseDeadLetter reads a record of the DLQ topic. Dead letters hold by nature
// what could not be delivered: a bad key or id is no error here. A record
// without a reason is one, and what could be read is returned with it.
func ParseDeadLetter(r *kgo.Record) (DeadLetter, error) {
	l := DeadLetter{
		Delivery:   Delivery{Key: r.Key},
		Position:   SourceOf(r),
		Reason:     DeathReason(text(lastText(r.Headers, headerDeathReason), maxBriefText)),
		Group:      text(lastText(r.Headers, headerErrorsGroup), maxGroupText),
		Message:    text(lastText(r.Headers, headerErrorsMessage), maxErrorText),
		Response:   text(lastText(r.Headers, headerLastResponse), maxResponseText),
		URLHost:    text(lastText(r.Headers, headerURLHost), maxHostText),
		Dispatcher: text(lastText(r.Headers, headerDispatcher), maxInstanceText),
		Version:    text(lastText(r.Headers, headerVersion), maxVersionText),
	}
	l.DiedAt, _ = ParseTime(lastText(r.Headers, headerDiedAt))
	l.HeadersDropped, _ = decimal(lastText(r.Headers, headerHeadersDropped))
	l.ValueDropped, _ = decimal(lastText(r.Headers, headerValueDropped))
	l.readMoved(r)
	l.readProgress(r)
	_ = l.readEvent(r)
	if l.Reason == "" {
		return l, errNotDead
	}
	return l, nil
}

// deadLetterJSON is how programs see a dead letter: what the event was, then our
// headers under their own names in snake_case.
type deadLetterJSON struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`

	Key         *string `json:"key,omitempty"`
	KeyBase64   string  `json:"key_base64,omitempty"`
	EventID     string  `json:"event_id"`
	Value       *string `json:"value,omitempty"`
	ValueBase64 string  `json:"value_base64,omitempty"`

	// Headers are the event's own, the last one of each name. When that doesn't
	// tell all (a name twice, bytes that are no text), HeadersBase64 has every
	// value of those names.
	Headers       map[string]string   `json:"headers"`
	HeadersBase64 map[string][]string `json:"headers_base64,omitempty"`

	ErrorsTopic     string      `json:"dlq_errors_topic"`
	ErrorsPartition int32       `json:"dlq_errors_partition"`
	ErrorsOffset    int64       `json:"dlq_errors_offset"`
	ErrorsGroup     string      `json:"dlq_errors_group,omitempty"`
	ErrorsCount     int         `json:"dlq_errors_delivery_count"`
	ErrorsMessage   string      `json:"dlq_errors_message,omitempty"`
	Reason          DeathReason `json:"webhook_dlq_reason,omitempty"`
	Attempt         int         `json:"webhook_attempt"`
	FirstAttemptAt  Time        `json:"webhook_first_attempt_at,omitzero"`
	LastAttemptAt   Time        `json:"webhook_last_attempt_at,omitzero"`
	ProducedAt      Time        `json:"webhook_produced_at,omitzero"`
	Source          Source      `json:"webhook_source"`
	Moved           *Source     `json:"webhook_moved,omitempty"`
	Redrive         string      `json:"webhook_redrive,omitempty"`
	LastStatus      int         `json:"webhook_last_status,omitempty"`
	LastError       string      `json:"webhook_last_error,omitempty"`
	LastResponse    string      `json:"webhook_last_response,omitempty"`
	URLHost         string      `json:"webhook_url_host,omitempty"`
	Dispatcher      string      `json:"webhook_dispatcher,omitempty"`
	Version         string      `json:"webhook_version,omitempty"`
	DiedAt          Time        `json:"webhook_died_at,omitzero"`
	HeadersDropped  int         `json:"webhook_headers_dropped,omitempty"`
	ValueDropped    int         `json:"webhook_value_dropped,omitempty"`
}

// MarshalJSON writes the dead letter for programs: value as text where it is
// UTF-8, else value_base64; neither for a null value.
func (l DeadLetter) MarshalJSON() ([]byte, error) {
	out := deadLetterJSON{
		Topic: l.Position.Topic, Partition: l.Position.Partition, Offset: l.Position.Offset,
		EventID:     l.ID,
		ErrorsTopic: l.Source.Topic, ErrorsPartition: l.Source.Partition, ErrorsOffset: l.Source.Offset,
		ErrorsGroup: l.Group, ErrorsCount: l.Attempts, ErrorsMessage: l.Message,
		Reason: l.Reason, Attempt: l.Attempts, Source: l.Source, Moved: l.Moved, Redrive: l.Redrive,
		FirstAttemptAt: l.FirstAttemptAt, LastAttemptAt: l.LastAttemptAt, ProducedAt: l.ProducedAt,
		LastStatus: l.LastStatus, LastError: l.LastError, LastResponse: l.Response,
		URLHost: l.URLHost, Dispatcher: l.Dispatcher, Version: l.Version,
		DiedAt: l.DiedAt, HeadersDropped: l.HeadersDropped, ValueDropped: l.ValueDropped,
	}
	out.Key, out.KeyBase64 = textOrBase64(l.Key)
	out.Value, out.ValueBase64 = textOrBase64(l.Value)
	out.Headers, out.HeadersBase64 = headersForJSON(l.Headers)
	return encode(out)
}

func textOrBase64(b []byte) (asText *string, asBase64 string) {
	if b == nil {
		return nil, ""
	}
	if !utf8.Valid(b) {
		return nil, base64.StdEncoding.EncodeToString(b)
	}
	s := string(b)
	return &s, ""
}

func headersForJSON(headers []kgo.RecordHeader) (texts map[string]string, whole map[string][]string) {
	texts = make(map[string]string, len(headers))
	odd := map[string]bool{}
	for _, h := range headers {
		_, twice := texts[h.Key]
		if twice || !utf8.Valid(h.Value) {
			odd[h.Key] = true
		}
		texts[h.Key] = string(h.Value)
	}
	for _, h := range headers {
		if odd[h.Key] {
			if whole == nil {
				whole = map[string][]string{}
			}
			whole[h.Key] = append(whole[h.Key], base64.StdEncoding.EncodeToString(h.Value))
		}
	}
	return texts, whole
}
