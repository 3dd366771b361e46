package record

import (
	"fmt"
	"slices"
)

// NumberKey is the key of what belongs to a partition number as a whole, in the
// state and commands topics. It is no legal webhook id.
const NumberKey = "#number"

// NumberState is the record of the state topic under NumberKey.
type NumberState struct {
	// Topics are those in which the number has committed offsets, a sorted set: a
	// topic that is noted here and has none has lost them.
	Topics []string `json:"topics,omitempty"`
	// Holds by hand that concern more than one webhook.
	Holds []Hold `json:"holds,omitempty"`
	Extra Fields `json:"-"`
}

// HoldScope is what a hold by hand concerns.
type HoldScope string

// The scopes of a hold.
const (
	HoldAll     HoldScope = "all"
	HoldTenant  HoldScope = "tenant"
	HoldHost    HoldScope = "host"
	HoldWebhook HoldScope = "webhook"
)

// Hold is a hold by hand: requests wait until it is released. In the state of one
// webhook it has no scope and value.
type Hold struct {
	Scope HoldScope `json:"scope,omitempty"`
	// Value is the tenant, host or webhook of the scope.
	Value  string `json:"value,omitempty"`
	By     string `json:"by,omitempty"`
	At     Time   `json:"at,omitzero"`
	Reason string `json:"reason,omitempty"`
	Extra  Fields `json:"-"`
}

// ParseNumberState reads the value of a number's state.
func ParseNumberState(data []byte) (NumberState, error) {
	var n NumberState
	if err := n.UnmarshalJSON(data); err != nil {
		return NumberState{}, fmt.Errorf("reading state of the number: %w", err)
	}
	slices.Sort(n.Topics)
	n.Topics = slices.Compact(n.Topics)
	return n, nil
}

// Marshal writes the value.
func (n NumberState) Marshal() []byte { return mustEncode(n) }

// HasTopic says whether topic is noted.
func (n *NumberState) HasTopic(topic string) bool {
	return slices.Contains(n.Topics, topic)
}

// AddTopic notes a topic; false says that it was noted already.
func (n *NumberState) AddTopic(topic string) bool {
	i, found := slices.BinarySearch(n.Topics, topic)
	if !found {
		n.Topics = slices.Insert(slices.Clone(n.Topics), i, topic)
	}
	return !found
}

type (
	plainNumberState NumberState
	plainHold        Hold
)

// MarshalJSON writes the state, unknown fields kept.
func (n NumberState) MarshalJSON() ([]byte, error) {
	return encodeKeeping(plainNumberState(n), n.Extra)
}

// UnmarshalJSON reads the state as it is written; see ParseNumberState.
func (n *NumberState) UnmarshalJSON(data []byte) (err error) {
	n.Extra, err = decodeKeeping(data, (*plainNumberState)(n))
	return err
}

// MarshalJSON writes the hold, unknown fields kept.
func (h Hold) MarshalJSON() ([]byte, error) { return encodeKeeping(plainHold(h), h.Extra) }

// UnmarshalJSON reads the hold.
func (h *Hold) UnmarshalJSON(data []byte) (err error) {
	h.Extra, err = decodeKeeping(data, (*plainHold)(h))
	return err
}
