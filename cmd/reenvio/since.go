package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/reenvio/reenvio/internal/record"
)

// since is the value of --since: a time, or how long ago it was. Days are known beside Go's units, since that is what topics are kept for.
type since struct {
	text string
	time time.Time
}

func (s *since) String() string { return s.text }
func (*since) Type() string     { return "time" }

func (s *since) Set(text string) error {
	if at, err := record.ParseTime(text); err == nil {
		s.text, s.time = text, at.Time
		return nil
	}
	ago, err := time.ParseDuration(text)
	if number, ok := strings.CutSuffix(text, "d"); ok {
		var days int
		days, err = strconv.Atoi(number)
		ago = time.Duration(days) * 24 * time.Hour
	}
	if err != nil || ago <= 0 || ago > maxAgo {
		return fmt.Errorf("it may be how long ago, such as 90m, 24h or 7d, or a time such as 2026-01-02T15:04:05Z")
	}
	s.text, s.time = text, time.Now().Add(-ago)
	return nil
}

// maxAgo is longer than any topic is kept, and short enough to count back from any clock.
const maxAgo = 100 * 365 * 24 * time.Hour
