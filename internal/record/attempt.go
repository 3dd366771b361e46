package record

import (
	"encoding/json"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Outcome is how an attempt, or an event without one, ended.
type Outcome string

// The outcomes. Duplicate, filtered, and dead without a request have attempt 0.
const (
	Delivered Outcome = "delivered" // the endpoint took it
	Failed    Outcome = "failed"    // it will be tried again
	Dead      Outcome = "dead"      // it failed for the last time
	Duplicate Outcome = "duplicate" // an equal event was delivered before
	Filtered  Outcome = "filtered"  // its webhook's own filter said no
)

// Next is where an event goes after an attempt.
type Next string

// The ways on.
const (
	NextRetry  Next = "retry"
	NextParked Next = "parked"
	NextNone   Next = "none"
)

// Attempt is a record of the attempts topic: one HTTP request and its outcome,
// or the end of an event without a request (Attempt 0).
type Attempt struct {
	// Webhook is empty when the event's key was no legal id.
	Webhook   string  `json:"webhook,omitempty"`
	EventID   string  `json:"event_id"`
	EventType string  `json:"event_type,omitempty"`
	Attempt   int     `json:"attempt"`
	Outcome   Outcome `json:"outcome"`
	Next      Next    `json:"next"`
	// Status is the HTTP status, 0 without an answer.
	Status     int    `json:"status,omitempty"`
	Error      string `json:"error,omitempty"`
	ProducedAt Time   `json:"produced_at,omitzero"`
	StartedAt  Time   `json:"started_at,omitzero"`
	// DurationMS is left out of the JSON without a request, LatenessMS without a due time.
	DurationMS int64 `json:"duration_ms"`
	DueAt      Time  `json:"due_at,omitzero"`
	LatenessMS int64 `json:"lateness_ms"`
	// NextAttemptAt is when the retry is due.
	NextAttemptAt   Time   `json:"next_attempt_at,omitzero"`
	URLHost         string `json:"url_host,omitempty"`
	ResponseExcerpt string `json:"response_excerpt,omitempty"`
	SourceTopic     string `json:"source_topic"`
	SourcePartition int32  `json:"source_partition"`
	SourceOffset    int64  `json:"source_offset"`
	Dispatcher      string `json:"dispatcher,omitempty"`
	Version         string `json:"version,omitempty"`
}

// ParseAttempt reads the value of a record of the attempts topic.
func ParseAttempt(data []byte) (Attempt, error) {
	var a Attempt
	if err := json.Unmarshal(data, &a); err != nil {
		return Attempt{}, fmt.Errorf("reading attempt: %w", err)
	}
	return a, nil
}

// Marshal writes the value; texts are escaped and cut, so that no answer of an
// endpoint and no event type makes the record too large.
func (a Attempt) Marshal() []byte {
	a.Webhook, a.EventID = text(a.Webhook, maxWebhookID), text(a.EventID, maxEventID) // of an illegal record they may be anything
	a.EventType = text(a.EventType, maxTypeText)
	a.Error = text(a.Error, maxErrorText)
	a.URLHost = text(a.URLHost, maxHostText)
	a.ResponseExcerpt = text(a.ResponseExcerpt, maxResponseText)
	a.Dispatcher = text(a.Dispatcher, maxInstanceText)
	a.Version = text(a.Version, maxVersionText)
	type plain Attempt
	// The pointers hide the fields of the same name: absent is left out, but a
	// request of less than a millisecond took 0, not nothing.
	out := struct {
		plain
		DurationMS *int64 `json:"duration_ms,omitempty"`
		LatenessMS *int64 `json:"lateness_ms,omitempty"`
	}{plain: plain(a)}
	if a.Attempt > 0 {
		out.DurationMS = &a.DurationMS
	}
	if !a.DueAt.IsZero() {
		out.LatenessMS = &a.LatenessMS
	}
	return mustEncode(out)
}

// Record is the attempt under the key of its event; one that is too long to be a
// webhook's is cut.
func (a Attempt) Record(topic string, partition int32, key []byte) *kgo.Record {
	return &kgo.Record{Topic: topic, Partition: partition, Key: key[:min(len(key), maxWebhookID)], Value: a.Marshal()}
}
