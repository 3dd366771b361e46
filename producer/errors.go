package producer

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/record"
)

// Reasons not to send an event, to be tested with errors.Is.
var (
	// ErrInvalid says that an event could never be delivered, and was not sent:
	// publishing it again is of no use.
	ErrInvalid = errors.New("the event is invalid")
	// ErrTooLarge says that an event has more than MaxBytes. It is an ErrInvalid, too.
	ErrTooLarge = record.ErrTooLarge
	// ErrClosed says that the Producer was closed before.
	ErrClosed = errors.New("the producer is closed")
)

// PublishError is why an event is not known to be in Kafka. All errors of
// publishing are of this type, for errors.As; what is below it, such as
// ErrInvalid, context.DeadlineExceeded or an error of the broker's, is for
// errors.Is.
type PublishError struct {
	// ID and Webhook are the event's. An ID that Publish has made is here, too.
	ID, Webhook string
	// MaybeWritten says that the event may be in Kafka all the same: it was sent,
	// and the answer did not come. Publish it again with the same ID: by it the
	// receiver recognises a second copy. False: it is not there, and never will be.
	MaybeWritten bool
	// Err is the reason.
	Err error
}

func (e *PublishError) Error() string {
	written := ": it was not written"
	switch {
	case e.MaybeWritten:
		written = ": it may have been written all the same, publish it again with the same id"
	case errors.Is(e.Err, ErrInvalid): // it says so
		written = ""
	}
	return fmt.Sprintf("publishing event %q to webhook %q: %v%s", e.ID, e.Webhook, e.Err, written)
}

// Unwrap is the reason.
func (e *PublishError) Unwrap() error { return e.Err }

// Result is what became of one event of several: Err is nil, or a *PublishError.
type Result struct {
	Published
	Err error
}

// Results are in the order of the events.
type Results []Result

// Err is nil when all events were published, else the first error, and how many
// there are.
func (rs Results) Err() error {
	var first error
	failed := 0
	for _, r := range rs {
		if r.Err == nil {
			continue
		}
		if failed++; first == nil {
			first = r.Err
		}
	}
	if failed > 1 {
		return fmt.Errorf("%d of %d events failed, the first: %w", failed, len(rs), first)
	}
	return first
}

// maybeWritten says whether a record that kgo gave up may be in Kafka. kgo gives one up
// only where it knows that no broker has it or will (it is idempotent, so a gap
// would be noticed), with these exceptions.
func maybeWritten(err error) bool {
	for _, unsure := range []error{
		kgo.ErrClientClosed, // whatever was on its way
		kerr.OutOfOrderSequenceNumber, kerr.UnknownProducerID, kerr.InvalidProducerIDMapping, kerr.InvalidProducerEpoch,
		kerr.UnknownServerError,
	} {
		if errors.Is(err, unsure) {
			return true
		}
	}
	return false
}

// explain adds what mends it.
func (p *Producer) explain(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		return fmt.Errorf("topic %s: %w: `reenvio topics apply` creates it", p.topic, err)
	case errors.Is(err, kerr.MessageTooLarge):
		return fmt.Errorf("topic %s: %w: `reenvio topics plan` shows whether its max.message.bytes is too low", p.topic, err)
	case ctx.Err() == nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)):
		// kgo keeps the order by giving up all that lies behind the one whose time is over.
		return fmt.Errorf("topic %s: given up with an event before it%s", p.topic, p.reach.trouble())
	case ctx.Err() == nil:
		return fmt.Errorf("topic %s: %w", p.topic, err)
	case errors.Is(err, ctx.Err()):
		return fmt.Errorf("topic %s: %w%s", p.topic, err, p.reach.trouble())
	}
	return fmt.Errorf("topic %s: %w: %w", p.topic, ctx.Err(), err)
}
