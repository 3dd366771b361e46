package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/record"
)

// NumberResult is what the owner of one number answered to a command for numbers.
type NumberResult struct {
	Number  int32
	Result  record.Result // its ID alone, while it is pending
	Pending bool          // not answered in time; it is done when a dispatcher takes the number over
}

// DoNumbers writes a command for whole numbers, the given ones or all of them, and
// waits until each of their owners has answered, or ctx ends: those that have not
// are pending. Results are in the order of the numbers.
//
// An error names the numbers for which the command could not be written or its
// result not be read; what the others answered is returned with it. The command has
// the same id everywhere, so sending it again with that id does no harm where its
// action does none twice.
func (c *Control) DoNumbers(ctx context.Context, cmd record.Command, numbers ...int32) ([]NumberResult, error) {
	if cmd.Webhook != "" {
		return nil, fmt.Errorf("a command for numbers names no webhook, got %q", cmd.Webhook)
	}
	if len(numbers) == 0 {
		for p := range c.topo.Partitions() {
			numbers = append(numbers, p)
		}
	}
	for _, p := range numbers {
		if p < 0 || p >= c.topo.Partitions() {
			return nil, fmt.Errorf("there is no number %d: numbers go from 0 to %d", p, c.topo.Partitions()-1)
		}
	}
	// The partition is what is meant, and the key is the same in all of them.
	writer, err := kgo.NewClient(append(slices.Clone(c.opts()), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	defer writer.Close()
	cmd = named(cmd)
	results, errs := make([]NumberResult, len(numbers)), make([]error, len(numbers))
	var wg sync.WaitGroup
	for i, p := range numbers {
		wg.Go(func() {
			results[i].Number = p
			results[i].Result, errs[i] = c.do(ctx, writer, p, record.NumberKey, cmd)
		})
	}
	wg.Wait()
	answered := results[:0]
	for i, r := range results {
		if errors.Is(errs[i], ErrPending) {
			r.Result.ID, r.Pending, errs[i] = cmd.ID, true, nil
		}
		if errs[i] == nil {
			answered = append(answered, r)
			continue
		}
		errs[i] = fmt.Errorf("number %d: %w", r.Number, errs[i])
	}
	return answered, errors.Join(errs...)
}
