package hashing_test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hoplag/hoplag/hashing"
)

// The frames of these tests are written as hex, spaces between fields.
const (
	macs = "020000000001 020000000002 "

	tcp4 = "45 00 0030 1234 4000 40 06 beef 0a000001 0a000002 "                                     // 48 bytes, DF
	tcp6 = "60012345 001c 06 40 20010db8000000000000000000000001 20010db8000000000000000000000002 " // 28 bytes after it
	tcp  = "03e8 01bb 01020304 05060708 5018 2000 cafe 0000 "                                       // 1000 → 443
	data = "6869206a6b6c6d6e "                                                                      // 8 bytes
)

func unhex(s string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		panic(err)
	}
	return b
}

func mustParse(t *testing.T, link hashing.LinkType, frame []byte) hashing.Frame {
	t.Helper()
	var f hashing.Frame
	if err := f.Parse(link, frame); err != nil {
		t.Fatalf("link %d, frame %x: %v", link, frame, err)
	}
	return f
}

// v4 and v6 are plain packets.
const v4, v6 = tcp4 + tcp + data, tcp6 + tcp + data

// encapsulations are what may be before a packet.
var encapsulations = []struct {
	name   string
	link   hashing.LinkType
	before string
	packet string
}{
	{"Ethernet IPv4", hashing.LinkEthernet, macs + "0800 ", v4},
	{"Ethernet IPv6", hashing.LinkEthernet, macs + "86dd ", v6},
	{"802.1Q", hashing.LinkEthernet, macs + "8100 6064 0800 ", v4},
	{"802.1Q IPv6", hashing.LinkEthernet, macs + "8100 6064 86dd ", v6},
	{"802.1ad over 802.1Q", hashing.LinkEthernet, macs + "88a8 0001 8100 0002 0800 ", v4},
	{"QinQ 0x9100", hashing.LinkEthernet, macs + "9100 0001 8100 0002 86dd ", v6},
	{"QinQ 0x9200", hashing.LinkEthernet, macs + "9200 0001 9200 0002 8100 0003 0800 ", v4},
	{"MPLS", hashing.LinkEthernet, macs + "8847 0001f1ff ", v4},
	{"MPLS stack IPv6", hashing.LinkEthernet, macs + "8847 00010040 00000640 000021ff ", v6},
	{"MPLS multicast", hashing.LinkEthernet, macs + "8848 00010040 000021ff ", v4},
	{"VLAN and MPLS", hashing.LinkEthernet, macs + "8100 0064 8847 000021ff ", v4},
	{"LLC and SNAP", hashing.LinkEthernet, macs + "0038 aaaa03 000000 0800 ", v4},
	{"LLC and SNAP, the greatest length", hashing.LinkEthernet, macs + "05dc aaaa03 000000 0800 ", v4},
	{"VLAN, LLC and SNAP", hashing.LinkEthernet, macs + "8100 0064 003c aaaa03 000000 86dd ", v6},
	{"PPPoE IPv4", hashing.LinkEthernet, macs + "8864 11 00 0001 0032 0021 ", v4},
	{"PPPoE IPv6", hashing.LinkEthernet, macs + "8100 0007 8864 11 00 0001 0046 0057 ", v6},
	{"PPPoE MPLS", hashing.LinkEthernet, macs + "8864 11 00 0001 0036 0281 000021ff ", v4},
	{"cooked IPv4", hashing.LinkCooked, "0000 0001 0006 0200000000010000 0800 ", v4},
	{"cooked IPv6", hashing.LinkCooked, "0004 0304 0006 0000000000000000 86dd ", v6},
	{"cooked VLAN", hashing.LinkCooked, "0000 0001 0006 0200000000010000 8100 0064 0800 ", v4},
	{"cooked LLC", hashing.LinkCooked, "0000 0001 0006 0200000000010000 0004 aaaa03 000000 0800 ", v4},
	{"cooked v2 IPv4", hashing.LinkCooked2, "0800 0000 00000002 0001 00 06 0200000000010000 ", v4},
	{"cooked v2 MPLS", hashing.LinkCooked2, "8847 0000 00000002 0001 00 06 0200000000010000 000021ff ", v6},
	{"raw IPv4", hashing.LinkRaw, "", v4},
	{"raw IPv6", hashing.LinkRaw, "", v6},
	{"IPv4 link", hashing.LinkIPv4, "", v4},
	{"IPv6 link", hashing.LinkIPv6, "", v6},
	{"null, little-endian", hashing.LinkNull, "02000000 ", v4},
	{"null, big-endian", hashing.LinkNull, "00000002 ", v4},
	{"null, Linux", hashing.LinkNull, "0a000000 ", v6},
	{"null, Windows", hashing.LinkNull, "17000000 ", v6},
	{"null, NetBSD", hashing.LinkNull, "18000000 ", v6},
	{"null, FreeBSD", hashing.LinkNull, "1c000000 ", v6},
	{"null, Darwin", hashing.LinkNull, "0000001e ", v6},
	{"loop", hashing.LinkLoop, "00000002 ", v4},
	{"loop IPv6", hashing.LinkLoop, "00000018 ", v6},
	{"802.1ah", hashing.LinkEthernet, macs + "88a8 0001 88e7 00123456 " + macs + "8100 0002 0800 ", v4},
	{"MACsec", hashing.LinkEthernet, macs + "88e5 00 00 00000001 0800 ", v4},
	{"MACsec with a channel", hashing.LinkEthernet, macs + "88e5 20 00 00000001 0200000000010001 86dd ", v6},
	{"VN-tag", hashing.LinkEthernet, macs + "8926 80010002 8100 0001 0800 ", v4},
	{"FabricPath", hashing.LinkEthernet, macs + "8903 0060 " + macs + "0800 ", v4},
	{"NSH", hashing.LinkEthernet, macs + "894f 0fc6 01 01 00000101 00000001 00000002 00000003 00000004 ", v4},
	{"NSH of Ethernet", hashing.LinkEthernet, macs + "894f 0fc2 02 03 00000101 " + macs + "86dd ", v6},
	{"pseudowire", hashing.LinkEthernet, macs + "8847 00010040 000021ff 00000000 " + macs + "0800 ", v4},
	{"PPPoE, short", hashing.LinkEthernet, macs + "8864 11 00 0001 0032 21 ", v4},
	{"PPP", hashing.LinkPPP, "ff03 0021 ", v4},
	{"PPP, short", hashing.LinkPPP, "57 ", v6},
	{"HDLC", hashing.LinkHDLC, "0f00 8847 000021ff ", v4},
	{"InfiniBand", hashing.LinkIPoIB, strings.Repeat("00", 40) + "0800 0000 ", v4},
	{"Broadcom tag", hashing.LinkBroadcom, macs + "00000001 8100 0001 0800 ", v4},
	{"Broadcom tag in front", hashing.LinkBroadcom0, "00000001 " + macs + "0800 ", v4},
	{"Marvell tag", hashing.LinkDSA, macs + "c0000001 86dd ", v6},
	{"Marvell tag, extended", hashing.LinkEDSA, macs + "dada 0000 c0000001 0800 ", v4},
}

