package overview

import (
	"github.com/reenvio/reenvio/internal/record"
)

// Overview is the whole at one moment; its JSON is what `reenvio status -o json` prints (schemas/status.schema.json).
type Overview struct {
	At record.Time `json:"at"`
	// OK: nothing needs a person at once. A paused webhook waits for its owner and is no such thing.
	OK       bool      `json:"ok"`
	Headline string    `json:"headline"`
	Problems []Problem `json:"problems"`

	Group      string `json:"group"`
	GroupState string `json:"group_state"` // as Kafka calls it: Stable, Empty, Dead, ...
	// Partitions is N, the number of numbers.
	Partitions   int32        `json:"partitions"`
	OwnedNumbers int          `json:"owned_numbers"`
	Dispatchers  []Dispatcher `json:"dispatchers"`

	Backlog        int64    `json:"backlog"`
	BacklogIsBound bool     `json:"backlog_is_upper_bound"`
	Numbers        []Number `json:"numbers"`

	RetryTiers []Tier `json:"retry_tiers"`

	Webhooks          int         `json:"webhooks"`
	WebhooksPaused    int         `json:"webhooks_paused"`
	WebhooksReturning int         `json:"webhooks_returning"`
	ParkedEvents      int64       `json:"parked_events"`
	Paused            []Paused    `json:"paused"`
	Returning         []Returning `json:"returning"`
	Holds             []Hold      `json:"holds"`
	DeadLastHour      int64       `json:"dead_last_hour"`
	DeadIsBound       bool        `json:"dead_last_hour_is_upper_bound"`
	DeadByReason      []Dead      `json:"dead_last_hour_by_reason"`
	Notes             []string    `json:"notes"` // what was not counted to the last

	moving  bool    // the group is rebalancing
	expired []int32 // numbers whose committed offsets Kafka has dropped
}

// Problem is something that needs a person, and what to do about it.
type Problem struct {
	Problem  string `json:"problem"`
	NextStep string `json:"next_step"`
}

// Dispatcher is a member of the group.
type Dispatcher struct {
	Instance string  `json:"instance"` // kafka.instance_id
	Host     string  `json:"host"`     // as the broker sees it
	MemberID string  `json:"member_id"`
	Numbers  []int32 `json:"numbers"`
}

// Number is one partition number: its owner, and what of the events topic is not done. The lowest incomplete offset is where the
// committed offset stands; what is beyond it may be done all the same.
type Number struct {
	Number int32 `json:"number"`
	// Owner is the instance that has it; empty for none.
	Owner string `json:"owner,omitempty"`
	Host  string `json:"host,omitempty"`
	// LastCommitBy is the instance that committed last, which may be gone.
	LastCommitBy string `json:"last_commit_by,omitempty"`
	// Backlog are the events not done yet: not tried, or in flight.
	Backlog        int64 `json:"backlog"`
	BacklogIsBound bool  `json:"backlog_is_upper_bound"`
	// CommandsWaiting are commands without a result.
	CommandsWaiting int `json:"commands_waiting"`

	// The record at the lowest incomplete offset; without a reason there is none.
	IncompleteOffset  int64       `json:"incomplete_offset"`
	IncompleteWebhook string      `json:"incomplete_webhook,omitempty"`
	IncompleteEventID string      `json:"incomplete_event_id,omitempty"`
	IncompleteSince   record.Time `json:"incomplete_since,omitzero"` // when it was produced
	IncompleteReason  Reason      `json:"incomplete_reason,omitempty"`
	IncompleteDetail  string      `json:"incomplete_detail,omitempty"`
}

// Reason is why an event is not done, from a closed set.
type Reason string

// The reasons.
const (
	InFlight        Reason = "in_flight"        // nothing holds it: its request runs, or it is the next
	StrictHead      Reason = "strict_head"      // one before it failed, and its webhook lets nothing overtake that
	Held            Reason = "hold"             // by hand, or the endpoint asked to wait
	Config          Reason = "config"           // its webhook's configuration can't be used
	WebhookPaused   Reason = "paused"           // it is about to be parked
	NoOwner         Reason = "no_owner"         // no dispatcher has its number
	Rebalancing     Reason = "rebalancing"      // the numbers are being shared out anew
	OpenTransaction Reason = "open_transaction" // it lies behind a producer's transaction that has not ended
)

// Tier is a delay topic.
type Tier struct {
	Tier  string `json:"tier"`
	Topic string `json:"topic"`
	// Configured is false for one that is only drained.
	Configured     bool  `json:"configured"`
	Waiting        int64 `json:"waiting"`
	WaitingIsBound bool  `json:"waiting_is_upper_bound"`
	// NextDueAt is the earliest due time to come.
	NextDueAt record.Time `json:"next_due_at,omitzero"`
	// Overdue are due for more than a second and not done: in flight to a slow endpoint, held, or without an owner.
	Overdue int64 `json:"overdue"`
	// The one that has been due the longest.
	OverdueSince   record.Time `json:"overdue_since,omitzero"`
	OverdueNumber  *int32      `json:"overdue_number,omitempty"`
	OverdueWebhook string      `json:"overdue_webhook,omitempty"`
	OverdueReason  Reason      `json:"overdue_reason,omitempty"`
	// OldestAt is since when the oldest record has lain here.
	OldestAt record.Time `json:"oldest_at,omitzero"`
}

// Paused is a webhook that is paused.
type Paused struct {
	Webhook             string               `json:"webhook"`
	Number              int32                `json:"number"`
	Tenant              string               `json:"tenant,omitempty"`
	URLHost             string               `json:"url_host,omitempty"`
	PauseReasons        []record.PauseReason `json:"pause_reasons"`
	PausedAt            record.Time          `json:"paused_at,omitzero"`
	ConsecutiveFailures int                  `json:"consecutive_failures"`
	LastStatus          int                  `json:"last_status,omitempty"`
	LastError           string               `json:"last_error,omitempty"`
	Parked              int64                `json:"parked"`
	OldestParkedAt      record.Time          `json:"oldest_parked_at,omitzero"`
	NextStep            string               `json:"next_step"`
}

// Returning is an active webhook whose parked events go out first.
type Returning struct {
	Webhook        string      `json:"webhook"`
	Number         int32       `json:"number"`
	Parked         int64       `json:"parked"`
	OldestParkedAt record.Time `json:"oldest_parked_at,omitzero"`
}

// Hold is a hold by hand.
type Hold struct {
	Scope  record.HoldScope `json:"scope"`
	Value  string           `json:"value,omitempty"`
	By     string           `json:"by,omitempty"`
	At     record.Time      `json:"at,omitzero"`
	Reason string           `json:"reason,omitempty"`
	// Numbers is in how many numbers it is in force: all N, or the owners of some have not taken it yet. One for a webhook.
	Numbers int `json:"numbers"`
	// Parked are the events that are parked for it; of a webhook that is paused too they count there as well.
	Parked   int64  `json:"parked"`
	NextStep string `json:"next_step"`
}

// Dead counts the dead letters of one reason.
type Dead struct {
	Reason record.DeathReason `json:"reason"`
	Count  int64              `json:"count"`
}
