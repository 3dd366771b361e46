package record

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Status is whether a webhook is sent to.
type Status string

// The states of a webhook.
const (
	Active Status = "active"
	Paused Status = "paused"
)

// PauseReason is why a webhook is paused. Several can hold at once, and each is
// lifted by whom it belongs to.
type PauseReason string

// The reasons to pause.
const (
	PauseFailures PauseReason = "consecutive_failures" // its streak reached auto_pause_after
	PauseManual   PauseReason = "manual"               // a person
	PauseGone     PauseReason = "endpoint_gone"        // it answered 410
	PauseConfig   PauseReason = "config"               // its configuration can't be used
	PauseDisabled PauseReason = "disabled"             // its configuration says enabled: false
)

// State is a record of the state topic: what a webhook's owner must remember
// when the webhook is not simply healthy. A healthy one has a tombstone instead.
type State struct {
	Webhook string `json:"webhook"`
	// Status is set by AddPause and RemovePause; what is written follows PauseReasons.
	Status Status `json:"status"`
	// PauseReasons is a sorted set; use the methods.
	PauseReasons []PauseReason `json:"pause_reasons,omitempty"`
	// ConsecutiveFailures counts failed attempts since the last success.
	ConsecutiveFailures int    `json:"consecutive_failures"`
	StreakStartedAt     Time   `json:"streak_started_at,omitzero"`
	PausedAt            Time   `json:"paused_at,omitzero"`
	HoldUntil           Time   `json:"hold_until,omitzero"`
	LastStatus          int    `json:"last_status,omitempty"`
	LastError           string `json:"last_error,omitempty"`
	// Head is the failed event that a strict webhook waits for; Heads are those of
	// its other keys (ordering strict_key).
	Head  *Head  `json:"head,omitempty"`
	Heads []Head `json:"heads,omitempty"`
	// Parked says which part of the parked topic is the webhook's; nil when it has none.
	Parked *Parked `json:"parked,omitempty"`
	// Hold is a hold by hand.
	Hold    *Hold  `json:"hold,omitempty"`
	Version int64  `json:"version"`
	Extra   Fields `json:"-"`
}

// Head is the failed event at the front of a strict webhook, or of one of its keys:
// nothing overtakes it. It is told by where it lay in the events topic.
type Head struct {
	Source   Source `json:"source"`
	Attempts int    `json:"attempts"`
	DueAt    Time   `json:"due_at,omitzero"`
	// Key is the hash of its ordering key; empty for events without one.
	Key string `json:"key,omitempty"`
	// Parked says that it lies in the parked topic, where others may lie before it.
	Parked bool   `json:"parked,omitempty"`
	Extra  Fields `json:"-"`
}

// Parked is a webhook's part of its number's parked partition.
type Parked struct {
	// From is the lowest offset not yet handled, or a lower bound of it; Done are
	// those beyond it that are; Last is the highest.
	From     int64   `json:"from"`
	Done     []int64 `json:"done,omitempty"`
	Last     int64   `json:"last"`
	Count    int64   `json:"count"`
	OldestAt Time    `json:"oldest_at,omitzero"`
	Extra    Fields  `json:"-"`
}

// ParseState reads the value of a webhook's state; a tombstone (nil) is the
// caller's to see. Reasons win over status; a pause without a reason is taken as
// one by hand, so that a person can lift it.
func ParseState(data []byte) (State, error) {
	var s State
	if err := s.UnmarshalJSON(data); err != nil {
		return State{}, fmt.Errorf("reading state: %w", err)
	}
	if s.Status == Paused && len(s.PauseReasons) == 0 {
		s.PauseReasons = []PauseReason{PauseManual}
	}
	slices.Sort(s.PauseReasons)
	s.PauseReasons = slices.Compact(s.PauseReasons)
	s.Status = s.status()
	return s, nil
}

// Marshal writes the value.
func (s State) Marshal() []byte { return mustEncode(s) }

// HasPause says whether r is among the reasons.
func (s *State) HasPause(r PauseReason) bool {
	return slices.Contains(s.PauseReasons, r)
}

// AddPause adds a reason; false says that it was there already.
func (s *State) AddPause(r PauseReason) bool {
	i, found := slices.BinarySearch(s.PauseReasons, r)
	if !found {
		// A new array: earlier copies of the state keep theirs.
		s.PauseReasons = slices.Insert(slices.Clone(s.PauseReasons), i, r)
	}
	s.Status = s.status()
	return !found
}

// RemovePause takes a reason away; false says that it was not there.
func (s *State) RemovePause(r PauseReason) bool {
	i, found := slices.BinarySearch(s.PauseReasons, r)
	if found {
		s.PauseReasons = slices.Delete(slices.Clone(s.PauseReasons), i, i+1)
	}
	s.Status = s.status()
	return found
}

// ConfigError begins the last error of a webhook whose configuration can't be
// used. The rest says why.
const ConfigError = "config: "

// ConfigProblem says why the webhook's configuration can't be used, as far as its
// last error tells.
func ConfigProblem(lastError string) string {
	if why, told := strings.CutPrefix(lastError, ConfigError); told {
		return why
	}
	return "the log of the dispatcher says what is wrong with it"
}

// SetConfigError notes why the webhook's configuration can't be used; nil takes
// such a note away. false says that nothing has changed.
func (s *State) SetConfigError(why error) bool {
	noted := strings.HasPrefix(s.LastError, ConfigError)
	switch {
	case why == nil && !noted:
		return false
	case why == nil:
		s.LastError = ""
		return true
	}
	was := s.LastError
	s.LastStatus, s.LastError = 0, text(ConfigError+why.Error(), maxErrorText)
	return s.LastError != was
}

// Healthy says that there is nothing to remember: active, no streak, no head,
// nothing parked, no hold. The state is then written as a tombstone. The last
// status and error alone are not worth a record; what a newer build wrote
// (Extra) is, since a tombstone would lose it.
func (s *State) Healthy() bool {
	return len(s.PauseReasons) == 0 && s.ConsecutiveFailures == 0 && s.HoldUntil.IsZero() &&
		s.Head == nil && len(s.Heads) == 0 && s.Parked == nil && s.Hold == nil && len(s.Extra) == 0
}

func (s *State) status() Status {
	if len(s.PauseReasons) > 0 {
		return Paused
	}
	return Active
}

// NextVersion is the version that follows prev: one more, and at least the unix
// time in milliseconds, so that a state that went away (a tombstone) and came
// back has a higher one than before.
func NextVersion(prev int64, now time.Time) int64 {
	if prev == math.MaxInt64 {
		return prev
	}
	return max(prev+1, now.UnixMilli())
}