// Whatever carries a packet, the Frame is the same.
func TestFrameEncapsulations(t *testing.T) {
	for _, test := range encapsulations {
		t.Run(test.name, func(t *testing.T) {
			want := mustParse(t, hashing.LinkRaw, unhex(test.packet))
			wantTuple := mustTuple(6, "10.0.0.1:1000", "10.0.0.2:443")
			if test.packet == v6 {
				wantTuple = mustTuple(6, "[2001:db8::1]:1000", "[2001:db8::2]:443")
			}
			if want.Tuple != wantTuple || want.Length != len(unhex(test.packet)) || want.Fragment || want.Cut {
				t.Errorf("got %+v", want)
			}
			frame := unhex(test.before + test.packet)
			if got := mustParse(t, test.link, frame); got != want {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
			// Ethernet padding and checksums behind the packet.
			padded := append(frame, "padding and FCS"...)
			if got := mustParse(t, test.link, padded); got != want {
				t.Errorf("with padding got\n     %+v\nwant %+v", got, want)
			}
			// Every truncation inside a header is reported.
			header := len(unhex(test.before)) + 24
			if test.packet == v6 {
				header += 20
			}
			for n := range header {
				if err := checkAgainstReference(t, test.link, frame[:n:n]); !errors.Is(err, hashing.ErrTruncated) {
					t.Errorf("first %d bytes: error %v", n, err)
				}
			}
		})
	}
}

// What IP headers say, by protocol and shape.
func TestFramePackets(t *testing.T) {
	const a, b = "20010db800000000000000000000000a ", "20010db800000000000000000000000b "
	ip4 := func(fragment, proto, length int) string {
		return fmt.Sprintf("45 00 %04x 0001 %04x 40 %02x 0000 0a000001 0a000002 ", length, fragment, proto)
	}
	ip6 := func(next, length int) string {
		return fmt.Sprintf("60000000 %04x %02x 40 20010db8000000000000000000000001 20010db8000000000000000000000002 ", length, next)
	}
	tuple4 := func(proto uint8, from, to int) hashing.Tuple {
		return mustTuple(proto, fmt.Sprintf("10.0.0.1:%d", from), fmt.Sprintf("10.0.0.2:%d", to))
	}
	tuple6 := func(proto uint8, from int, host string, to int) hashing.Tuple {
		return mustTuple(proto, fmt.Sprintf("[2001:db8::1]:%d", from), fmt.Sprintf("[2001:db8::%s]:%d", host, to))
	}
	tests := []struct {
		name, packet string
		tuple        hashing.Tuple
		length       int
		is           string // "fragment", "cut" or neither
	}{
		{"IPv4 options", "46 00 0024 0000 0000 40 11 0000 0a000001 0a000002 94040000 0035 1000 000c 0000 01020304",
			tuple4(17, 53, 4096), 36, ""},
		{"UDP, no payload", ip4(0, 17, 28) + "0035 1000 0008 0000", tuple4(17, 53, 4096), 28, ""},
		{"UDP-Lite", ip4(0, 136, 28) + "0035 1000 0008 0000", tuple4(136, 53, 4096), 28, ""},
		{"SCTP", ip4(0, 132, 32) + "0035 1000 00000001 00000002", tuple4(132, 53, 4096), 32, ""},
		{"DCCP", ip4(0, 33, 32) + "0035 1000 00000001 00000002", tuple4(33, 53, 4096), 32, ""},
		{"ICMP", ip4(0, 1, 28) + "0800 1234 0001 0002", tuple4(1, 0, 0), 28, ""},
		{"GRE", ip4(0, 47, 44) + "00000801 4500 0014 0000 0000 40 fd 0000 c0000201 c0000202", tuple4(47, 0, 0), 44, ""},
		{"AH of IPv4", ip4(0, 51, 36) + "06 01 0000 00000001 00000002 03e801bb", tuple4(51, 0, 0), 36, ""},
		{"unknown protocol, empty", ip4(0, 253, 20), tuple4(253, 0, 0), 20, ""},
		{"TCP, empty", ip4(0, 6, 20), tuple4(6, 0, 0), 20, ""},
		{"TCP, three bytes", ip4(0, 6, 23) + "03e801", tuple4(6, 0, 0), 23, ""},
		{"TCP, eight bytes", ip4(0, 6, 28) + "03e8 01bb 00000001", tuple4(6, 1000, 443), 28, ""},
		{"TCP, header longer than the packet", ip4(0, 6, 40) + "03e8 01bb 00000001 00000002 f010 0000 0000 0000", tuple4(6, 1000, 443), 40, ""},
		{"first fragment", ip4(0x2000, 17, 28) + "0035 1000 0100 0000", tuple4(17, 53, 4096), 28, "fragment"},
		{"middle fragment", ip4(0x2001, 17, 28) + "0035 1000 0100 0000", tuple4(17, 0, 0), 28, "fragment"},
		{"last fragment", ip4(0x1fff, 17, 28) + "0035 1000 0100 0000", tuple4(17, 0, 0), 28, "fragment"},
		{"segmentation offload", ip4(0x4000, 6, 0) + tcp + data, tuple4(6, 1000, 443), 0, ""},
		{"cut UDP", ip4(0x4000, 17, 1500) + "0035 1000 05c8 0000 0102030405060708090a0b0c0d0e0f", tuple4(17, 53, 4096), 1500, "cut"},
		{"cut, but not what is hashed", ip4(0x4000, 17, 1500) + "0035 1000 05c8 0000 0102030405060708090a0b0c0d0e0f10",
			tuple4(17, 53, 4096), 1500, ""},
		{"IPv4-mapped", "60000000 0008 11 40 00000000000000000000ffff0a000001 00000000000000000000ffff0a000002 0035 1000 0008 0000",
			tuple4(17, 53, 4096), 48, ""},
		{"ICMPv6", ip6(58, 8) + "8000 1234 0001 0002", tuple6(58, 0, "2", 0), 48, ""},
		{"no next header", ip6(59, 0), tuple6(59, 0, "2", 0), 40, ""},
		{"mobility", ip6(135, 8) + "3b 00 00 00 1234 0000", tuple6(135, 0, "2", 0), 48, ""},
		{"hop-by-hop, destination options", ip6(0, 16+8+8) + "3c 01 010c 00000000 00000000 00000000 11 00 010400000000 0035 1000 0008 0000",
			tuple6(17, 53, "2", 4096), 72, ""},
		{"AH", ip6(51, 24+8) + "11 04 0000 00000001 00000002 00000003 00000004 00000005 0035 1000 0008 0000", tuple6(17, 53, "2", 4096), 72, ""},
		{"ESP", ip6(50, 8) + "00000001 00000002", tuple6(50, 0, "2", 0), 48, ""},
		{"atomic fragment", ip6(44, 16) + "11 00 0000 00000007 0035 1000 0008 0000", tuple6(17, 53, "2", 4096), 56, ""},
		{"IPv6 first fragment", ip6(44, 16) + "11 00 0001 00000007 0035 1000 0100 0000", tuple6(17, 53, "2", 4096), 56, "fragment"},
		{"IPv6 later fragment", ip6(44, 16) + "11 00 0009 00000007 0035 1000 0100 0000", tuple6(17, 0, "2", 0), 56, "fragment"},
		{"IPv6 later fragment of an extension", ip6(44, 16) + "3c 00 0008 00000007 11 00 010400000000", tuple6(60, 0, "2", 0), 56, "fragment"},
		{"source route under way", ip6(43, 40+8) + "11 04 00 02 00000000 " + a + b + "0035 1000 0008 0000", tuple6(17, 53, "b", 4096), 88, ""},
		{"source route at its end", ip6(43, 40+8) + "11 04 00 00 00000000 " + a + b + "0035 1000 0008 0000", tuple6(17, 53, "2", 4096), 88, ""},
		{"segment route under way", ip6(43, 40+8) + "11 04 04 01 01000000 " + a + b + "0035 1000 0008 0000", tuple6(17, 53, "a", 4096), 88, ""},
		{"segment route at its end", ip6(43, 40+8) + "11 04 04 00 01000000 " + a + b + "0035 1000 0008 0000", tuple6(17, 53, "2", 4096), 88, ""},
		{"home address", ip6(43, 24+8) + "11 02 02 01 00000000 " + b + "0035 1000 0008 0000", tuple6(17, 53, "b", 4096), 72, ""},
		{"unknown route", ip6(43, 24+8) + "11 02 fd 01 00000000 " + b + "0035 1000 0008 0000", tuple6(17, 53, "2", 4096), 72, ""},
		{"route without addresses", ip6(43, 8+8) + "11 00 02 01 00000000 0035 1000 0008 0000", tuple6(17, 53, "2", 4096), 56, ""},
		{"jumbogram", ip6(0, 0) + "11 00 c204 00010008 0035 1000 0000 0000 0102030405060708090a0b0c0d0e0f10", tuple6(17, 53, "2", 4096), 0, ""},
		{"16 extension headers", ip6(60, 16*8+8) + strings.Repeat("3c 00 010400000000", 15) + "11 00 010400000000 0035 1000 0008 0000",
			tuple6(17, 53, "2", 4096), 40 + 136, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			packet := unhex(test.packet)
			f := mustParse(t, hashing.LinkRaw, packet)
			if f.Tuple != test.tuple || f.Length != test.length || f.Fragment != (test.is == "fragment") || f.Cut != (test.is == "cut") {
				t.Errorf("%+v, want %+v", f, test)
			}
			for n := range len(packet) + 1 {
				checkAgainstReference(t, hashing.LinkRaw, packet[:n:n])
			}
			checkAgainstReference(t, hashing.LinkRaw, append(packet, "padding that is longer than what is hashed"...))
		})
	}
}

