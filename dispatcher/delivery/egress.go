package delivery

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// Egress is the configuration under the key egress: where requests may go.
//
// Without any entry a request goes to public addresses only. An entry is a
// network (10.1.0.0/16, fd00::/8), an address, or a host name (exact, no
// patterns), each with an optional :port; IPv6 with a port stands in brackets.
// A host name in Allow exempts whatever addresses that name resolves to.
type Egress struct {
	Allow     []string `koanf:"allow" doc:"Exceptions to the rule that requests go to public addresses only: networks (10.1.0.0/16), addresses or exact host names, each with an optional :port; IPv6 with a port stands in brackets ([fd00::/8]:443). A host name exempts every address it resolves to, so name only hosts whose DNS you control."`
	Deny      []string `koanf:"deny" doc:"Networks, addresses or host names that requests never go to, written as in egress.allow; wins over it."`
	AllowHTTP bool     `koanf:"allow_http" doc:"Allow http URLs, whose body, headers and signature travel in clear. For development and closed networks."`
}

// Validate parses every entry; the error names the key and the entry.
func (e Egress) Validate() error {
	_, err := newEgressRules(e)
	return err
}

// Forbids says why the rule lets no request to a URL through, as far as that can
// be told without resolving its host; nil: nothing is known against it. The rule
// is applied to the address of each connection, whatever this has said before.
func (e Egress) Forbids(rawURL string) error {
	rules, err := newEgressRules(e)
	if err != nil {
		return err
	}
	var to Endpoint
	if err := to.setURL(rawURL); err != nil {
		return fmt.Errorf("url: %w", err)
	}
	host, portText, err := net.SplitHostPort(to.address)
	if err != nil {
		return err
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return err
	}
	exempt, err := rules.host(host, uint16(port))
	if err != nil {
		return err
	}
	if strings.EqualFold(strings.TrimSuffix(host, "."), "localhost") {
		host = "127.0.0.1"
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		return rules.address(netip.AddrPortFrom(addr, uint16(port)), exempt)
	}
	return nil
}

// egressRules answer two questions: may this host be asked for, and may this
// address be dialed.
type egressRules struct {
	allow, deny []egressRule
}

func newEgressRules(e Egress) (egressRules, error) {
	var rules egressRules
	for _, list := range []struct {
		key     string
		entries []string
		into    *[]egressRule
	}{{"egress.allow", e.Allow, &rules.allow}, {"egress.deny", e.Deny, &rules.deny}} {
		for _, entry := range list.entries {
			rule, err := parseEgressRule(entry)
			if err != nil {
				return egressRules{}, fmt.Errorf("%s: reading entry %q: %w", list.key, entry, err)
			}
			*list.into = append(*list.into, rule)
		}
	}
	return rules, nil
}

// blockedError says that the egress rule forbids a request. It is shown to the
// webhook's owner, so it doesn't tell which address a name has on our network.
type blockedError struct{ why string }

func (e *blockedError) Error() string { return e.why }

// host checks a name before it is resolved, and says whether it is exempt from
// the rule about public addresses.
func (r egressRules) host(host string, port uint16) (exempt bool, err error) {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if matchHost(r.deny, host, port) {
		return false, &blockedError{"the host is listed in egress.deny"}
	}
	return matchHost(r.allow, host, port), nil
}

// address checks the very address that is about to be dialed.
func (r egressRules) address(at netip.AddrPort, exempt bool) error {
	// An IPv4-mapped address is dialed as IPv4, and netip.Prefix contains no
	// address with a zone: both would slip through every list.
	addr := at.Addr().Unmap().WithZone("")
	if matchAddress(r.deny, addr, at.Port()) {
		return &blockedError{"the address is listed in egress.deny"}
	}
	if exempt || matchAddress(r.allow, addr, at.Port()) {
		return nil
	}
	if why := notPublic(addr); why != "" {
		return &blockedError{"the address is not public (" + why + "); exceptions go into egress.allow"}
	}
	return nil
}
