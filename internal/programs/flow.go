package programs

import (
	"fmt"

	"github.com/hoplag/hoplag/hashing"
)

var protocols = map[uint8]string{1: "icmp", 6: "tcp", 17: "udp", 58: "ipv6-icmp"}

// FlowName formats a 5-tuple, as in "tcp 10.0.0.1:80 10.0.0.2:1234".
func FlowName(t *hashing.Tuple) string {
	protocol, ok := protocols[t.Proto]
	if !ok {
		protocol = fmt.Sprint(t.Proto)
	}
	return fmt.Sprintf("%s %v %v", protocol, t.Source(), t.Destination())
}
