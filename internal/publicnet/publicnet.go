// Package publicnet tells addresses of the internet from those of this machine,
// its network or a cloud's services, and keeps a dialer from the latter. What a
// name stands for is judged by the address that is connected to, each time: a
// name may stand for something else a moment later.
package publicnet

import (
	"errors"
	"net/netip"
	"syscall"
)

// ErrPrivate is what [Control] refuses with. It may be shown: it does not say
// what the name stands for.
var ErrPrivate = errors.New("the address is not one of the internet")

// Control is a [net.Dialer.Control] that refuses addresses that are not of the
// internet.
func Control(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil || !Is(to.Addr()) {
		return ErrPrivate
	}
	return nil
}

// notPublic are the networks that the internet does not route, beyond those
// that net/netip knows, and those through which another address is reached.
var notPublic = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"),    // of providers; metadata of one cloud
	netip.MustParsePrefix("168.63.129.16/32"), // metadata of another
	netip.MustParsePrefix("192.0.0.0/24"),     // metadata of a third
	netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("192.88.99.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"),
	netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("64:ff9b::/96"), // IPv4 behind a translator
	netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("100::/64"),
	netip.MustParsePrefix("2001::/23"),
	netip.MustParsePrefix("2001:db8::/32"),
	netip.MustParsePrefix("2002::/16"), // IPv4 in a tunnel
	netip.MustParsePrefix("3fff::/20"),
	netip.MustParsePrefix("fec0::/10"),
	netip.MustParsePrefix("::/96"), // IPv4 in an old form
}

// Is reports whether an address is one of the internet: not of this machine,
// its network or a cloud's services.
func Is(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if !a.IsValid() || !a.IsGlobalUnicast() || a.IsPrivate() {
		return false
	}
	for _, network := range notPublic {
		if network.Contains(a) {
			return false
		}
	}
	return true
}
