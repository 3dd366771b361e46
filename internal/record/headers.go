package record

import (
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Headers of ours. The names under __dlq.errors are those of KIP-1191 (dead
// letter queues of share groups), so that tools for one read the other.
const (
	headerMoved   = "webhook-moved"
	headerRedrive = "webhook-redrive"

	headerAttempt        = "webhook-attempt"
	headerDueAt          = "webhook-due-at"
	headerFirstAttemptAt = "webhook-first-attempt-at"
	headerLastAttemptAt  = "webhook-last-attempt-at"
	headerProducedAt     = "webhook-produced-at"
	headerSource         = "webhook-source"
	headerLastStatus     = "webhook-last-status"
	headerLastError      = "webhook-last-error"
	headerParkReason     = "webhook-reason"

	headerDeathReason    = "webhook-dlq-reason"
	headerLastResponse   = "webhook-last-response"
	headerURLHost        = "webhook-url-host"
	headerDispatcher     = "webhook-dispatcher"
	headerVersion        = "webhook-version"
	headerDiedAt         = "webhook-died-at"
	headerHeadersDropped = "webhook-headers-dropped"
	headerValueDropped   = "webhook-value-dropped"

	headerErrorsTopic     = "__dlq.errors.topic"
	headerErrorsPartition = "__dlq.errors.partition"
	headerErrorsOffset    = "__dlq.errors.offset"
	headerErrorsGroup     = "__dlq.errors.group"
	headerErrorsCount     = "__dlq.errors.delivery.count"
	headerErrorsMessage   = "__dlq.errors.message"
)

// Attributes of a CloudEvent in Kafka binary mode (CloudEvents Kafka protocol
// binding 1.0.2, section 3.2).
const (
	headerContentType  = "content-type"
	headerTraceparent  = "traceparent"
	ceID               = "ce_id"
	ceType             = "ce_type"
	ceSource           = "ce_source"
	ceSpecVersion      = "ce_specversion"
	ceTime             = "ce_time"
	cePartitionKey     = "ce_partitionkey"
	ceExpiryTime       = "ce_expirytime"
	cloudEventsPrefix  = "ce_"
	cloudEventsJSON    = "application/cloudevents+json"
	cloudEventsVersion = "1.0"
)

// isOurs says whether a header belongs to Reenvio and not to the event.
func isOurs(name string) bool {
	return strings.HasPrefix(name, "webhook-") || strings.HasPrefix(name, "__dlq.")
}

// ownHeaders are the event's: all but ours, in order, duplicates kept.
func ownHeaders(headers []kgo.RecordHeader) []kgo.RecordHeader {
	ours := 0
	for i := range headers {
		if isOurs(headers[i].Key) {
			ours++
		}
	}
	if ours == 0 {
		return headers
	}
	own := make([]kgo.RecordHeader, 0, len(headers)-ours)
	for _, h := range headers {
		if !isOurs(h.Key) {
			own = append(own, h)
		}
	}
	return own
}

// last is the value of the last header of that name, as Kafka's own clients
// answer for a repeated one.
func last(headers []kgo.RecordHeader, name string) (value []byte, found bool) {
	for _, h := range slices.Backward(headers) {
		if h.Key == name {
			return h.Value, true
		}
	}
	return nil, false
}

func lastText(headers []kgo.RecordHeader, name string) string {
	value, _ := last(headers, name)
	return string(value)
}

// list builds headers; a value that is absent leaves none.
type list []kgo.RecordHeader

func (l *list) text(name, value string) {
	if value != "" {
		*l = append(*l, kgo.RecordHeader{Key: name, Value: []byte(value)})
	}
}

func (l *list) number(name string, n int64) {
	l.text(name, strconv.FormatInt(n, 10))
}

func (l *list) time(name string, t Time) {
	l.text(name, t.String())
}
