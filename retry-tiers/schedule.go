package retrytiers

import "time"

const (
	// Floor is the shortest delay there is, and where full jitter begins.
	Floor = 500 * time.Millisecond
	// Longest is the longest delay before jitter: as long as a delay topic keeps a record.
	Longest = 7 * 24 * time.Hour

	// doublings that fit a Duration: 2^33 s is 272 years, 2^34 s overflows to a negative delay, a hot loop.
	doublings = 33
)

// Schedule says how long to wait after an attempt.
type Schedule struct {
	maxDelay time.Duration
	ratio    float64
}

// NewSchedule takes max_delay and jitter_ratio of a valid configuration.
func NewSchedule(c Config) Schedule { return Schedule{maxDelay: c.MaxDelay, ratio: c.JitterRatio} }

// Jitter is how delays are spread; the words are those of a webhook's configuration.
type Jitter string

const (
	Additive Jitter = "additive" // adds 0 to jitter_ratio of the delay
	Full     Jitter = "full"     // draws from Floor to the delay: for receivers that many webhooks share
)

// Policy is what a webhook says about its delays; the zero value is doubling with additive jitter.
type Policy struct {
	// Schedule are the delays after attempt 1, 2, ...; the last one stands for all that follow. Empty: doubling,
	// 2^n seconds after attempt n until max_delay.
	Schedule []time.Duration
	Jitter   Jitter // "" is Additive
}

// Delay is the wait between the end of a failed attempt (1, 2, ...) and the next, for a random number in [0, 1).
//
// It is above 0 and at most Ceiling for every attempt, also such as only a damaged record has.
func (s Schedule) Delay(attempt int, p Policy, random float64) time.Duration {
	d := s.base(attempt, p)
	if p.Jitter == Full {
		return Floor + time.Duration(random*float64(d-Floor))
	}
	return d + time.Duration(random*s.ratio*float64(d))
}

// Ceiling is the longest that Delay can be after an attempt. With doubling it never falls from one attempt to the next.
func (s Schedule) Ceiling(attempt int, p Policy) time.Duration {
	d := s.base(attempt, p)
	if p.Jitter == Full {
		return d
	}
	return d + time.Duration(s.ratio*float64(d))
}

func (s Schedule) base(attempt int, p Policy) time.Duration {
	if n := len(p.Schedule); n > 0 {
		d := p.Schedule[min(max(attempt, 1), n)-1]
		return min(max(d, Floor), Longest) // checked where it is saved, but other writers may save it too
	}
	if attempt > doublings {
		return s.maxDelay
	}
	return min(time.Second<<max(attempt, 0), s.maxDelay)
}

// Clamp corrects a due time that was read from a record. Whoever wrote the record at producedAt can't have meant less
// than at once, nor more than the ceiling of its schedule; one damaged due time would else wait for ever.
func Clamp(due, producedAt time.Time, ceiling time.Duration) time.Time {
	if due.Before(producedAt) {
		return producedAt
	}
	if latest := producedAt.Add(ceiling); due.After(latest) {
		return latest
	}
	return due
}
