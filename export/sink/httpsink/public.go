package httpsink

import (
	"context"
	"fmt"
	"net/netip"
	"syscall"
)

// A PrivateError says that a receiver's address is none of the public internet,
// and that only such are allowed.
type PrivateError struct{ Addr netip.Addr }

func (e *PrivateError) Error() string {
	return fmt.Sprintf("its address %v is not one of the public internet: set allow-private to send there all the same", e.Addr)
}

// onlyPublic refuses to connect to what is not public. It is asked for the address
// that is about to be dialled, behind all look-ups of names: a name that changes
// its address in between does not pass.
func onlyPublic(_ context.Context, _, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if !public(at.Addr()) {
		return &PrivateError{at.Addr()}
	}
	return nil
}

// publicHost refuses a host that is an address, and not public. Names are looked
// up later.
func publicHost(host string) error {
	addr, err := netip.ParseAddr(host)
	if err != nil || public(addr) {
		return nil
	}
	return &PrivateError{addr}
}

// closed are addresses that are not of the public internet, beside those that
// netip knows. Source: IANA's registries of special-purpose addresses, and the
// manuals of clouds.
var closed = prefixes(
	"0.0.0.0/8",                                         // this network, RFC 791
	"100.64.0.0/10",                                     // shared, RFC 6598; metadata of Alibaba Cloud
	"192.0.0.0/24",                                      // protocol assignments, RFC 6890; metadata of Oracle Cloud
	"192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", // documentation, RFC 5737
	"198.18.0.0/15",              // benchmarks, RFC 2544
	"240.0.0.0/4",                // reserved, RFC 1112
	"168.63.129.16/32",           // the platform of Azure
	"2001::/23",                  // protocol assignments, Teredo among them, RFC 2928
	"2001:db8::/32", "3fff::/20", // documentation, RFC 3849 and 9637
)

// unicast is all of IPv6 that is given out so far (RFC 4291, section 2.4).
var unicast = netip.MustParsePrefix("2000::/3")

// nat64 and sixToFour are IPv6 addresses that have an IPv4 one inside: RFC 6052
// in the last four bytes, RFC 3056 behind the first two.
var (
	nat64     = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour = netip.MustParsePrefix("2002::/16")
)

func prefixes(texts ...string) (all []netip.Prefix) {
	for _, s := range texts {
		all = append(all, netip.MustParsePrefix(s))
	}
	return all
}

// public reports whether an address is one of the public internet. An IPv4
// address that is written as, or inside, an IPv6 one is judged as what it is.
func public(a netip.Addr) bool {
	a = a.WithZone("").Unmap()
	switch b := a.AsSlice(); {
	case nat64.Contains(a):
		return public(netip.AddrFrom4([4]byte(b[12:16])))
	case sixToFour.Contains(a):
		return public(netip.AddrFrom4([4]byte(b[2:6])))
	}
	if !a.IsGlobalUnicast() || a.IsPrivate() || a.Is6() && !unicast.Contains(a) {
		return false
	}
	for _, p := range closed {
		if p.Contains(a) {
			return false
		}
	}
	return true
}
