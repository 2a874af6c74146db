package hashing_test

import (
	"strings"
	"testing"

	"github.com/hoplag/hoplag/hashing"
)

// The frames that the documentation says fit a snap length do, with a tag or
// without: the digest is that of the whole frame.
func TestFrameSnapLength(t *testing.T) {
	payload := strings.Repeat(data, 16)
	tests := []struct {
		name   string
		packet string
		snap   int
	}{
		{"IPv6, TCP with timestamps", "86dd 60000000 00a0 06 40 20010db8000000000000000000000001 20010db8000000000000000000000002 " +
			"03e8 01bb 01020304 05060708 8018 2000 cafe 0000 0101080a 00000001 00000002 " + payload, 96},
		{"IPv6, UDP", "86dd 60000000 0088 11 40 20010db8000000000000000000000001 20010db8000000000000000000000002 0035 1000 0088 0000 " +
			payload, 96},
		{"IPv4, UDP", "0800 45 00 009c 0000 0000 40 11 0000 0a000001 0a000002 0035 1000 0088 0000 " + payload, 64},
		{"IPv4, TCP", "0800 45 00 00a8 0000 0000 40 06 0000 0a000001 0a000002 " + tcp + payload, 64},
	}
	for _, test := range tests {
		whole := mustParse(t, hashing.LinkEthernet, unhex(macs+test.packet))
		for _, tag := range []string{"", "8100 0001 "} {
			frame := unhex(macs + tag + test.packet)[:test.snap]
			if got := mustParse(t, hashing.LinkEthernet, frame); got != whole {
				t.Errorf("%s, tag %q, snap length %d:\n got %+v\nwant %+v", test.name, tag, test.snap, got, whole)
			}
		}
	}
}
