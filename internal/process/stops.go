package process

import (
	"context"
	"os"
)

// Stops turns signals into two stops. At the first, soft is done: start nothing new, finish what has begun. At the second, hard is
// called, once, and ends the process without waiting for anything: a person who asks twice means now, and Kafka's transactions make
// it safe. Stops returns when parent is done or the second signal has come; run it in a goroutine.
func Stops(parent context.Context, signals <-chan os.Signal, soft context.CancelFunc, hard func(os.Signal)) {
	for _, stop := range []func(os.Signal){func(os.Signal) { soft() }, hard} {
		select {
		case signal := <-signals:
			stop(signal)
		case <-parent.Done():
			return
		}
	}
}
