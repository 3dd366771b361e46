package record

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxHoldValue bounds the tenant or host of a hold, as long as either can be.
const maxHoldValue = 256

// ValidHold says what is wrong with the scope and value of a hold or release.
func ValidHold(scope HoldScope, value string) error {
	switch scope {
	case HoldAll:
		if value != "" {
			return fmt.Errorf("scope all takes no value, got %q", cut(value, 64))
		}
		return nil
	case HoldWebhook:
		return ValidWebhookID(value)
	case HoldTenant, HoldHost:
		if value == "" || len(value) > maxHoldValue {
			return fmt.Errorf("scope %s needs a value, the %s, of up to %d bytes", scope, scope, maxHoldValue)
		}
		if !utf8.ValidString(value) { // JSON would hold another one
			return fmt.Errorf("the %s is not valid UTF-8", scope)
		}
		return nil
	}
	return fmt.Errorf("scope %q is unknown: want all, tenant, host or webhook", cut(string(scope), 64))
}

// String names what is held: "tenant acme".
func (h *Hold) String() string {
	if h.Value == "" {
		return string(h.Scope)
	}
	return string(h.Scope) + " " + h.Value
}

// Concerns says whether a hold of more than one webhook holds one with this tenant
// and host. A host without a port stands for all its ports.
func (h *Hold) Concerns(tenant, urlHost string) bool {
	switch h.Scope {
	case HoldAll:
		return true
	case HoldTenant:
		return h.Value == tenant
	case HoldHost:
		name, _, err := net.SplitHostPort(urlHost)
		return strings.EqualFold(h.Value, urlHost) || err == nil && strings.EqualFold(h.Value, name)
	case HoldWebhook: // kept in the webhook's own state
	}
	return false
}

// Hold is the number's hold of this scope and value; nil when there is none.
func (n *NumberState) Hold(scope HoldScope, value string) *Hold {
	if i := n.indexOfHold(scope, value); i >= 0 {
		return &n.Holds[i]
	}
	return nil
}

// AddHold adds one that is not there yet.
func (n *NumberState) AddHold(h Hold) {
	// A new array: earlier copies of the state keep theirs.
	n.Holds = append(slices.Clone(n.Holds), h)
}

// RemoveHold takes the hold of this scope and value away.
func (n *NumberState) RemoveHold(scope HoldScope, value string) {
	if i := n.indexOfHold(scope, value); i >= 0 {
		n.Holds = slices.Delete(slices.Clone(n.Holds), i, i+1)
	}
}

func (n *NumberState) indexOfHold(scope HoldScope, value string) int {
	return slices.IndexFunc(n.Holds, func(h Hold) bool { return h.Scope == scope && h.Value == value })
}
