package hashing_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/hoplag/hoplag/hashing"
)

// What flipping a bit does to a packet's identity.
type effect int

const (
	nothing   effect = iota // neither tuple nor digest change
	newPacket               // the digest changes, the tuple does not
	newFlow                 // both change
	newShape                // an error, or another digest
	anything                // not a packet any more; only the reference judges
)

// region is a run of bits with one effect. Masks choose bits within bytes, and
// a zero mask is all.
type region struct {
	name string
	size int
	mask byte
	want effect
}

// Every bit of these frames is flipped, each alone.
func TestFrameBits(t *testing.T) {
	ethernet := []region{
		{"MAC addresses", 12, 0, nothing},
		{"EtherType", 2, 0, anything},
		{"VLAN tag", 2, 0, nothing},
		{"EtherType", 2, 0, newShape},
	}
	ip4 := []region{
		{"version, header length", 1, 0, newShape},
		{"DSCP, ECN", 1, 0, nothing},
		{"total length", 2, 0, newShape},
		{"identification", 2, 0, newPacket},
		{"reserved, DF", 0, 0xc0, nothing},
		{"more fragments", 0, 0x20, newPacket},
		{"fragment offset", 2, 0, newShape},
		{"TTL", 1, 0, nothing},
		{"protocol", 1, 0, newShape},
		{"header checksum", 2, 0, nothing},
		{"addresses", 8, 0, newFlow},
	}
	ip6 := []region{
		{"version", 0, 0xf0, newShape},
		{"traffic class, flow label", 4, 0, nothing},
		{"payload length", 2, 0, newShape},
		{"next header", 1, 0, newShape},
		{"hop limit", 1, 0, nothing},
	}
	addresses6 := region{"addresses", 32, 0, newFlow}
	const (
		ether4 = macs + "8100 0064 0800 "
		ether6 = macs + "8100 0064 86dd "
	)
	join := func(parts ...[]region) []region { return slices.Concat(parts...) }
	tests := []struct {
		name    string
		frame   string
		regions []region
	}{
		{"TCP", ether4 + tcp4 + tcp + data, join(ethernet, ip4, []region{
			{"ports", 4, 0, newFlow},
			{"sequence numbers", 8, 0, newPacket},
			{"header length", 0, 0xf0, newPacket},
			{"flags, window, checksum, urgent", 8, 0, newPacket},
			{"first payload", 4, 0, newPacket},
			{"later payload", 4, 0, nothing},
		})},
		{"TCP with options in IPv6", ether6 + "60000000 0028 06 40 20010db8000000000000000000000001 20010db8000000000000000000000002 " +
			"03e8 01bb 01020304 05060708 8018 2000 cafe 0000 0101080a 00000001 00000002 " + data,
			join(ethernet, ip6, []region{addresses6,
				{"ports", 4, 0, newFlow},
				{"sequence numbers", 8, 0, newPacket},
				{"header length", 0, 0xf0, newPacket},
				{"flags, window, checksum, urgent", 8, 0, newPacket},
				{"options", 12, 0, nothing},
				{"first payload", 4, 0, newPacket},
				{"later payload", 4, 0, nothing},
			})},
		{"UDP with IP options", ether4 + "46 00 003c 1234 4000 40 11 beef 0a000001 0a000002 94040000 0035 1000 0024 0000 " +
			strings.Repeat(data, 4),
			join(ethernet, ip4, []region{
				{"options", 4, 0, nothing},
				{"ports", 4, 0, newFlow},
				{"length, checksum", 4, 0, newPacket},
				{"first payload", 16, 0, newPacket},
				{"later payload", 16, 0, nothing},
			})},
		{"later fragment", ether4 + "45 00 0034 1234 2009 40 11 beef 0a000001 0a000002 " + tcp + data + "01020304",
			join(ethernet, ip4, []region{
				{"first bytes", 24, 0, newPacket},
				{"later bytes", 8, 0, nothing},
			})},
		{"ICMP", ether4 + "45 00 0034 1234 0000 40 01 beef 0a000001 0a000002 0800 1234 0001 0002 " + strings.Repeat(data, 3),
			join(ethernet, ip4, []region{
				{"header, first payload", 24, 0, newPacket},
				{"later payload", 8, 0, nothing},
			})},
		{"hop-by-hop options", ether6 + "60000000 0010 00 40 20010db8000000000000000000000001 20010db8000000000000000000000002 11 00 " +
			"3e0400000000 0035 1000 0008 0000",
			join(ethernet, ip6, []region{addresses6,
				{"next header, length", 2, 0, newShape},
				{"options", 6, 0, nothing},
				{"ports", 4, 0, newFlow},
				{"length, checksum", 4, 0, newPacket},
			})},
		{"IPv6 fragment", ether6 + "60000000 0010 2c 40 20010db8000000000000000000000001 20010db8000000000000000000000002 11 00 0809 " +
			"00000007 0035 1000 0008 0000",
			join(ethernet, ip6, []region{addresses6,
				{"next header", 1, 0, newShape},
				{"reserved", 1, 0, nothing},
				{"offset, high", 1, 0, newPacket},
				{"reserved", 0, 0x06, nothing},
				{"offset, more fragments", 1, 0, newPacket},
				{"identification", 4, 0, newPacket},
				{"data", 8, 0, newPacket},
			})},
		{"segment route", ether6 + "60000000 0030 2b 40 20010db8000000000000000000000001 20010db8000000000000000000000002 " +
			"11 04 04 01 01 00 0000 20010db800000000000000000000000a 20010db8000000000000000000000002 0035 1000 0008 0000",
			join(ethernet, ip6, []region{
				{"source", 16, 0, newFlow},
				{"next segment", 16, 0, nothing},
				{"next header, length, type", 3, 0, newShape},
				{"segments left", 0, 0x01, newShape}, // cannot be 0 while the destination is not the last
				{"segments left", 1, 0, nothing},
				{"last entry, flags, tag", 4, 0, nothing},
				{"last segment", 16, 0, newFlow},
				{"first segment", 16, 0, nothing},
				{"ports", 4, 0, newFlow},
				{"length, checksum", 4, 0, newPacket},
			})},
	}
	const seed = 3
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			frame := unhex(test.frame)
			before := mustParse(t, hashing.LinkEthernet, frame)
			at := 0
			done := byte(0) // bits of frame[at] that an earlier region flipped
			for _, r := range test.regions {
				for i := range max(r.size, 1) {
					for bit := byte(1); bit != 0; bit <<= 1 {
						if done&bit != 0 || r.mask != 0 && r.mask&bit == 0 {
							continue
						}
						frame[at+i] ^= bit
						checkAgainstReference(t, hashing.LinkEthernet, frame)
						var after hashing.Frame
						err := after.Parse(hashing.LinkEthernet, frame)
						frame[at+i] ^= bit
						sameFlow := after.Tuple == before.Tuple && after.Tuple.Flow(seed) == before.Tuple.Flow(seed)
						samePacket := after.Digest(seed) == before.Digest(seed)
						ok := true
						switch r.want {
						case nothing:
							ok = err == nil && sameFlow && samePacket
						case newPacket:
							ok = err == nil && sameFlow && !samePacket
						case newFlow:
							ok = err == nil && !sameFlow && !samePacket
						case newShape:
							ok = err != nil || !samePacket
						}
						if !ok {
							t.Errorf("%s: bit %#02x of byte %d flipped: error %v, same flow %v, same packet %v", r.name, bit, at+i, err, sameFlow, samePacket)
						}
					}
					if r.size > 0 {
						done = 0
					} else {
						done |= r.mask
					}
				}
				at += r.size
			}
			if at != len(frame) {
				t.Errorf("regions cover %d of %d bytes", at, len(frame))
			}
		})
	}
}
