package record

import (
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
)

// DeathReason is why an event died, from a closed set: the value of
// webhook-dlq-reason and of the metric's label.
type DeathReason string

// The reasons to die.
const (
	AttemptsExhausted DeathReason = "attempts_exhausted" // the last allowed attempt failed
	PermanentStatus   DeathReason = "permanent_status"   // a status that retry_on: transient does not retry
	WebhookDeleted    DeathReason = "webhook_deleted"    // its webhook was deleted
	WebhookUnknown    DeathReason = "webhook_unknown"    // its webhook never existed
	URLBlocked        DeathReason = "url_blocked"        // the last error: the address is not allowed
	InvalidRecord     DeathReason = "invalid_record"     // no delivery can be made of the record
	TooLarge          DeathReason = "too_large"          // it can't be written to another topic
	ParkedExpired     DeathReason = "parked_expired"     // parked until retention would take it
	Expired           DeathReason = "expired"            // its ce_expirytime has passed
	Discarded         DeathReason = "discarded"          // by hand
)

// DeathReasons are all that there are, in the order above.
func DeathReasons() []DeathReason {
	return []DeathReason{
		AttemptsExhausted, PermanentStatus, WebhookDeleted, WebhookUnknown, URLBlocked,
		InvalidRecord, TooLarge, ParkedExpired, Expired, Discarded,
	}
}

// Death is what a dead letter says beside what its Delivery knows. Texts may be
// of any length and hold any bytes: they are escaped and cut when written.
type Death struct {
	Reason DeathReason
	// Group is the dispatcher's consumer group, Dispatcher its instance, Version its build.
	Group, Dispatcher, Version string
	// URLHost is the host of the endpoint, without the URL's path.
	URLHost string
	// Message is for people: what happened, in a sentence.
	Message string
	// Response is an excerpt of the endpoint's last answer; empty leaves it out.
	Response string
	At       Time
	// Limit is the most bytes the record may have, uncompressed; 0 is no limit.
	Limit int
}

// DeadLetter is the event's own key, value and headers, with the story of its
// death. It is cut to fit into death.Limit in this order: our texts are
// shortened, then the event's own headers are left out, the largest first and
// those of CloudEvents last, and counted in webhook-headers-dropped. Key, value
// and the small headers that say what the value is are never cut, so a value
// beyond the limit makes a record beyond it.
func (d *Delivery) DeadLetter(topic string, partition int32, death Death) *kgo.Record {
	r := d.record(topic, partition, d.Headers, d.deathHeaders(death))
	if death.Limit == 0 || Size(r) <= death.Limit {
		return r
	}
	ours := d.deathHeaders(death.brief())
	bare := Size(d.record(topic, partition, nil, ours)) + headerSize(kgo.RecordHeader{Key: headerHeadersDropped}) + 10
	own := fitHeaders(d.Headers, death.Limit-bare)
	return d.record(topic, partition, own, d.countDropped(ours, own))
}

// MinimalDeadLetter is for when the broker refused the dead letter all the same:
// key and value whole, the event's id and content type, and the least that tells
// where it came from and why it died.
func (d *Delivery) MinimalDeadLetter(topic string, partition int32, death Death) *kgo.Record {
	own := make([]kgo.RecordHeader, 0, 2)
	for _, h := range d.Headers {
		if (h.Key == ceID || h.Key == headerContentType) && len(h.Value) <= maxEventID {
			own = append(own, h)
		}
	}
	death = death.brief()
	death.URLHost = ""
	bare := *d
	bare.LastError = ""
	return d.record(topic, partition, own, d.countDropped(bare.deathHeaders(death), own))
}

// ValuelessDeadLetter is for when the broker refused even the minimal one: the
// same without the value, of which webhook-value-dropped tells the size. Nobody
// takes it for an event without data. A key longer than any legal one is cut.
func (d *Delivery) ValuelessDeadLetter(topic string, partition int32, death Death) *kgo.Record {
	r := d.MinimalDeadLetter(topic, partition, death)
	r.Key = r.Key[:min(len(r.Key), maxWebhookID)]
	ours := list(r.Headers)
	ours.number(headerValueDropped, int64(len(d.Value)))
	r.Value, r.Headers = nil, ours
	return r
}

// brief is the death with its long texts cut to what still names the cause.
func (death Death) brief() Death {
	death.Response = ""
	death.Message = text(death.Message, maxBriefText)
	return death
}

func (d *Delivery) deathHeaders(death Death) list {
	ours := make(list, 0, 24)
	if d.Moved != nil {
		ours.text(headerMoved, d.Moved.String())
	}
	ours.text(headerRedrive, d.Redrive)
	ours.text(headerErrorsTopic, d.Source.Topic)
	ours.number(headerErrorsPartition, int64(d.Source.Partition))
	ours.number(headerErrorsOffset, d.Source.Offset)
	ours.text(headerErrorsGroup, text(death.Group, maxGroupText))
	ours.number(headerErrorsCount, int64(d.Attempts))
	ours.text(headerErrorsMessage, text(death.Message, maxErrorText))
	ours.text(headerDeathReason, string(death.Reason))
	ours.number(headerAttempt, int64(d.Attempts))
	ours.time(headerFirstAttemptAt, d.FirstAttemptAt)
	ours.time(headerLastAttemptAt, d.LastAttemptAt)
	ours.time(headerProducedAt, d.ProducedAt)
	ours.text(headerSource, d.Source.String())
	if d.LastStatus != 0 {
		ours.number(headerLastStatus, int64(d.LastStatus))
	}
	ours.text(headerLastError, text(d.LastError, maxErrorText))
	ours.text(headerLastResponse, text(death.Response, maxResponseText))
	ours.text(headerURLHost, text(death.URLHost, maxHostText))
	ours.text(headerDispatcher, text(death.Dispatcher, maxInstanceText))
	ours.text(headerVersion, text(death.Version, maxVersionText))
	ours.time(headerDiedAt, death.At)
	return ours
}

func (d *Delivery) countDropped(ours list, kept []kgo.RecordHeader) list {
	if dropped := len(d.Headers) - len(kept); dropped > 0 {
		ours.number(headerHeadersDropped, int64(dropped))
	}
	return ours
}

// fitHeaders leaves out headers until the rest take at most room bytes: the
// largest first, those that make the value a CloudEvent last of all.
func fitHeaders(headers []kgo.RecordHeader, room int) []kgo.RecordHeader {
	total := 0
	order := make([]int, len(headers))
	for i := range headers {
		order[i] = i
		total += headerSize(headers[i])
	}
	slices.SortStableFunc(order, func(a, b int) int {
		if essential := isEssential(headers[a].Key); essential != isEssential(headers[b].Key) {
			if essential {
				return 1
			}
			return -1
		}
		return headerSize(headers[b]) - headerSize(headers[a])
	})
	dropped := make([]bool, len(headers))
	for _, i := range order {
		if total <= room {
			break
		}
		if isEssential(headers[i].Key) && len(headers[i].Value) <= maxEventID {
			continue
		}
		dropped[i] = true
		total -= headerSize(headers[i])
	}
	var kept []kgo.RecordHeader
	for i, h := range headers {
		if !dropped[i] {
			kept = append(kept, h)
		}
	}
	return kept
}

func isEssential(name string) bool {
	return name == headerContentType || strings.HasPrefix(name, cloudEventsPrefix)
}
