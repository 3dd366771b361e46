package main

import (
	"fmt"
	"io"
	"time"
)

// progressEvery is how often a log or a pipe gets a line about work that goes on.
const progressEvery = 5 * time.Second

// progress says on standard error how far work has come that takes long: on a terminal in one line that is renewed, else in a line every
// few seconds, so that short work says nothing.
type progress struct {
	w     io.Writer
	renew bool
	last  time.Time
	shown bool
}

func (c *cli) progress() *progress {
	return &progress{w: c.stderr, renew: c.renew, last: time.Now()}
}

func (p *progress) show(format string, args ...any) {
	text := clean(fmt.Sprintf(format, args...))
	if p.renew {
		fmt.Fprintf(p.w, "\r\x1b[K%s", text)
		p.shown = true
		return
	}
	if now := time.Now(); now.Sub(p.last) >= progressEvery {
		p.last = now
		fmt.Fprintln(p.w, text)
	}
}

// end takes the renewed line away: the result says what came of it.
func (p *progress) end() {
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.shown = false
	}
}
