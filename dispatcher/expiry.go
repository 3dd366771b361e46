package dispatcher

import (
	"time"

	"github.com/reenvio/reenvio/internal/record"
)

// expire lets an event die whose ce_expirytime has passed; true when it did. It is
// asked before each attempt, and wherever an event comes from another place, so that
// one that waits for long is not parked or sent on once more. A request in flight
// ends as usual.
func (n *number) expire(now time.Time, it *item) bool {
	if !it.expired(now) {
		return false
	}
	n.die(now, it, record.Expired, it.expiryText())
	return true
}

func (it *item) expired(now time.Time) bool {
	return !it.Expiry.IsZero() && !now.Before(it.Expiry.Time)
}

func (it *item) expiryText() string {
	return "its ce_expirytime, " + it.Expiry.String() + ", has passed"
}
