package main

import (
	"fmt"
	"time"

	dlqconsumer "github.com/reenvio/reenvio/dlq-consumer"
)

// lettersProgress shows how far work on dead letters has come, how fast it is and how long it may still take. It is told of every
// record, and looks at few.
func lettersProgress(p *progress) dlqconsumer.Progress {
	const between = 200 * time.Millisecond
	var what string
	var began, last time.Time
	return func(now string, done, total int64) {
		at := time.Now()
		if now != what { // the rate of one part says nothing about the next
			what, began, last = now, at, at
		}
		if at.Sub(last) < between {
			return
		}
		last = at
		p.show("%s", progressText(what, done, total, at.Sub(began)))
	}
}

func progressText(what string, done, total int64, taken time.Duration) string {
	rate := float64(done) / taken.Seconds()
	text := fmt.Sprintf("%s: %d of %d, %.0f a second", what, done, total, rate)
	if done > 0 && done < total {
		left := time.Duration(float64(total-done) / rate * float64(time.Second))
		text += fmt.Sprintf(", about %s left", left.Round(time.Second))
	}
	return text
}
