package bench

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// badness is one way in which some webhooks trouble the dispatcher.
type badness struct {
	name, about string
	delay       time.Duration // before the answer; forever is no answer
	status      int
	refuse      bool // nobody listens
	flood       bool // one of them is good, but has very many events queued
}

const forever = time.Duration(1<<63 - 1)

var badnesses = []badness{
	{name: "slow", about: "answer after 2 s", delay: 2 * time.Second, status: http.StatusOK},
	{name: "slower", about: "answer after 30 s", delay: 30 * time.Second, status: http.StatusOK},
	{name: "silent", about: "accept and never answer", delay: forever},
	{name: "refuse", about: "refuse connections", refuse: true},
	{name: "error", about: "answer 500", status: http.StatusInternalServerError},
	{name: "flood", about: "none is bad, but one has 200,000 events queued", status: http.StatusOK, flood: true},
}

// healthy is that of all webhooks in an undisturbed phase.
var healthy = badness{name: "undisturbed", status: http.StatusOK}

// Badnesses are the names that IsolationOptions.Bad may have.
func Badnesses() []string {
	var names []string
	for _, b := range badnesses {
		names = append(names, b.name)
	}
	return names
}

// AboutBad says what a badness is.
func AboutBad(name string) string {
	for _, b := range badnesses {
		if b.name == name {
			return b.about
		}
	}
	return ""
}

// named are the badnesses of these names, in the order of Badnesses; all when none is named.
func named(names []string) ([]badness, error) {
	for _, name := range names {
		if !slices.Contains(Badnesses(), name) {
			return nil, fmt.Errorf("--bad has no %q: it may have %s", name, strings.Join(Badnesses(), ", "))
		}
	}
	if len(names) == 0 {
		return badnesses, nil
	}
	return slices.DeleteFunc(slices.Clone(badnesses), func(b badness) bool { return !slices.Contains(names, b.name) }), nil
}

// answer waits as long as the badness wants, and no longer than ctx.
func (b *badness) answer(ctx context.Context) int {
	if b.delay > 0 {
		timer := time.NewTimer(b.delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	if b.status == 0 {
		return http.StatusOK // nobody is there to read it
	}
	return b.status
}
