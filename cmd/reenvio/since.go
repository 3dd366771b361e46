package main

import (
	"fmt"
	"time"

	"github.com/reenvio/reenvio/internal/record"
)

// since is the value of --since: a time, or how long ago it was.
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
	ago, err := parseDuration(text)
	if err != nil || ago <= 0 || ago > maxAgo {
		return fmt.Errorf("it may be how long ago, such as 90m, 24h or 7d, or a time such as 2026-01-02T15:04:05Z")
	}
	s.text, s.time = text, time.Now().Add(-ago)
	return nil
}
