package control

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// swap replaces the record of one webhook (nil: by a tombstone) if the one that
// is there has the offset expect. It returns the offset of the new one.
//
// Two writers, A and B, can't both win:
//  1. A takes the transactional id of the number; who held it is fenced.
//  2. A reads the partition to its end.
//  3. B takes the id: A is fenced. B reads, compares, writes, commits.
//  4. A's write or commit is refused. A starts again, and at step 2 finds B's
//     record: ErrConflict.
func (c *Control) swap(ctx context.Context, id string, value []byte, expect int64) (int64, error) {
	number := c.topo.PartitionFor(id)
	select {
	case c.writes[number] <- struct{}{}:
		defer func() { <-c.writes[number] }()
	case <-ctx.Done():
		return Absent, ctx.Err()
	}

	s := swap{c: c, number: number, id: id, value: value, expect: expect, unsettled: Absent}
	var before error // why the attempt before failed
	for try := 0; ; try++ {
		began := time.Now()
		offset, err := s.try(ctx)
		again, ok := errors.AsType[*againError](err)
		if ok {
			before = again.err
			err = pause(ctx, backoff(try, time.Since(began)))
		}
		if err != nil && before != nil && ctx.Err() != nil {
			return Absent, fmt.Errorf("%w, tried %d times: %w", err, try+1, before)
		}
		if !ok {
			return offset, err
		}
	}
}

// backoff is the time before the next try, drawn at random so that those who
// fence each other get out of step: up to the time that a try takes (30 to 100 ms
// on a healthy cluster), doubling to 16 times that.
func backoff(try int, took time.Duration) time.Duration {
	return rand.N(max(took, 10*time.Millisecond) << min(try, 4))
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
