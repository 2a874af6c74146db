package hashing_test

import (
	"strings"
	"testing"

	"github.com/hoplag/hoplag/hashing"
)

// Each cause in SPEC.md's table, as a packet before and after it.
func TestFrameCauses(t *testing.T) {
	const (
		udp   = "0035 1000 0020 beef " + data + data + data // 32 bytes
		hosts = "20010db8000000000000000000000001 20010db8000000000000000000000002 "
		relay = "20010db8000000000000000000000001 20010db800000000000000000000000a "
		route = "11 04 04 00 01 00 0000 20010db8000000000000000000000002 20010db800000000000000000000000a "
		ip4   = "45 00 0034 1234 4000 40 11 0000 0a000001 0a000002 " + udp
		ip6   = "60000000 0020 11 40 " + hosts + udp
		syn   = "03e8 01bb 01020304 00000000 6002 2000 cafe 0000 "
	)
	tests := []struct {
		cause         string
		before, after string
		changes       bool
	}{
		{"TTL, DSCP, ECN, header checksum, DF", ip4, "45 ff 0034 1234 0000 3f 11 abcd 0a000001 0a000002 " + udp, false},
		{"hop limit, flow label, traffic class", ip6, "6fffffff 0020 11 3f " + hosts + udp, false},
		{"IPv4 options rewritten",
			"46 00 0038 1234 4000 40 11 0000 0a000001 0a000002 07040400 " + udp,
			"46 00 0038 1234 4000 40 11 0000 0a000001 0a000002 07040800 " + udp, false},
		{"hop-by-hop options removed", "60000000 0028 00 40 " + hosts + "11 00 010400000000 " + udp, ip6, false},
		{"destination options added", ip6, "60000000 0028 3c 40 " + hosts + "11 00 010400000000 " + udp, false},
		{"AH in IPv6", ip6, "60000000 0038 33 40 " + hosts + "11 04 0000 00000001 00000002 00000003 00000004 00000005 " + udp, false},
		{"segment visited",
			"60000000 0048 2b 40 " + relay + strings.Replace(route, "04 00", "04 01", 1) + udp,
			"60000000 0048 2b 40 " + hosts + route + udp, false},
		{"segment route popped before its end (PSP)",
			"60000000 0048 2b 40 " + relay + strings.Replace(route, "04 00", "04 01", 1) + udp, ip6, false},
		{"segment route popped at its end", "60000000 0048 2b 40 " + hosts + route + udp, ip6, false},
		{"a tunnel begins", ip4, outerUDP(4789, 22+52) + "08000000 00001200 " + macs + "0800 " + ip4, false},

		{"address translated", ip4, strings.Replace(ip4, "0a000001", "c6336401", 1), true},
		{"port translated", ip4, strings.Replace(ip4, "0035 1000", "0036 1000", 1), true},
		{"sequence number shifted", tcp4 + tcp + data, tcp4 + strings.Replace(tcp, "01020304", "01020305", 1) + data, true},
		{"MSS clamped",
			"45 00 002c 0000 4000 40 06 0000 0a000001 0a000002 " + syn + "020405b4",
			"45 00 002c 0000 4000 40 06 0000 0a000001 0a000002 " + strings.Replace(syn, "cafe", "cb52", 1) + "02040560", true},
		{"IPv4 options added", ip4, "46 00 0038 1234 4000 40 11 0000 0a000001 0a000002 07040400 " + udp, true},
		{"IPv4 source route", "46 00 0038 1234 4000 40 11 0000 0a000001 0a000002 83040400 " + udp,
			"46 00 0038 1234 4000 40 11 0000 0a000001 0a000003 83040400 " + udp, true},
		{"fragmented", ip4, "45 00 002c 1234 2000 40 11 0000 0a000001 0a000002 0035 1000 0020 beef " + data + data, true},
		{"IPv6 fragmented", ip6, "60000000 0020 2c 40 " + hosts + "11 00 0001 00000007 0035 1000 0020 beef " + data + data, true},
		{"segments merged", tcp4 + tcp + data, strings.Replace(tcp4, "0030", "0038", 1) + tcp + data + data, true},
		{"not summed yet", tcp4 + tcp + data, tcp4 + strings.Replace(tcp, "cafe", "1234", 1) + data, true},
		{"ESP", ip4, "45 00 0044 1234 4000 40 32 0000 0a000001 0a000002 00000001 00000001 " + udp + data, true},
		{"AH in IPv4", ip4, "45 00 0050 1234 4000 40 33 0000 0a000001 0a000002 11 04 0000 00000001 00000002 00000003 00000004 00000005 " +
			udp, true},
		{"a tunnel of an unknown port", ip4, outerUDP(4799, 22+52) + "08000000 00001200 " + macs + "0800 " + ip4, true},
		{"cut within the bytes", ip4, ip4[:strings.Index(ip4, "beef")+4], true},
	}
	for _, test := range tests {
		before := mustParse(t, hashing.LinkRaw, unhex(test.before))
		after := mustParse(t, hashing.LinkRaw, unhex(test.after))
		if changes := before.Digest(1) != after.Digest(1); changes != test.changes {
			t.Errorf("%s: changes the identity: %v, want %v", test.cause, changes, test.changes)
		}
		if !test.changes && (before.Cut || after.Cut || before.Tuple != after.Tuple) {
			t.Errorf("%s: %+v and %+v", test.cause, before, after)
		}
	}
}

// A checksum that may not be filled in yet can be left out at both points, if the protocol has one.
func TestFrameClearChecksum(t *testing.T) {
	for _, test := range []struct {
		packet string
		at     int // of the checksum; 0: none
		size   int
	}{
		{tcp4 + tcp + data, 36, 2},
		{"45 00 0028 0000 0000 40 11 0000 0a000001 0a000002 0035 1000 0014 beef " + data + "01020304", 26, 2},
		{"45 00 0028 0000 0000 40 84 0000 0a000001 0a000002 0035 1000 00000001 deadbeef " + data, 28, 4},
		{"45 00 0028 0000 2000 40 11 0000 0a000001 0a000002 0035 1000 0014 beef " + data + "01020304", 26, 2},
		{"45 00 0028 0000 2001 40 11 0000 0a000001 0a000002 0035 1000 0014 beef " + data + "01020304", 0, 0},
		{"45 00 0028 0000 0000 40 01 0000 0a000001 0a000002 0035 1000 0014 beef " + data + "01020304", 0, 0},
	} {
		packet := unhex(test.packet)
		before := mustParse(t, hashing.LinkRaw, packet)
		clear(packet[test.at : test.at+test.size])
		want := mustParse(t, hashing.LinkRaw, packet)
		before.ClearChecksum()
		if before != want {
			t.Errorf("%s:\n got %+v\nwant %+v", test.packet, before, want)
		}
	}
}
