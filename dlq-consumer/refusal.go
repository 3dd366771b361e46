package dlqconsumer

import (
	"fmt"
	"time"

	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/topology"
)

// Refusal is why an event is not sent again, from a closed set.
type Refusal string

// The refusals. Those of the second group are overridden by force.
const (
	Foreign         Refusal = "foreign"          // the record is no dead letter of Reenvio
	Invalid         Refusal = "invalid_record"   // no delivery can be made of it, again
	ValueDropped    Refusal = "value_dropped"    // the letter does not hold the event's value
	WrongPartition  Refusal = "wrong_partition"  // it lies in a partition that is not its webhook's
	WebhookUnknown  Refusal = "webhook_unknown"  // there is no such webhook
	WebhookDeleted  Refusal = "webhook_deleted"  // its webhook was deleted
	Expired         Refusal = "expired"          // its ce_expirytime has passed
	Superseded      Refusal = "superseded"       // the event has a later letter, which stands for it
	AlreadyRedriven Refusal = "already_redriven" // it was sent again and is still on its way
	Unwritable      Refusal = "too_large"        // Kafka refused the record, at the time of writing

	HeadersDropped Refusal = "headers_dropped"    // the letter does not hold all of the event's headers
	DeliveredSince Refusal = "delivered_since"    // it was delivered after it died
	TooOften       Refusal = "redriven_too_often" // it was sent again MaxRedrives times
)

// MaxRedrives is how often an event is sent again without force.
const MaxRedrives = 5

// Advice says in a few words why, and what mends it.
func (r Refusal) Advice() string {
	switch r {
	case Foreign:
		return "not written by Reenvio: look at it with `reenvio dlq show`"
	case Invalid:
		return "no delivery can be made of the record: send the event anew, with a legal key and id"
	case ValueDropped:
		return "the letter could not hold the event's value: take it from where the message says that it lies"
	case WrongPartition:
		return "in a partition that is not its webhook's, so nobody can tell what became of it: send the event anew"
	case WebhookUnknown:
		return "create the webhook first"
	case WebhookDeleted:
		return "create the webhook again first"
	case Expired:
		return "its ce_expirytime has passed: it would die at once"
	case Superseded:
		return "there is a later letter of the same event, which stands for it"
	case AlreadyRedriven:
		return "sent again before, and neither delivered nor dead since: `reenvio events get` tells where it is"
	case Unwritable:
		return "larger than the events topic takes"
	case HeadersDropped:
		return "the letter could not hold all of the event's headers; --force sends it without them"
	case DeliveredSince:
		return "delivered after it died; --force sends it all the same"
	case TooOften:
		return fmt.Sprintf("redriven %d times already: mend the cause; --force sends it all the same", MaxRedrives)
	}
	return ""
}

// refusalOf is what the letter alone tells.
func refusalOf(l *record.DeadLetter, topo *topology.Topology, force bool, now time.Time) Refusal {
	switch _, err := l.RedriveRecord(topo.Events(), l.Position.Partition, "run"); {
	case l.Reason == "":
		return Foreign
	case err != nil:
		return Invalid
	case l.ValueDropped > 0:
		return ValueDropped
	case l.Position.Partition != topo.PartitionFor(l.Webhook):
		return WrongPartition
	case !l.Expiry.IsZero() && !l.Expiry.After(now):
		return Expired
	case l.HeadersDropped > 0 && !force:
		return HeadersDropped
	case l.Redrives() >= MaxRedrives && !force:
		return TooOften
	}
	return ""
}