func TestFrameRefused(t *testing.T) {
	tests := []struct {
		name  string
		link  hashing.LinkType
		frame string
		want  error
	}{
		{"ARP", hashing.LinkEthernet, macs + "0806 0001080006040001", hashing.ErrNotIP},
		{"LLDP", hashing.LinkEthernet, macs + "88cc 0207", hashing.ErrNotIP},
		{"spanning tree", hashing.LinkEthernet, macs + "0026 424203 0000", hashing.ErrNotIP},
		{"SNAP of an organisation", hashing.LinkEthernet, macs + "0026 aaaa03 00000c 2000", hashing.ErrNotIP},
		{"between lengths and types", hashing.LinkEthernet, macs + "05dd aaaa03 000000 0800 " + tcp4, hashing.ErrNotIP},
		{"pseudowire of ARP", hashing.LinkEthernet, macs + "8847 000021ff 00000000 " + macs + "0806", hashing.ErrNotIP},
		{"MACsec, encrypted", hashing.LinkEthernet, macs + "88e5 0c 00 00000001 0800 " + tcp4, hashing.ErrNotIP},
		{"NSH of too few words", hashing.LinkEthernet, macs + "894f 0fc1 01 01 00000101 " + tcp4, hashing.ErrMalformed},
		{"PPPoE echo", hashing.LinkEthernet, macs + "8864 11 00 0001 000a c021 0901", hashing.ErrNotIP},
		{"PPPoE discovery code", hashing.LinkEthernet, macs + "8864 11 09 0001 0000 0021 " + tcp4, hashing.ErrNotIP},
		{"cooked ARP", hashing.LinkCooked, "0000 0001 0006 0200000000010000 0806 0001", hashing.ErrNotIP},
		{"null, AppleTalk", hashing.LinkNull, "10000000 " + tcp4, hashing.ErrNotIP},
		{"null, nonsense", hashing.LinkNull, "02000002 " + tcp4, hashing.ErrNotIP},
		{"raw, version 5", hashing.LinkRaw, "55" + tcp4[2:], hashing.ErrNotIP},

		{"IPv4 in an IPv6 frame", hashing.LinkEthernet, macs + "86dd " + tcp4 + tcp, hashing.ErrMalformed},
		{"IPv6 in an IPv4 frame", hashing.LinkIPv4, tcp6 + tcp, hashing.ErrMalformed},
		{"header of 16 bytes", hashing.LinkRaw, "44" + tcp4[2:] + tcp, hashing.ErrMalformed},
		{"total length below header's", hashing.LinkRaw, "45 00 0013" + tcp4[10:] + tcp, hashing.ErrMalformed},
		{"extension beyond the packet", hashing.LinkRaw,
			"60000000 0008 00 40 20010db8000000000000000000000001 20010db8000000000000000000000002 11 01 01040000 0000 0000000000000000",
			hashing.ErrMalformed},
		{"17 extension headers", hashing.LinkRaw,
			"60000000 0100 3c 40 20010db8000000000000000000000001 20010db8000000000000000000000002 " +
				strings.Repeat("3c 00 010400000000", 16) + "11 00 010400000000 0035 1000 0008 0000", hashing.ErrMalformed},

		{"no port", hashing.LinkRaw, tcp4 + "03e8 01", hashing.ErrTruncated},
		{"IPv4 options cut", hashing.LinkRaw, "4f 00 0100" + tcp4[10:] + tcp, hashing.ErrTruncated},
		{"endless labels", hashing.LinkEthernet, macs + "8847 " + strings.Repeat("00002040", 20), hashing.ErrTruncated},

		{"Bluetooth", 201, macs, hashing.ErrLink},
		{"no link", 65535, "", hashing.ErrLink},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			frame := unhex(test.frame)
			f := mustParse(t, hashing.LinkRaw, unhex(tcp4+tcp+data))
			if err := f.Parse(test.link, frame); !errors.Is(err, test.want) {
				t.Errorf("error %v, want %v", err, test.want)
			}
			if f != (hashing.Frame{}) {
				t.Errorf("a refused frame left %+v", f)
			}
			for n := range len(frame) + 1 {
				checkAgainstReference(t, test.link, frame[:n:n])
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, e := range encapsulations {
		frame := unhex(e.before + e.packet)
		f.Add(uint16(e.link), frame)
		f.Add(uint16(e.link), frame[:len(frame)-10])
	}
	for _, r := range strangeCaptures(f) {
		f.Add(uint16(r.link), r.frame)
	}
	for _, tunnel := range tunnels {
		f.Add(uint16(hashing.LinkRaw), unhex(tunnel.header(48)+tcp4+tcp+data))
		f.Add(uint16(hashing.LinkRaw), unhex(tunnel.header(68)+tcp6+tcp+data))
	}
	f.Fuzz(func(t *testing.T, link uint16, frame []byte) {
		checkAgainstReference(t, hashing.LinkType(link), frame[:len(frame):len(frame)])
	})
}
