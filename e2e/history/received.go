package history

import (
	"time"

	"github.com/reenvio/reenvio/internal/kafkatest"
)

// Received are the requests that a receiver saw, in the order of their arrival.
func Received(requests []kafkatest.Request) []Request {
	out := make([]Request, len(requests))
	for i, q := range requests {
		out[i] = Request{
			Webhook: q.Webhook, ID: q.EventID, Attempt: q.Attempt,
			Start: q.Start, End: q.End, Status: q.Status, Value: HashOf(q.Body).asBody(),
		}
	}
	return out
}

func millis(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
