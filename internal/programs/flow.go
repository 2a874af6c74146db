package programs

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/hoplag/hoplag/hashing"
)

var protocols = map[string]uint8{"icmp": 1, "tcp": 6, "udp": 17, "ipv6-icmp": 58}

// FlowName formats a 5-tuple as [ParseFlow] takes it.
func FlowName(t *hashing.Tuple) string {
	protocol := strconv.Itoa(int(t.Proto))
	for word, number := range protocols {
		if number == t.Proto {
			protocol = word
		}
	}
	return fmt.Sprintf("%s %v %v", protocol, t.Source(), t.Destination())
}

// ParseFlow parses a 5-tuple, as in "tcp 10.0.0.1:80 10.0.0.2:1234".
func ParseFlow(s string) (hashing.Tuple, error) {
	fields := strings.Fields(s)
	if len(fields) != 3 {
		return hashing.Tuple{}, fmt.Errorf("flow %q: want a protocol, a source and a destination, as in \"tcp 10.0.0.1:80 10.0.0.2:1234\"", s)
	}
	protocol, ok := protocols[fields[0]]
	if !ok {
		number, err := strconv.ParseUint(fields[0], 10, 8)
		if err != nil {
			return hashing.Tuple{}, fmt.Errorf("flow %q: the protocol is tcp, udp, icmp, ipv6-icmp or a number", s)
		}
		protocol = uint8(number)
	}
	src, err := netip.ParseAddrPort(fields[1])
	dst, other := netip.ParseAddrPort(fields[2])
	if err := errors.Join(err, other); err != nil {
		return hashing.Tuple{}, fmt.Errorf("flow %q: %w", s, err)
	}
	return hashing.MakeTuple(protocol, src, dst), nil
}
