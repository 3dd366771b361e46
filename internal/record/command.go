package record

import (
	"encoding/json"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Kinds of records in the commands topic.
const (
	KindCommand = "command"
	KindResult  = "result"
)

// Action is what a command asks for. The set is open: an owner that doesn't know
// one answers refused.
type Action string

// The actions.
const (
	ActionPause         Action = "pause"
	ActionResume        Action = "resume"
	ActionTest          Action = "test"
	ActionDiscardParked Action = "discard_parked"
	ActionHold          Action = "hold"
	ActionRelease       Action = "release"
	ActionSkip          Action = "skip"
)

// Command is an act that the owner of a webhook, or of a number (key NumberKey),
// carries out once.
type Command struct {
	ID string `json:"id"`
	// Webhook is empty in a command for a number.
	Webhook string `json:"webhook,omitempty"`
	Action  Action `json:"action"`
	By      string `json:"by,omitempty"`
	At      Time   `json:"at,omitzero"`
	Reason  string `json:"reason,omitempty"`
	// ExpectVersion refuses the command when the state has moved on; 0 expects that
	// there is no state, nil expects nothing.
	ExpectVersion *int64 `json:"expect_version,omitempty"`
	// Scope and Value are for hold and release; Value alone is the place of the
	// record for skip.
	Scope HoldScope `json:"scope,omitempty"`
	Value string    `json:"value,omitempty"`
	// Before is for discard_parked: events produced before it.
	Before Time `json:"before,omitzero"`
}

// ResultCode is how a command ended.
type ResultCode string

// The results.
const (
	ResultDone    ResultCode = "done"
	ResultRefused ResultCode = "refused"
	ResultFailed  ResultCode = "failed"
)

// Result is the owner's answer to the command with the same id.
type Result struct {
	ID     string     `json:"id"`
	Result ResultCode `json:"result"`
	Detail string     `json:"detail,omitempty"`
	At     Time       `json:"at,omitzero"`
}

// KindOf is the kind of a record of the commands topic, or empty.
func KindOf(data []byte) string {
	var k struct {
		Kind string `json:"kind"`
	}
	if json.Unmarshal(data, &k) != nil {
		return ""
	}
	return k.Kind
}

// ParseCommand reads the value of a command.
func ParseCommand(data []byte) (Command, error) {
	var c Command
	if err := parseKind(data, KindCommand, &c); err != nil {
		return Command{}, err
	}
	if c.ID == "" || c.Action == "" {
		return Command{}, fmt.Errorf("reading command: id and action are required")
	}
	if len(c.ID) > maxEventID {
		return Command{}, fmt.Errorf("reading command: its id has %d bytes, the most is %d", len(c.ID), maxEventID)
	}
	return c, nil
}

// Marshal writes the value; texts are escaped and cut.
func (c Command) Marshal() []byte {
	c.By = text(c.By, maxGroupText)
	c.Reason = text(c.Reason, maxErrorText)
	type plain Command
	return mustEncode(struct {
		Kind string `json:"kind"`
		plain
	}{KindCommand, plain(c)})
}

// ParseResult reads the value of a result.
func ParseResult(data []byte) (Result, error) {
	var r Result
	if err := parseKind(data, KindResult, &r); err != nil {
		return Result{}, err
	}
	return r, nil
}

// Marshal writes the value; the detail is escaped and cut.
func (r Result) Marshal() []byte {
	r.Detail = text(r.Detail, maxErrorText)
	type plain Result
	return mustEncode(struct {
		Kind string `json:"kind"`
		plain
	}{KindResult, plain(r)})
}

// Record is the result under the key of its command; one that is too long to be a
// webhook's is cut.
func (r Result) Record(topic string, partition int32, key []byte) *kgo.Record {
	return &kgo.Record{Topic: topic, Partition: partition, Key: key[:min(len(key), maxWebhookID)], Value: r.Marshal()}
}

func parseKind(data []byte, want string, into any) error {
	if kind := KindOf(data); kind != want {
		return fmt.Errorf("reading %s: its kind is %q", want, cut(kind, 64))
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("reading %s: %w", want, err)
	}
	return nil
}
