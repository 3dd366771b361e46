package record

import "github.com/twmb/franz-go/pkg/kgo"

// maxAttempts bounds the attempts read from a header: far above what any policy
// allows (50), far below what arithmetic on delays must survive.
const maxAttempts = 1_000_000

// RetryRecord is the event waiting for its next attempt in a delay topic.
func (d *Delivery) RetryRecord(topic string, partition int32) *kgo.Record {
	return d.record(topic, partition, d.Headers, d.waitingHeaders())
}

// ParkedRecord is the event held back in the parked topic.
func (d *Delivery) ParkedRecord(topic string, partition int32, why ParkReason) *kgo.Record {
	ours := d.waitingHeaders()
	ours.text(headerParkReason, string(why))
	return d.record(topic, partition, d.Headers, ours)
}

// MovedRecord is the event once more on the events topic, in its right
// partition, with the place of its first record.
func (d *Delivery) MovedRecord(topic string, partition int32) *kgo.Record {
	ours := make(list, 0, 2)
	ours.text(headerMoved, d.First().String())
	ours.text(headerRedrive, d.Redrive)
	return d.record(topic, partition, d.Headers, ours)
}

// waitingHeaders are those of retry and parked records. webhook-moved and
// webhook-redrive go along: a derived id and the dedup window depend on them.
func (d *Delivery) waitingHeaders() list {
	ours := make(list, 0, 12)
	if d.Moved != nil {
		ours.text(headerMoved, d.Moved.String())
	}
	ours.text(headerRedrive, d.Redrive)
	ours.number(headerAttempt, int64(d.Attempts))
	ours.time(headerDueAt, d.DueAt)
	ours.time(headerFirstAttemptAt, d.FirstAttemptAt)
	ours.time(headerLastAttemptAt, d.LastAttemptAt)
	ours.time(headerProducedAt, d.ProducedAt)
	ours.text(headerSource, d.Source.String())
	if d.LastStatus != 0 {
		ours.number(headerLastStatus, int64(d.LastStatus))
	}
	ours.text(headerLastError, text(d.LastError, maxErrorText))
	return ours
}

// FromWaiting reads a record of a delay topic or of the parked topic. The error
// is an *InvalidError; the Delivery is returned with it, as far as it could be read.
//
// A header of ours that is missing or corrupt never stops a record: attempts
// become 0 (the chain starts again, bounded), the due time becomes zero (at
// once; the caller clamps what is too far), the times of attempts unknown,
// produced-at this record's own timestamp, the source this record's own place.
func FromWaiting(r *kgo.Record) (*Delivery, error) {
	d := &Delivery{Key: r.Key}
	d.readMoved(r)
	d.readProgress(r)
	if reason := ParkReason(lastText(r.Headers, headerParkReason)); reason.known() {
		d.Parked = reason
	}
	return d, d.readEvent(r)
}

// readProgress reads what has happened to the event so far, from the headers
// that waiting records and dead letters have in common.
func (d *Delivery) readProgress(r *kgo.Record) {
	d.Source, d.ProducedAt = SourceOf(r), At(r.Timestamp)
	d.readHeader(r, headerSource, true, func(s string) bool {
		src, err := ParseSource(s)
		if err == nil {
			d.Source = src
		}
		return err == nil
	})
	d.readHeader(r, headerAttempt, true, func(s string) bool {
		n, ok := decimal(s)
		d.Attempts = min(n, maxAttempts)
		return ok && n <= maxAttempts
	})
	d.readHeader(r, headerProducedAt, true, readTime(&d.ProducedAt))
	d.readHeader(r, headerDueAt, false, readTime(&d.DueAt))
	d.readHeader(r, headerFirstAttemptAt, false, readTime(&d.FirstAttemptAt))
	d.readHeader(r, headerLastAttemptAt, false, readTime(&d.LastAttemptAt))
	d.readHeader(r, headerLastStatus, false, func(s string) bool {
		n, ok := decimal(s)
		if ok = ok && n >= 100 && n <= 999; ok {
			d.LastStatus = n
		}
		return ok
	})
	d.LastError = text(lastText(r.Headers, headerLastError), maxErrorText)
}

// readHeader passes the value of a header of ours to read, and notes the name
// when that fails, or when it is missing and must not be.
func (d *Delivery) readHeader(r *kgo.Record, name string, required bool, read func(string) bool) {
	value, found := last(r.Headers, name)
	if found && read(string(value)) || !found && !required {
		return
	}
	d.Repaired = append(d.Repaired, name)
}

func readTime(to *Time) func(string) bool {
	return func(s string) bool {
		t, err := ParseTime(s)
		if err == nil {
			*to = t
		}
		return err == nil
	}
}
