package hashing

import (
	"encoding/binary"
	"math/bits"
)

// Nearly every packet is plain: Ethernet, perhaps with tags, IPv4 without options or IPv6 without extension
// headers, not a fragment, with TCP, UDP or ICMP, and captured as far as Digest reads. This file has the quick
// way for those. Whatever it does not know takes the way of Frame.parse, and a fuzz target holds the two equal.
// Numbers are little-endian loads of big-endian fields.
const (
	etherIPv4 = uint16(typeIPv4>>8 | typeIPv4&0xff<<8)
	etherIPv6 = uint16(typeIPv6>>8 | typeIPv6&0xff<<8)
	etherVLAN = uint16(typeVLAN>>8 | typeVLAN&0xff<<8)
	etherQinQ = uint16(typeQinQ>>8 | typeQinQ&0xff<<8)

	plainSize = 14 + 20 + transportSize     // the least that is captured of a plain IPv4 packet
	longer    = 20                          // by which the header of IPv6 is longer
	stamped   = tcpHeaderSize + 12 + 4      // a TCP header with timestamps alone, and four bytes
	prefix4   = 0xffff << 16                // of the second word of an IPv4-mapped address
	outer     = 14 + 20 + udpHeaderSize + 8 // the least that is before a frame inside VXLAN
)

// isPlain4 reports whether a frame is of IPv4 without options, and not a fragment.
func isPlain4(b *[plainSize]byte) bool {
	const fragment = 0xff3f // all but the flag that forbids them
	return binary.LittleEndian.Uint16(b[12:14]) == etherIPv4 && b[14] == 4<<4|5 &&
		binary.LittleEndian.Uint16(b[20:22])&fragment == 0
}

// isPlain6 reports whether a frame is of IPv6, and long enough.
func isPlain6(b []byte) bool {
	const version, mask = uint32(etherIPv6) | 6<<20, 0xffff | 0xf0<<16
	return binary.LittleEndian.Uint32(b[12:16])&mask == version && len(b) >= plainSize+longer
}

// inside returns the frame inside a plain packet of UDP, length bytes of which
// were sent, or nil if that takes the slow way. Inlined, it would take registers.
//
//go:noinline
func (t *Tunnels) inside(udp []byte, length int) []byte {
	const identified = 0x08
	if t.behind(binary.BigEndian.Uint16(udp[2:])) != kindVXLAN || udp[udpHeaderSize]&identified == 0 {
		return nil
	}
	return udp[udpHeaderSize+8 : min(len(udp), length) : len(udp)]
}

// ParseWith is Parse with a choice of the tunnels to look into. Two points must choose the same.
func (f *Frame) ParseWith(link LinkType, b []byte, tunnels *Tunnels) error {
	if link != LinkEthernet || len(b) < plainSize {
		return f.parse(link, b, tunnels)
	}
	le, length, proto := binary.LittleEndian, 0, byte(0) // of the transport
	var head *[transportSize]byte                        // its beginning
	var data []byte                                      // what was captured of it
	if h := (*[plainSize]byte)(b); isPlain4(h) {
		word := le.Uint32(h[16:20]) // length and identification
		f.Length = int(bits.ReverseBytes16(uint16(word)))
		length, proto, head, data = f.Length-20, h[23], (*[transportSize]byte)(h[34:]), b[34:len(b):len(b)]
		f.Tuple.Src = [16]byte{} // two assignments: one would go through the stack
		f.Tuple.Dst = [16]byte{}
		le.PutUint64(f.Tuple.Src[8:], uint64(le.Uint32(h[26:30]))<<32|prefix4)
		le.PutUint64(f.Tuple.Dst[8:], uint64(le.Uint32(h[30:34]))<<32|prefix4)
		le.PutUint64(f.rest[24:], uint64(word&^0xffff)|uint64(word)<<48)
	} else {
		for !isPlain6(b) {
			if kind := le.Uint16(b[12:14]); kind != etherVLAN && kind != etherQinQ || len(b) < plainSize+4 {
				return f.parseUntagged(b, tunnels)
			}
			b = b[4:] // what was behind the tag is then behind the addresses
		}
		h := (*[plainSize + longer]byte)(b)
		word := le.Uint16(h[18:20])
		length, proto, head, data = int(bits.ReverseBytes16(word)), h[20], (*[transportSize]byte)(h[54:]), b[54:len(b):len(b)]
		f.Length = length + 40
		f.Tuple.Src = [16]byte(h[22:38])
		f.Tuple.Dst = [16]byte(h[38:54])
		le.PutUint64(f.rest[24:], bits.RotateLeft64(uint64(word), 48)) // a shift would be stored in parts
	}
	ports, last := bits.ReverseBytes32(le.Uint32(head[:4])), uint64(0)
	switch {
	case proto == protoTCP:
		switch words := head[12] >> 4; { // half of the last word is what follows the options
		case words == 8 && length >= stamped && len(data) >= stamped:
			last = uint64(le.Uint32(head[16:20])) | uint64(le.Uint32(data[32:36]))<<32
		case words == 5 && length >= transportSize:
			last = le.Uint64(head[16:24])
		case words >= 5 && length == int(words)*4:
			last = uint64(le.Uint32(head[16:20]))
		default:
			return f.parse(link, b, tunnels)
		}
	case proto == protoUDP && length >= transportSize:
		if tunnels.mayLead(uint16(ports)) {
			return f.parseInside(b, data, length, tunnels)
		}
		last = le.Uint64(head[16:24])
	case (proto == protoICMP || proto == protoICMPv6) && length >= transportSize:
		last, ports = le.Uint64(head[16:24]), 0
	default:
		return f.parse(link, b, tunnels)
	}
	*(*[16]byte)(f.rest[:16]) = [16]byte(head[:16])
	le.PutUint64(f.rest[16:24], last)
	f.Tuple.DstPort, f.Tuple.SrcPort, f.Tuple.Proto = uint16(ports), uint16(ports>>16), proto
	f.Tunnels, f.Fragment, f.Cut = 0, false, false
	return nil
}

// parseUntagged parses a frame that had tags, or that is not plain.
func (f *Frame) parseUntagged(b []byte, tunnels *Tunnels) error {
	if isPlain4((*[plainSize]byte)(b)) {
		return f.ParseWith(LinkEthernet, b, tunnels)
	}
	return f.parse(LinkEthernet, b, tunnels)
}

// parseInside parses the frame inside b, a plain one of UDP, or b itself if it cannot.
func (f *Frame) parseInside(b, udp []byte, length int, tunnels *Tunnels) error {
	inner, whole, less := tunnels.inside(udp, length), f.Length, *tunnels
	less.Depth--
	if inner == nil || f.ParseWith(LinkEthernet, inner, &less) != nil {
		return f.parse(LinkEthernet, b, tunnels)
	}
	f.Length = whole
	f.Tunnels++
	return nil
}
