package delivery

import "net/netip"

// notPublic says which kind of non-public address addr is, "" for a public one.
// addr is unmapped and has no zone.
//
// The lists are those entries of the IANA special-purpose address registries
// (RFC 6890 and its updates) that are not globally reachable. IPv6 is the other
// way round, because most of it is not handed out: what lies outside 2000::/3
// (RFC 4291, 2.4) is refused as a whole, loopback, link-local, unique local,
// multicast and the NAT64 prefixes included.
func notPublic(addr netip.Addr) string {
	switch {
	case addr.IsUnspecified():
		return "unspecified"
	case addr.IsLoopback():
		return "loopback"
	case addr.IsPrivate():
		return "private"
	case addr.IsLinkLocalUnicast():
		return "link-local"
	case addr.IsMulticast():
		return "multicast"
	case addr.Is6() && !globalUnicast6.Contains(addr):
		for _, s := range special6 {
			if s.prefix.Contains(addr) {
				return s.name
			}
		}
		return "not global unicast"
	}
	list := special4
	if addr.Is6() {
		list = special6
	}
	for _, s := range list {
		if s.prefix.Contains(addr) {
			return s.name
		}
	}
	return ""
}

type specialNetwork struct {
	prefix netip.Prefix
	name   string
}

var globalUnicast6 = netip.MustParsePrefix("2000::/3")

var special4 = []specialNetwork{
	{netip.MustParsePrefix("0.0.0.0/8"), "this network"},
	{netip.MustParsePrefix("100.64.0.0/10"), "carrier-grade NAT"},
	{netip.MustParsePrefix("192.0.0.0/24"), "protocol assignments"},
	{netip.MustParsePrefix("192.0.2.0/24"), "documentation"},
	{netip.MustParsePrefix("192.88.99.0/24"), "6to4 relay"},
	{netip.MustParsePrefix("198.18.0.0/15"), "benchmarking"},
	{netip.MustParsePrefix("198.51.100.0/24"), "documentation"},
	{netip.MustParsePrefix("203.0.113.0/24"), "documentation"},
	{netip.MustParsePrefix("255.255.255.255/32"), "broadcast"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved"},
}

// Those that carry an IPv4 address inside (NAT64, 6to4, Teredo) would reach
// private networks by another name.
var special6 = []specialNetwork{
	{netip.MustParsePrefix("64:ff9b::/96"), "NAT64"},
	{netip.MustParsePrefix("64:ff9b:1::/48"), "NAT64"},
	{netip.MustParsePrefix("100::/64"), "discard-only"},
	{netip.MustParsePrefix("2001::/32"), "Teredo"},
	{netip.MustParsePrefix("2001::/23"), "protocol assignments"},
	{netip.MustParsePrefix("2001:db8::/32"), "documentation"},
	{netip.MustParsePrefix("2002::/16"), "6to4"},
	{netip.MustParsePrefix("3fff::/20"), "documentation"},
}
