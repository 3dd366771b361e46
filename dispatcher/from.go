package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/kafka"
)

// From answers, once, where to begin when committed offsets have expired. The
// zero From gives no answer.
type From struct {
	where string
	at    time.Time
}

var errNoAnswer = errors.New("no answer where to begin")

// ParseFrom reads earliest, latest or a time in RFC 3339. The empty text is the
// zero From.
func ParseFrom(s string) (From, error) {
	switch s {
	case "", "earliest", "latest":
		return From{where: s}, nil
	}
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return From{}, fmt.Errorf("--from is %q, but must be earliest, latest or a time in RFC 3339, such as 2026-11-30T12:00:00Z", s)
	}
	return From{where: s, at: at}, nil
}

func (f From) String() string { return f.where }

func (f From) offset(ctx context.Context, cl *kgo.Client, topic string, p int32, earliest int64) (int64, error) {
	switch f.where {
	case "":
		return 0, errNoAnswer
	case "earliest":
		return earliest, nil
	case "latest":
		return kafka.HighWatermark(ctx, cl, topic, p)
	}
	return kafka.OffsetAt(ctx, cl, topic, p, f.at)
}
