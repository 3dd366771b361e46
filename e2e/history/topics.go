package history

import (
	"time"

	"github.com/reenvio/reenvio/internal/record"
)

// Topics are the records of a run, each partition's in the order of its offsets.
type Topics struct {
	Events   []Event
	Waiting  []Waiting // in retry topics and in parked
	Dead     []Dead
	Attempts []Attempt
	States   []State
	Numbers  []Number // the numbers' own facts
	Acts     []Act    // commands and their results
	// Deleted is when each webhook that is gone was deleted.
	Deleted map[string]time.Time
	// Committed is the offset below which the dispatchers' group has finished all
	// that is in a partition. A partition that is absent has no commit.
	Committed map[Partition]int64
}

// Partition is a partition of a topic.
type Partition struct {
	Topic  string
	Number int32
}

// Event is a record of the events topic.
type Event struct {
	Place   record.Source
	Written time.Time
	Webhook string // empty when the key is no legal id
	ID      string // its own or derived
	Value   Hash
	Headers Hash // of its own headers
	// PartitionKey is its ordering key; Redrive is of which redrive it is.
	PartitionKey, Redrive string
	Expiry                time.Time      // ce_expirytime
	Moved                 *record.Source // the first record, when this is its copy in the right partition
}

// Waiting is a record of a retry topic or of the parked topic.
type Waiting struct {
	Place       record.Source
	Tier        time.Duration // 0 in the parked topic
	Written     time.Time
	Webhook, ID string
	Source      record.Source // of the event
	Attempts    int           // made so far
	DueAt       time.Time
	Reason      record.ParkReason // parked only
	Value       Hash
	Headers     Hash
}

// Dead is a record of the DLQ.
type Dead struct {
	Place       record.Source
	Written     time.Time
	Webhook, ID string
	Source      record.Source
	Attempts    int
	Reason      record.DeathReason
	Value       Hash
	Headers     Hash
	Cut         bool // some of the event's own headers did not fit
}

// Attempt is a record of the attempts topic.
type Attempt struct {
	Place       record.Source
	Written     time.Time
	Webhook, ID string
	Source      record.Source
	Number      int // 0: no request was made
	Outcome     record.Outcome
	Next        record.Next
	Status      int
	Error       string
	Started     time.Time
	Duration    time.Duration
	DueAt       time.Time
	NextDueAt   time.Time
	Dispatcher  string
}

// ended is the earliest that the attempt can have ended: both its start and its
// duration are cut to milliseconds.
func (a Attempt) ended() time.Time { return a.Started.Add(a.Duration) }

// terminal says that the event is finished.
func (a Attempt) terminal() bool { return a.Outcome != record.Failed }

// State is a record of the state topic for a webhook.
type State struct {
	Place   record.Source
	Written time.Time
	Webhook string
	Healthy bool // a tombstone
	Reasons []record.PauseReason
	Streak  int
	Parked  *record.Parked
	Held    bool // by hand, the webhook itself
}

func (s State) paused() bool { return len(s.Reasons) > 0 }

// Number is a record of the state topic for a number.
type Number struct {
	Place   record.Source
	Written time.Time
	Holds   []record.Hold
}

// Act is a command, or the result of one.
type Act struct {
	Place   record.Source
	Written time.Time
	Webhook string // or record.NumberKey
	ID      string
	Action  record.Action     // of a command
	Scope   record.HoldScope  // of a hold or release
	Value   string            // of a hold, release or skip
	Result  record.ResultCode // of a result
}
