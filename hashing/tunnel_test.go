package hashing_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hoplag/hoplag/hashing"
)

// Outer headers as tunnels have them: no identification, no UDP checksum.
func outerIPv4(proto, size int) string {
	return fmt.Sprintf("45 00 %04x 0000 4000 40 %02x 0000 c6336401 c6336402 ", 20+size, proto)
}

func outerUDP(port, size int) string {
	return outerIPv4(17, 8+size) + fmt.Sprintf("c001 %04x %04x 0000 ", port, 8+size)
}

func outerUDPv6(port, size int) string {
	return fmt.Sprintf("60000000 %04x 11 40 20010db8000000000000000000000011 20010db8000000000000000000000012 c001 %04x %04x 0000 ",
		8+size, port, 8+size)
}

// tunnels make the headers before a packet of size bytes.
var tunnels = []struct {
	name   string
	ipv6   bool // what is inside
	header func(size int) string
}{
	{"IP in IP", false, func(n int) string { return outerIPv4(4, n) }},
	{"6in4", true, func(n int) string { return outerIPv4(41, n) }},
	{"GRE", false, func(n int) string { return outerIPv4(47, 4+n) + "0000 0800 " }},
	{"GRE with key, checksum and sequence", true, func(n int) string {
		return outerIPv4(47, 16+n) + "b000 86dd 00000000 00000007 00000001 "
	}},
	{"NVGRE", false, func(n int) string { return outerIPv4(47, 22+n) + "2000 6558 00123400 " + macs + "0800 " }},
	{"PPTP", false, func(n int) string { return outerIPv4(47, 18+n) + "3081 880b 0030 0001 00000001 00000001 0021 " }},
	{"ERSPAN I", false, func(n int) string { return outerIPv4(47, 18+n) + "0000 88be " + macs + "0800 " }},
	{"ERSPAN II", false, func(n int) string {
		return outerIPv4(47, 30+n) + "1000 88be 00000001 1064 0001 00000001 " + macs + "0800 "
	}},
	{"ERSPAN III", true, func(n int) string {
		return outerIPv4(47, 42+n) + "1000 22eb 00000001 2064 0001 12345678 0000 0001 0000000000000000 " + macs + "86dd "
	}},
	{"MPLS in GRE", false, func(n int) string { return outerIPv4(47, 8+n) + "0000 8847 000021ff " }},
	{"MPLS in IP", false, func(n int) string { return outerIPv4(137, 4+n) + "000021ff " }},
	{"MPLS in UDP", true, func(n int) string { return outerUDP(6635, 4+n) + "000021ff " }},
	{"EtherIP", false, func(n int) string { return outerIPv4(97, 16+n) + "3000 " + macs + "0800 " }},
	{"VXLAN", false, func(n int) string { return outerUDP(4789, 22+n) + "08000000 00001200 " + macs + "0800 " }},
	{"VXLAN with a tag", true, func(n int) string { return outerUDP(8472, 26+n) + "08000000 00001200 " + macs + "8100 0001 86dd " }},
	{"VXLAN over IPv6", false, func(n int) string { return outerUDPv6(4789, 22+n) + "08000000 00001200 " + macs + "0800 " }},
	{"VXLAN-GPE", false, func(n int) string { return outerUDP(4790, 8+n) + "0c000001 00001200 " }},
	{"VXLAN-GPE and NSH", true, func(n int) string {
		return outerUDP(4790, 16+n) + "0c000004 00001200 0fc2 02 02 00000101 "
	}},
	{"Geneve", false, func(n int) string { return outerUDP(6081, 22+n) + "0000 6558 00001200 " + macs + "0800 " }},
	{"Geneve with options", true, func(n int) string {
		return outerUDP(6081, 16+n) + "0200 86dd 00001200 0102 03 01 deadbeef "
	}},
	{"GTP", false, func(n int) string { return outerUDP(2152, 8+n) + "30ff 0030 00000001 " }},
	{"GTP with an extension", true, func(n int) string {
		return outerUDP(2152, 20+n) + "34ff 0030 00000001 0000 00 85 01 0109 85 01 0109 00 "
	}},
}

// A packet is the same within a tunnel and outside.
func TestTunnels(t *testing.T) {
	for _, tunnel := range tunnels {
		t.Run(tunnel.name, func(t *testing.T) {
			packet := map[bool]string{false: v4, true: v6}[tunnel.ipv6]
			frame := unhex(tunnel.header(len(unhex(packet))) + packet)
			want := mustParse(t, hashing.LinkRaw, unhex(packet))
			want.Length, want.Tunnels = len(frame), 1
			if got := mustParse(t, hashing.LinkRaw, frame); got != want {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
			for n := range len(frame) + 1 {
				checkAgainstReference(t, hashing.LinkRaw, frame[:n:n])
			}
			// With a depth of 0 the tunnel itself is the flow.
			var outer hashing.Frame
			if err := outer.ParseWith(hashing.LinkRaw, frame, &hashing.Tunnels{}); err != nil || outer.Tunnels != 0 || outer.Tuple == want.Tuple {
				t.Errorf("depth 0: %+v, %v", outer, err)
			}
			// A fragment is not looked into.
			if frame[0]>>4 == 4 {
				frame[6] = 0x20
				if f := mustParse(t, hashing.LinkRaw, frame); f.Tunnels != 0 || !f.Fragment {
					t.Errorf("a fragment: %+v", f)
				}
			}
		})
	}
}

// A packet whose tunnel carries no IP remains the outer one.
func TestTunnelsNotEntered(t *testing.T) {
	arp := outerUDP(4789, 64) + "08000000 00001200 " + macs +
		"0806 0001 0800 06 04 0001 020000000001 0a000001 000000000000 0a000002 " + strings.Repeat("00", 18)
	if f := mustParse(t, hashing.LinkRaw, unhex(arp)); f.Tunnels != 0 || f.Cut || f.Tuple.DstPort != 4789 {
		t.Errorf("ARP in VXLAN: %+v", f)
	}
}
