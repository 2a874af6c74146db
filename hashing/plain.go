package hashing

import (
	"encoding/binary"
	"math/bits"
)

// Nearly every packet is plain: Ethernet with up to two tags, IPv4 without
// options or IPv6 without extension headers, not a fragment, with TCP, UDP or
// ICMP, and captured as far as Digest reads. This file has the quick way for
// those: whole words, no loop. Whatever it does not know takes the way of
// Frame.parse, and a fuzz target holds the two equal.
//
// Numbers here are little-endian loads of what the wire has big-endian.
const (
	etherIPv4 = uint16(typeIPv4>>8 | typeIPv4&0xff<<8)
	etherIPv6 = uint16(typeIPv6>>8 | typeIPv6&0xff<<8)
	etherVLAN = uint16(typeVLAN>>8 | typeVLAN&0xff<<8)
	etherQinQ = uint16(typeQinQ>>8 | typeQinQ&0xff<<8)

	plainSize   = 14 + 20 + transportSize // the least that is captured of a plain IPv4 packet
	longer      = 20                      // by so much is the header of IPv6 longer
	stampedSize = tcpHeaderSize + 12      // of a TCP header with timestamps, as nearly all have
)

// plainTags returns the frame without up to two tags.
func plainTags(b []byte) []byte {
	le := binary.LittleEndian
	for range 2 {
		if kind := le.Uint16(b[12:14]); kind != etherVLAN && kind != etherQinQ || len(b) < plainSize+4 {
			break
		}
		b = b[4:] // what was behind the tag is now behind the addresses
	}
	return b
}

// isPlain reports whether the first word of an IPv4 header is one without
// options, and not of a fragment.
func isPlain(first uint64) bool {
	const plain, mask = 4<<4 | 5, 0xff3f<<48 | 0xff
	return first&mask == plain
}

// plainIPv4 returns the addresses, the word of identification and length, and
// the length of the transport, of the first word of a plain header and of its
// addresses.
func plainIPv4(first, addresses uint64) (src, dst, id uint64, length int) {
	const mapped, idMask = 0xffff << 16, 0xffff << 16
	first >>= 16
	return addresses<<32 | mapped, addresses>>32<<32 | mapped, first&idMask | first<<48,
		int(bits.ReverseBytes16(uint16(first))) - 20
}

// plainTCP completes the last word of a TCP header, of which the second half is
// the beginning of the payload.
func plainTCP(b []byte, last uint64, size, length int) (uint64, bool) {
	const header = 1<<32 - 1
	switch {
	case length >= 4 && size == stampedSize && len(b) >= 34+stampedSize+4:
		return last&header | uint64(binary.LittleEndian.Uint32(b[34+stampedSize:34+stampedSize+4]))<<32, true
	case length >= 4 && size == tcpHeaderSize:
		return last, true
	case length == 0 && size >= tcpHeaderSize:
		return last & header, true
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

// ParseWith is Parse with a choice of the tunnels to look into. Two points must
// choose the same.
func (f *Frame) ParseWith(link Link, b []byte, tunnels *Tunnels) error {
	if link != LinkEthernet || len(b) < plainSize {
		return f.parse(link, b, tunnels)
	}
	le := binary.LittleEndian
	whole, kind := b, le.Uint16(b[12:14])
	if kind != etherIPv4 && kind != etherIPv6 {
		b = plainTags(b)
		kind = le.Uint16(b[12:14])
	}
	t := &f.Tuple
	proto, length, word := b[23], 0, uint64(0) // of identification and length
	if kind == etherIPv4 {
		first := le.Uint64(b[14:22])
		if !isPlain(first) {
			return f.parse(link, whole, tunnels)
		}
		src, dst, id, n := plainIPv4(first, le.Uint64(b[26:34]))
		le.PutUint64(t.Src[:8], 0)
		le.PutUint64(t.Src[8:], src)
		le.PutUint64(t.Dst[:8], 0)
		le.PutUint64(t.Dst[8:], dst)
		f.Length, length, word = n+20, n, id
	} else {
		if kind != etherIPv6 || len(b) < plainSize+longer || b[14]>>4 != 6 {
			return f.parse(link, whole, tunnels)
		}
		size := le.Uint16(b[18:20])
		length = int(bits.ReverseBytes16(size))
		t.Src, t.Dst = [16]byte(b[22:38]), [16]byte(b[38:54])
		f.Length, word = length+40, uint64(size)<<48
		proto = b[20]
		b = b[longer:]
	}

	p := (*[plainSize]byte)(b)
	ports, last := bits.RotateLeft32(bits.ReverseBytes32(le.Uint32(p[34:38])), 16), le.Uint64(p[50:58])
	if proto == protoTCP {
		size, ok := int(p[46]&0xf0)>>2, false
		if last, ok = plainTCP(b, last, size, length-size); !ok {
			return f.parse(link, whole, tunnels)
		}
	} else if length < transportSize {
		return f.parse(link, whole, tunnels)
	} else if proto == protoUDP {
		if tunnels.Depth > 0 && tunnels.mayLead(uint16(ports>>16)) {
			return f.parseVXLAN(b[34:min(len(b), 34+length)], whole, tunnels)
		}
	} else if proto == protoICMP || proto == protoICMPv6 {
		ports = 0
	} else {
		return f.parse(link, whole, tunnels)
	}
	t.SrcPort, t.DstPort, t.Proto = uint16(ports), uint16(ports>>16), proto
	*(*[16]byte)(f.rest[:16]) = [16]byte(p[34:50])
	le.PutUint64(f.rest[16:24], last)
	le.PutUint64(f.rest[24:], word)
	f.Tunnels, f.Fragment, f.Cut = 0, false, false
	return nil
}

// parseVXLAN parses the frame in a plain packet of UDP, or if that is not of
// VXLAN, the whole.
func (f *Frame) parseVXLAN(b, whole []byte, tunnels *Tunnels) error {
	const identified = 0x08
	length, inside := f.Length, *tunnels
	inside.Depth--
	if tunnels.behind(binary.BigEndian.Uint16(b[2:4])) != kindVXLAN || b[udpHeaderSize]&identified == 0 ||
		f.ParseWith(LinkEthernet, b[udpHeaderSize+8:], &inside) != nil {
		return f.parse(LinkEthernet, whole, tunnels)
	}
	f.Length = length
	f.Tunnels++
	return nil
}
