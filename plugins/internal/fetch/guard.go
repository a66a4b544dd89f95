package fetch

import (
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"code.dny.dev/ssrf"
)

// RefusedError says that the guard did not allow an address. It is decided on the address that is about to be dialled, after
// DNS, so that no name and no spelling of an address gets around it.
type RefusedError struct {
	// Address is the refused host and port.
	Address string
}

// Error names the address and the option that would allow it.
func (e *RefusedError) Error() string {
	host, _, err := net.SplitHostPort(e.Address)
	if err != nil {
		host = e.Address
	}
	return fmt.Sprintf("the address %s is not public; list its network in the option allow_networks (for example %q) to allow it",
		e.Address, cidrOf(host))
}

// cidrOf gives the smallest network that holds host, as an example for a person.
func cidrOf(host string) string {
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	addr = addr.WithZone("")
	return netip.PrefixFrom(addr, addr.BitLen()).String()
}

// guard decides about addresses at dial time.
type guard struct {
	guardian *ssrf.Guardian
}

// newGuard allows public unicast and, besides, the given networks in CIDR notation. A single address counts as its own network.
func newGuard(networks []string) (*guard, error) {
	var v4, v6 []netip.Prefix
	for _, text := range networks {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			addr, addrErr := netip.ParseAddr(text)
			if addrErr != nil {
				return nil, fmt.Errorf("allow_networks: %q is not a network; write it like \"10.0.0.0/8\" or \"fd00::/8\"", text)
			}
			prefix = netip.PrefixFrom(addr, addr.BitLen())
		}
		if prefix.Addr().Is4() {
			v4 = append(v4, prefix)
		} else {
			v6 = append(v6, prefix)
		}
	}
	return &guard{guardian: ssrf.New(
		ssrf.WithAnyPort(),
		ssrf.WithAllowedV4Prefixes(v4...),
		ssrf.WithAllowedV6Prefixes(v6...),
	)}, nil
}

// control has the signature of net.Dialer.Control.
func (g *guard) control(network, address string, conn syscall.RawConn) error {
	target := address
	if ap, err := netip.ParseAddrPort(address); err == nil && (ap.Addr().Zone() != "" || ap.Addr().Is4In6()) {
		// A zone hides an address from prefix tests, and a mapped one is an IPv4 address in other clothes.
		target = netip.AddrPortFrom(ap.Addr().WithZone("").Unmap(), ap.Port()).String()
	}
	if err := g.guardian.Safe(network, target, conn); err != nil {
		return &RefusedError{Address: address}
	}
	return nil
}
