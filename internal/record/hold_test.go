package record

import (
	"strings"
	"testing"
)

func TestValidHold(t *testing.T) {
	for _, c := range []struct {
		scope HoldScope
		value string
		want  string // in the error; "" for none
	}{
		{HoldAll, "", ""},
		{HoldAll, "x", "takes no value"},
		{HoldTenant, "acme", ""},
		{HoldTenant, "", "needs a value, the tenant"},
		{HoldHost, "crm.example:8443", ""},
		{HoldHost, "", "needs a value, the host"},
		{HoldHost, strings.Repeat("h", 257), "up to 256 bytes"},
		{HoldWebhook, "crm", ""},
		{HoldWebhook, "#number", "webhook id"},
		{"", "", `scope "" is unknown`},
		{"planet", "earth", "want all, tenant, host or webhook"},
	} {
		err := ValidHold(c.scope, c.value)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %q: got %v, want %q", c.scope, c.value, err, c.want)
		}
	}
}

func TestHoldConcerns(t *testing.T) {
	for _, c := range []struct {
		hold Hold
		want bool
	}{
		{Hold{Scope: HoldAll}, true},
		{Hold{Scope: HoldTenant, Value: "acme"}, true},
		{Hold{Scope: HoldTenant, Value: "Acme"}, false},
		{Hold{Scope: HoldHost, Value: "crm.example:8443"}, true},
		{Hold{Scope: HoldHost, Value: "CRM.example"}, true},
		{Hold{Scope: HoldHost, Value: "crm.example:443"}, false},
		{Hold{Scope: HoldHost, Value: "example"}, false},
		{Hold{Scope: HoldWebhook, Value: "crm"}, false},
	} {
		if got := c.hold.Concerns("acme", "crm.example:8443"); got != c.want {
			t.Errorf("%v: got %v", &c.hold, got)
		}
	}
	if h := (Hold{Scope: HoldHost, Value: "crm.example"}); !h.Concerns("", "crm.example") {
		t.Error("a host without a port does not hold itself")
	}
}

func TestNumberHoldsAreReplacedNotShared(t *testing.T) {
	var n NumberState
	n.AddHold(Hold{Scope: HoldTenant, Value: "a"})
	n.AddHold(Hold{Scope: HoldTenant, Value: "b"})
	before := n
	n.RemoveHold(HoldTenant, "a")
	if n.Hold(HoldTenant, "a") != nil || n.Hold(HoldTenant, "b") == nil || n.Hold(HoldHost, "b") != nil {
		t.Errorf("got %+v", n.Holds)
	}
	if before.Hold(HoldTenant, "a") == nil || len(before.Holds) != 2 {
		t.Errorf("an earlier copy changed: %+v", before.Holds)
	}
}
