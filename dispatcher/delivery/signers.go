package delivery

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/signing"
)

// signers are a webhook's keys, newest first.
type signers struct {
	keys    []signing.Key
	expires []time.Time // zero: never
	mortal  bool        // some key expires
}

func newSigners(secrets []record.Secret) (signers, error) {
	if len(secrets) == 0 {
		return signers{}, errors.New("there is none to sign with")
	}
	order := make([]int, len(secrets))
	for i := range order {
		order[i] = i
	}
	// Stable, so that of two secrets of one moment the first listed comes first.
	slices.SortStableFunc(order, func(a, b int) int {
		return secrets[b].CreatedAt.Compare(secrets[a].CreatedAt.Time)
	})
	var s signers
	for _, i := range order {
		key, err := signing.ParseSecret(secrets[i].Value)
		if err != nil {
			return signers{}, fmt.Errorf("[%d]: %w", i, err)
		}
		s.keys = append(s.keys, key)
		s.expires = append(s.expires, secrets[i].ExpiresAt.Time)
		s.mortal = s.mortal || !secrets[i].ExpiresAt.IsZero()
	}
	return s, nil
}

// active are the keys that have not expired at the time given: a secret may
// expire between two attempts of one event.
func (s signers) active(at time.Time) []signing.Key {
	if !s.mortal {
		return s.keys
	}
	active := make([]signing.Key, 0, len(s.keys))
	for i, key := range s.keys {
		if s.expires[i].IsZero() || at.Before(s.expires[i]) {
			active = append(active, key)
		}
	}
	return active
}
