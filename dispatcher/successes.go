package dispatcher

import (
	"fmt"
	"hash/fnv"
)

// Attempts is the part of the configuration under attempts.
type Attempts struct {
	Successes        string `koanf:"successes" doc:"Which deliveries get a record in the attempts topic: all, sampled (one in 100, by event id) or off. Failed attempts always get one."`
	ResponseExcerpts bool   `koanf:"response_excerpts" doc:"Keep the beginning of an endpoint's answer (up to 512 bytes, sanitised) with a failed attempt and with a dead letter. Switch it off where endpoints answer with what must not lie in a topic."`
}

// DefaultAttempts is what applies when nothing is configured.
func DefaultAttempts() Attempts {
	return Attempts{Successes: string(successesAll), ResponseExcerpts: true}
}

// Validate checks the choice.
func (a Attempts) Validate() error {
	switch successes(a.Successes) {
	case successesAll, successesSampled, successesOff:
		return nil
	}
	return fmt.Errorf("attempts.successes is %q, but must be all, sampled or off", a.Successes)
}

type successes string

const (
	successesAll     successes = "all"
	successesSampled successes = "sampled"
	successesOff     successes = "off"

	sampleOneIn = 100
)

// keep: whether the delivery of an event gets its record.
func (s successes) keep(eventID string) bool {
	switch s {
	case successesAll:
		return true
	case successesSampled:
		h := fnv.New32a()
		_, _ = h.Write([]byte(eventID))
		return h.Sum32()%sampleOneIn == 0
	case successesOff:
	}
	return false
}
