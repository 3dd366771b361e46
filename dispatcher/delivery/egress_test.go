package delivery

import (
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestNotPublic(t *testing.T) {
	refused := []string{
		"0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.9.9.9", "169.254.169.254",
		"172.16.0.1", "172.31.255.255", "192.0.0.8", "192.0.2.1", "192.168.1.1", "198.18.0.1", "198.19.255.255", "198.51.100.7",
		"203.0.113.9", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
		"::", "::1", "::7f00:1", "64:ff9b::a00:1", "64:ff9b:1::1", "100::1", "2001::1", "2001:db8::1", "2002:a00:1::1", "3fff::1",
		"4000::1", "5f00::1", "fc00::1", "fdff::1", "fe80::1", "fec0::1", "ff02::1",
	}
	allowed := []string{
		"1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.1", "172.15.255.255",
		"172.32.0.0", "192.0.1.0", "192.167.255.255", "198.17.255.255", "198.20.0.0", "223.255.255.255",
		"2000::1", "2001:200::1", "2003::1", "2606:4700:4700::1111", "2a00:1450::1", "3ffe:ffff::1",
	}
	var none egressRules
	for _, text := range refused {
		addr := netip.MustParseAddr(text)
		if err := none.address(netip.AddrPortFrom(addr, 443), false); err == nil {
			t.Errorf("%s is allowed", text)
		}
		if addr.Is4() {
			mapped := netip.AddrFrom16(addr.As16())
			if err := none.address(netip.AddrPortFrom(mapped, 443), false); err == nil {
				t.Errorf("%s is allowed", mapped)
			}
		} else if err := none.address(netip.AddrPortFrom(addr.WithZone("eth0"), 443), false); err == nil {
			t.Errorf("%s is allowed with a zone", text)
		}
	}
	for _, text := range allowed {
		if err := none.address(netip.MustParseAddrPort(portOf(text)), false); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func portOf(addr string) string { return joinHostPort(addr, "443") }

func TestDenyWinsOverAllow(t *testing.T) {
	rules, err := newEgressRules(Egress{
		Allow: []string{"10.0.0.0/8", "[fd00::/8]:8443", "127.0.0.1:9000", "internal.example", "metrics.example:9443"},
		Deny:  []string{"10.9.0.0/16", "8.8.8.8", "evil.example", "odd.example:8080"},
	})
	if err != nil {
		t.Fatal(err)
	}
	addresses := map[string]bool{
		"10.1.2.3:443": true, "[::ffff:10.1.2.3]:443": true, "10.9.2.3:443": false, "[::ffff:10.9.2.3]:443": false, "8.8.8.8:443": false,
		"[fd00::1]:8443": true, "[fd00::1%eth0]:8443": true, "[fd00::1]:443": false, "127.0.0.1:9000": true, "127.0.0.1:9001": false, "1.1.1.1:443": true,
	}
	for text, want := range addresses {
		if err := rules.address(netip.MustParseAddrPort(text), false); (err == nil) != want {
			t.Errorf("%s: %v, want allowed %v", text, err, want)
		}
	}
	if rules.address(netip.MustParseAddrPort("10.9.2.3:443"), true) == nil {
		t.Error("an exempt host reaches a denied address")
	}
	if rules.address(netip.MustParseAddrPort("192.168.1.1:443"), true) != nil {
		t.Error("an exempt host does not reach a private address")
	}
	hosts := []struct {
		host            string
		port            uint16
		exempt, blocked bool
	}{
		{"internal.example", 443, true, false},
		{"INTERNAL.example.", 1, true, false},
		{"x.internal.example", 443, false, false},
		{"metrics.example", 9443, true, false},
		{"metrics.example", 443, false, false},
		{"Evil.Example", 443, false, true},
		{"odd.example", 8080, false, true},
		{"odd.example", 443, false, false},
	}
	for _, h := range hosts {
		exempt, err := rules.host(h.host, h.port)
		if exempt != h.exempt || (err != nil) != h.blocked {
			t.Errorf("%s:%d: exempt %v, %v", h.host, h.port, exempt, err)
		}
	}
}

func TestEgressEntriesAreRefused(t *testing.T) {
	for entry, want := range map[string]string{
		"":                       "want a network",
		"10.0.0.0/33":            "want a network",
		"10.0.0.1/8":             "want 10.0.0.0/8",
		"fd00::1/8":              "want fd00::/8",
		"::ffff:10.0.0.0/104":    "own form",
		"fd00::/8:443":           "want a network",
		"[fd00::/8":              `"]"`,
		"[::1]443":               `":" and a port`,
		"[::1]:":                 "port",
		"host:0":                 "port",
		"host:65536":             "port",
		"host:https":             "port",
		"*.example":              "patterns",
		"https://host.example/":  "port",
		"10.0.0":                 "four numbers",
		"10.0.0.256":             "four numbers",
		"münchen.example":        "xn--",
		"host..example":          "host name",
		" host.example":          "host name",
		"fe80::1%eth0":           "zone",
		strings.Repeat("a", 254): "host name",
	} {
		for key, egress := range map[string]Egress{"egress.allow": {Allow: []string{"::1", entry}}, "egress.deny": {Deny: []string{entry}}} {
			err := egress.Validate()
			if err == nil {
				t.Errorf("%s %q is accepted", key, entry)
				continue
			}
			if text := err.Error(); !strings.Contains(text, key) || !strings.Contains(text, entry) || !strings.Contains(text, want) {
				t.Errorf("%s %q: %s, want %q", key, entry, text, want)
			}
		}
	}
}

// An entry allows the addresses of its network at its port and no others.
func TestEgressEntryProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "address")
		if rapid.Bool().Draw(t, "v6") {
			raw = append(raw, rapid.SliceOfN(rapid.Byte(), 12, 12).Draw(t, "rest")...)
		}
		addr, _ := netip.AddrFromSlice(raw)
		addr = addr.Unmap()
		bits := rapid.IntRange(0, addr.BitLen()).Draw(t, "bits")
		prefix := netip.PrefixFrom(addr, bits).Masked()
		rules, err := newEgressRules(Egress{Allow: []string{"[" + prefix.String() + "]:8443"}})
		if err != nil {
			t.Fatal(err)
		}
		if err := rules.address(netip.AddrPortFrom(addr, 8443), false); err != nil {
			t.Fatalf("%s at %s: %v", prefix, addr, err)
		}
		if got, want := rules.address(netip.AddrPortFrom(addr, 443), false) == nil, notPublic(addr) == ""; got != want {
			t.Fatalf("%s at another port: allowed %v, want %v", addr, got, want)
		}
		if rules, err = newEgressRules(Egress{Deny: []string{prefix.String()}}); err != nil {
			t.Fatal(err)
		}
		if rules.address(netip.AddrPortFrom(addr, 443), true) == nil {
			t.Fatalf("%s is denied, %s is allowed", prefix, addr)
		}
	})
}
