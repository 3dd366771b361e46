package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"
)

// Teardown takes a process apart in the reverse order of its building. Not for concurrent use.
type Teardown struct {
	steps []step
}

type step struct {
	name string
	stop func(context.Context) error
}

// Add puts a step on top: it will run before all steps added earlier. The name says what ends ("admin server").
func (t *Teardown) Add(name string, stop func(context.Context) error) {
	t.steps = append(t.steps, step{name, stop})
}

// Run does all steps, last in first out, under the one deadline of ctx. A step that fails doesn't keep the others from running. A
// step that has not ended at the deadline is named and left behind, and those below it still get their turn, with a context that is
// done: they must free what can be freed at once.
func (t *Teardown) Run(ctx context.Context, log *slog.Logger) error {
	var failed []error
	for _, step := range slices.Backward(t.steps) {
		began := time.Now()
		ended := make(chan error, 1)
		go func() { ended <- step.stop(ctx) }()
		err := waitFor(ctx, ended)
		if err != nil {
			failed = append(failed, fmt.Errorf("stopping the %s: %w", step.name, err))
		}
		log.Debug("stopped", "step", step.name, "duration", time.Since(began), "error", err)
	}
	t.steps = nil
	return errors.Join(failed...)
}

// grace is what a step may still take when the deadline has passed already: enough to close a socket.
const grace = 100 * time.Millisecond

func waitFor(ctx context.Context, ended <-chan error) error {
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-ended:
		return err
	case <-time.After(grace):
		return errors.New("it did not end in time and was left behind")
	}
}
