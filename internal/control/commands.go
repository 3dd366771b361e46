package control

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/kafka"
	"github.com/reenvio/reenvio/internal/record"
)

// ErrPending says that a command was written and not answered in time. It is
// still done when a dispatcher takes over the number. Test with errors.Is; the
// error is a *PendingError.
var ErrPending = errors.New("pending")

// PendingError names the number that nobody answered for.
type PendingError struct {
	Number int32
	ID     string // of the command
}

// Error implements error.
func (e *PendingError) Error() string {
	return fmt.Sprintf("pending: no dispatcher owns number %d", e.Number)
}

// Is makes it an ErrPending.
func (e *PendingError) Is(target error) bool { return target == ErrPending }

const (
	// The reader's client is shared, and a fetch that waits at the broker holds up
	// all others on its connection: so the wait is here, and about a quarter of
	// the time that an owner takes (dispatcher.cycle).
	tailPause = 25 * time.Millisecond
	tailBytes = 1 << 20
)

// Do writes a command and waits until the owner of its webhook has answered, or
// ctx ends: that is ErrPending, and no failure. A command without id or time
// gets them.
func (c *Control) Do(ctx context.Context, cmd record.Command) (record.Result, error) {
	if err := record.ValidWebhookID(cmd.Webhook); err != nil {
		return record.Result{}, err
	}
	return c.do(ctx, c.cl, c.topo.PartitionFor(cmd.Webhook), cmd.Webhook, named(cmd))
}

// named gives a command its id and time, where it has none.
func named(cmd record.Command) record.Command {
	if cmd.ID == "" {
		cmd.ID = rand.Text()
	}
	if cmd.At.IsZero() {
		cmd.At = record.At(time.Now())
	}
	return cmd
}

// do writes the command with writer and has it done by the owner of number.
func (c *Control) do(ctx context.Context, writer *kgo.Client, number int32, key string, cmd record.Command) (record.Result, error) {
	offset, err := c.send(ctx, writer, number, key, cmd)
	if err != nil {
		return record.Result{}, fmt.Errorf("writing the command %s for %s: %w", cmd.Action, key, err)
	}
	result, err := c.await(ctx, number, offset+1, cmd.ID)
	if ctx.Err() != nil && err != nil {
		return record.Result{}, &PendingError{Number: number, ID: cmd.ID}
	}
	if err != nil {
		return record.Result{}, fmt.Errorf("waiting for the result of the command %s for %s: %w", cmd.Action, key, err)
	}
	return result, nil
}

// send writes the command and returns its offset.
func (c *Control) send(ctx context.Context, writer *kgo.Client, number int32, key string, cmd record.Command) (int64, error) {
	r := &kgo.Record{Topic: c.topo.Commands(), Partition: number, Key: []byte(key), Value: cmd.Marshal()}
	if err := produce(ctx, writer, r); err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("%w: it may be done all the same", err)
		}
		return 0, err
	}
	if r.Partition != number {
		// The topic has another number of partitions than the configuration.
		return 0, fmt.Errorf("it went to partition %d and not %d, where the owner looks: `reenvio topics plan` shows what differs", r.Partition, number)
	}
	return r.Offset, nil
}

// await reads on from offset until the result of the command is there. The
// owner writes it in the transaction that commits the command's offset, so only
// committed records count.
func (c *Control) await(ctx context.Context, number int32, offset int64, id string) (record.Result, error) {
	reader := kafka.NewReader(c.cl, c.topo.Commands(), number, offset)
	for {
		batch, err := reader.Next(ctx, 0, tailBytes)
		if err != nil {
			return record.Result{}, err
		}
		for _, r := range batch.Records {
			// Others' commands, and what is no result at all, are passed over.
			if result, err := record.ParseResult(r.Value); err == nil && result.ID == id {
				return result, nil
			}
		}
		if len(batch.Records) > 0 {
			continue
		}
		if err := pause(ctx, tailPause); err != nil {
			return record.Result{}, err
		}
	}
}
