package quota

import (
	"net/netip"
	"strings"
)

// ClientAddress returns the address of the client. Peer is the connection's
// remote address ("192.0.2.1:4711"); forwarded are the X-Forwarded-For
// headers in order. As long as the nearest address is a trusted proxy's, the
// one it says it forwarded for is taken instead, from right to left, so that
// nothing a client wrote itself is believed. The result is invalid if peer is
// not an address.
func ClientAddress(peer string, forwarded []string, trusted []netip.Prefix) netip.Addr {
	at, err := netip.ParseAddrPort(peer)
	if err != nil {
		return netip.Addr{}
	}
	nearest := at.Addr().Unmap()
	if len(trusted) == 0 || len(forwarded) == 0 {
		return nearest
	}
	hops := strings.Split(strings.Join(forwarded, ","), ",")
	for i := len(hops) - 1; i >= 0 && isTrusted(nearest, trusted); i-- {
		hop, ok := parseHop(strings.TrimSpace(hops[i]))
		if !ok {
			break
		}
		nearest = hop
	}
	return nearest
}

func isTrusted(a netip.Addr, trusted []netip.Prefix) bool {
	a = a.WithZone("")
	for _, p := range trusted {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// parseHop reads one element of X-Forwarded-For: an address, with or without
// a port.
func parseHop(s string) (netip.Addr, bool) {
	if a, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		return a.Unmap(), true
	}
	at, err := netip.ParseAddrPort(s)
	return at.Addr().Unmap(), err == nil
}
