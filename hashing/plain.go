package hashing

import (
	"encoding/binary"
	"math/bits"
)

// Nearly every packet is plain: Ethernet, perhaps with tags, IPv4 without
// options or IPv6 without extension headers, not a fragment, with TCP, UDP or
// ICMP, and captured as far as Digest reads. This file has the quick way for
// those: whole words, no loop. Whatever it does not know takes the way of
// Frame.parse, and a fuzz target holds the two equal.
//
// Numbers here are little-endian loads of what the wire has big-endian, and
// offsets are those of an IPv4 packet without tags: what stands before it is
// taken off first.
const (
	etherIPv4 = uint16(typeIPv4>>8 | typeIPv4&0xff<<8)
	etherIPv6 = uint16(typeIPv6>>8 | typeIPv6&0xff<<8)
	etherVLAN = uint16(typeVLAN>>8 | typeVLAN&0xff<<8)
	etherQinQ = uint16(typeQinQ>>8 | typeQinQ&0xff<<8)

	plainSize = 14 + 20 + transportSize // the least that is captured of a plain IPv4 packet
	longer    = 20                      // by so much is the header of IPv6 longer
	prefix4   = 0xffff << 16            // of the second word of an IPv4-mapped address
	lowHalf   = 1<<32 - 1

	outer = 14 + 20 + udpHeaderSize + 8 // the least that is before a frame inside VXLAN
)

// untagged returns a frame without its tags: what was behind a tag is then
// behind the addresses.
func untagged(b []byte) []byte {
	for len(b) >= plainSize {
		if kind := binary.LittleEndian.Uint16(b[12:14]); kind != etherVLAN && kind != etherQinQ {
			break
		}
		b = b[4:]
	}
	return b
}

// isPlain reports whether the first word of an IPv4 header is of one without
// options, and not of a fragment.
func isPlain(first uint64) bool {
	const plain, mask = 4<<4 | 5, 0xff3f<<48 | 0xff
	return first&mask == plain
}

// plainID returns the word of identification and length, from the first word
// of a plain IPv4 header.
func plainID(first uint64) uint64 { return first>>16&^0xffff&lowHalf | first>>16<<48 }

// plainTCP completes the last word of a TCP header of the given number of
// words: its second half is the beginning of the payload. Header and payload
// have length bytes. Nearly all headers have no options, or timestamps alone.
func plainTCP(b []byte, last uint64, words byte, length int) (uint64, bool) {
	const stamped, end = 8, 34 + 32 + 4
	switch {
	case words == stamped && length >= end-34 && len(b) >= end:
		return last&lowHalf | uint64(binary.LittleEndian.Uint32(b[end-4:end]))<<32, true
	case words == 5 && length >= transportSize:
		return last, true
	case words >= 5 && length == int(words)*4:
		return last & lowHalf, true
	}
	return 0, false
}

// likelyPorts has a bit for the lower ten bits of each port of a tunnel.
var likelyPorts = func() (set [16]uint64) {
	for _, port := range []uint16{portGTP, portVXLAN, portVXLANGPE, portGeneve, portMPLS, portVXLANOld} {
		set[port>>6&15] |= 1 << (port & 63)
	}
	return set
}()

// mayLead reports whether a UDP port may lead into a tunnel.
func (t *Tunnels) mayLead(port uint16) bool {
	return likelyPorts[port>>6&15]>>(port&63)&1 != 0 || port == t.VXLAN || port == t.Geneve || port == t.GTP
}

// inside returns the frame inside a plain packet of UDP, length bytes of which
// were sent, or nil if that takes the slow way. It is not inlined because few
// packets come here, and registers are scarce.
//
//go:noinline
func (t *Tunnels) inside(udp []byte, port uint16, length int) []byte {
	const identified = 0x08
	if t.behind(port) != kindVXLAN || udp[udpHeaderSize]&identified == 0 {
		return nil
	}
	return udp[udpHeaderSize+8 : min(len(udp), length)]
}

// ParseWith is Parse with a choice of the tunnels to look into. Two points must
// choose the same.
func (f *Frame) ParseWith(link LinkType, b []byte, tunnels *Tunnels) error {
	le, whole := binary.LittleEndian, b
tagged:
	if link != LinkEthernet || len(b) < plainSize {
		return f.parse(link, whole, tunnels)
	}
	h := (*[plainSize]byte)(b)
	kind, first := le.Uint16(h[12:14]), le.Uint64(h[14:22])
	proto, length, id := h[23], 0, uint64(0)
	if kind == etherIPv4 && isPlain(first) {
		le.PutUint64(f.Tuple.Src[:8], 0)
		le.PutUint64(f.Tuple.Src[8:], le.Uint64(h[22:30])&^lowHalf|prefix4)
		le.PutUint64(f.Tuple.Dst[:8], 0)
		le.PutUint64(f.Tuple.Dst[8:], le.Uint64(h[26:34])&^lowHalf|prefix4)
		f.Length, id = int(bits.ReverseBytes16(uint16(first>>16))), plainID(first)
		length = f.Length - 20
	} else if kind == etherIPv6 && len(b) >= plainSize+longer && h[14]>>4 == 6 {
		g := (*[plainSize + longer]byte)(b)
		length, id, proto = int(g[18])<<8|int(g[19]), uint64(le.Uint16(g[18:20]))<<48, g[20]
		f.Tuple.Src = [16]byte(g[22:38])
		f.Tuple.Dst = [16]byte(g[38:54])
		f.Length = length + 40
		b = b[longer:]
		h = (*[plainSize]byte)(b)
	} else if kind == etherVLAN || kind == etherQinQ {
		b = b[4:] // as untagged, and faster here
		goto tagged
	} else {
		return f.parse(link, whole, tunnels)
	}

	ports, last := bits.ReverseBytes32(le.Uint32(h[34:38])), le.Uint64(h[50:58])
	if proto == protoTCP {
		var ok bool
		if last, ok = plainTCP(b, last, h[46]>>4, length); !ok {
			return f.parse(link, whole, tunnels)
		}
	} else if length < transportSize {
		return f.parse(link, whole, tunnels)
	} else if proto == protoUDP {
		if tunnels.Depth > 0 && tunnels.mayLead(uint16(ports)) && tunnels.behind(uint16(ports)) != kindNone {
			return f.parseInside(tunnels.inside(b[34:len(b):len(b)], uint16(ports), length), whole, tunnels)
		}
	} else if ports = 0; proto != protoICMP && proto != protoICMPv6 {
		return f.parse(link, whole, tunnels)
	}
	f.Tuple.SrcPort, f.Tuple.DstPort, f.Tuple.Proto = uint16(ports>>16), uint16(ports), proto
	*(*[16]byte)(f.rest[:16]) = [16]byte(h[34:50])
	le.PutUint64(f.rest[16:24], last)
	le.PutUint64(f.rest[24:], id)
	f.Tunnels, f.Fragment, f.Cut = 0, false, false
	return nil
}

// parseInside parses a frame inside a plain one, or if it can't, the whole.
func (f *Frame) parseInside(inner, whole []byte, tunnels *Tunnels) error {
	length, less := f.Length, *tunnels
	less.Depth--
	if inner == nil || f.ParseWith(LinkEthernet, inner, &less) != nil {
		return f.parse(LinkEthernet, whole, tunnels)
	}
	f.Length = length
	f.Tunnels++
	return nil
}
