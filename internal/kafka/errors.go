package kafka

import (
	"errors"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
)

// fenced are the answers after which a transactional producer is of no use any more: another client with its transactional id has taken over
// (PRODUCER_FENCED, and INVALID_PRODUCER_EPOCH from older brokers), its transaction was ended without it (INVALID_TXN_STATE: timed out, or fenced on
// brokers that say it so), or its id has expired (INVALID_PRODUCER_ID_MAPPING). A new client with the same id goes on.
var fenced = []error{kerr.ProducerFenced, kerr.InvalidProducerEpoch, kerr.InvalidTxnState, kerr.InvalidProducerIDMapping}

// IsFenced reports whether the transactional client that got err must be replaced.
func IsFenced(err error) bool {
	return slices.ContainsFunc(fenced, func(target error) bool { return errors.Is(err, target) })
}
