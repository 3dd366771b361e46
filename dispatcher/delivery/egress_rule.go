package delivery

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// egressRule is one entry of a list: a network or a host, at one port or at all.
type egressRule struct {
	prefix netip.Prefix // valid for a network or an address
	host   string       // otherwise, in lower case, without a final dot
	port   uint16       // 0: every port
}

func matchHost(rules []egressRule, host string, port uint16) bool {
	for _, r := range rules {
		if r.host == host && !r.prefix.IsValid() && r.matchPort(port) {
			return true
		}
	}
	return false
}

func matchAddress(rules []egressRule, addr netip.Addr, port uint16) bool {
	for _, r := range rules {
		if r.prefix.IsValid() && r.prefix.Contains(addr) && r.matchPort(port) {
			return true
		}
	}
	return false
}

func (r egressRule) matchPort(port uint16) bool { return r.port == 0 || r.port == port }

// parseEgressRule refuses whatever could be meant in two ways: a list that
// matches something else than its writer thinks is worse than none.
func parseEgressRule(entry string) (egressRule, error) {
	target, port, err := splitEgressPort(entry)
	if err != nil {
		return egressRule{}, err
	}
	if strings.Contains(target, "/") {
		prefix, err := netip.ParsePrefix(target)
		if err != nil {
			return egressRule{}, errors.New("want a network such as 10.1.0.0/16 or fd00::/8")
		}
		if prefix.Addr().Is4In6() {
			return egressRule{}, errors.New("want an IPv4 network in its own form, such as 10.1.0.0/16")
		}
		if prefix != prefix.Masked() {
			return egressRule{}, fmt.Errorf("its address lies inside the network: want %s", prefix.Masked())
		}
		return egressRule{prefix: prefix, port: port}, nil
	}
	if addr, err := netip.ParseAddr(target); err == nil {
		if addr.Zone() != "" {
			return egressRule{}, errors.New("want an address without a zone")
		}
		addr = addr.Unmap()
		return egressRule{prefix: netip.PrefixFrom(addr, addr.BitLen()), port: port}, nil
	}
	host := strings.ToLower(strings.TrimSuffix(target, "."))
	if err := validHostName(host); err != nil {
		return egressRule{}, err
	}
	return egressRule{host: host, port: port}, nil
}

// splitEgressPort takes an optional port off: "host:443", "[fd00::/8]:443".
func splitEgressPort(entry string) (target string, port uint16, err error) {
	var text string
	var found bool
	switch {
	case strings.HasPrefix(entry, "["):
		target, text, found = strings.Cut(entry[1:], "]")
		if !found {
			return "", 0, errors.New(`want a "]" after the address`)
		}
		if text == "" {
			return target, 0, nil
		}
		if text, found = strings.CutPrefix(text, ":"); !found {
			return "", 0, errors.New(`want ":" and a port after the "]"`)
		}
	case strings.Count(entry, ":") > 1: // IPv6, which has no port without brackets
		return entry, 0, nil
	default:
		if target, text, found = strings.Cut(entry, ":"); !found {
			return target, 0, nil
		}
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return "", 0, errors.New("want a port from 1 to 65535")
	}
	return target, uint16(n), nil
}

func validHostName(host string) error {
	if host == "" || len(host) > 253 {
		return errors.New("want a network, an address or a host name")
	}
	if strings.Contains(host, "*") {
		return errors.New("want an exact host name: patterns are not supported")
	}
	labels := strings.Split(host, ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return errors.New("want a network, an address or a host name (names beyond ASCII in their xn-- form)")
		}
	}
	// 10.0.0 and 10.0.0.256 are mistyped addresses, no names.
	if last := labels[len(labels)-1]; strings.Trim(last, "0123456789") == "" {
		return errors.New("want an IPv4 address with four numbers up to 255")
	}
	return nil
}
