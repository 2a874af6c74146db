package hashing

import "encoding/binary"

// IP protocol numbers.
const (
	protoHopByHop    = 0
	protoICMP        = 1
	protoIPv4        = 4
	protoTCP         = 6
	protoUDP         = 17
	protoDCCP        = 33
	protoIPv6        = 41
	protoRouting     = 43
	protoFragment    = 44
	protoGRE         = 47
	protoAH          = 51
	protoICMPv6      = 58
	protoNone        = 59
	protoDestination = 60
	protoEtherIP     = 97
	protoSCTP        = 132
	protoUDPLite     = 136
	protoMPLS        = 137
)

const (
	tcpHeaderSize = 20
	moreFragments = 1         // the flag beside a fragment offset
	unknown       = 1<<31 - 1 // length of a packet that ends where the capture does, or later
	maxExtensions = 16        // headers; RFC 8200 expects seven at most
)

// parseIP sets f, which is zero, to a packet that begins with an IP header. What remains of w was captured
// after the IP headers, or is nothing if that cannot be a tunnel.
func (f *Frame) parseIP(w *walk) {
	var id uint64 // bytes 56 to 63 of those that are hashed
	var length int
	if w.b[0]>>4 == 4 {
		id, length = f.parseIPv4(w)
	} else {
		id, length = f.parseIPv6(w)
	}
	if w.err != nil {
		return
	}
	binary.BigEndian.PutUint64(f.rest[transportSize:], id)
	offset := uint16(id >> 16)
	f.Fragment = offset != 0
	f.parseTransport(w, length, offset > moreFragments)
	if f.Fragment || f.Tuple.Proto == protoTCP {
		w.b = nil
	}
}

// parseIPv4 returns the word that tells packets apart, and the length of what follows the header.
func (f *Frame) parseIPv4(w *walk) (id uint64, length int) {
	be, header := binary.BigEndian, w.look(20)
	size, total := int(header[0]&15)*4, be.Uint16(header[2:])
	if length = int(total) - size; total == 0 {
		length = unknown
	}
	w.check(size >= 20 && length >= 0, ErrMalformed)
	w.skip(size)

	t := &f.Tuple
	t.Src[10], t.Src[11] = 0xff, 0xff // IPv4-mapped
	t.Dst[10], t.Dst[11] = 0xff, 0xff
	copy(t.Src[12:], header[12:16])
	copy(t.Dst[12:], header[16:20])
	t.Proto = header[9]
	f.Length = int(total)
	// Flags come before the offset here, and after it in IPv6.
	flags := be.Uint16(header[6:])
	offset := flags<<3 | flags>>13&moreFragments
	return uint64(be.Uint16(header[4:]))<<32 | uint64(offset)<<16 | uint64(total), length
}

// parseIPv6 is parseIPv4 for IPv6 with its extension headers.
func (f *Frame) parseIPv6(w *walk) (id uint64, length int) {
	be, header := binary.BigEndian, w.take(40)
	length, next := int(be.Uint16(header[4:])), header[6]
	f.Length = 40 + length
	if length == 0 && next != protoNone {
		f.Length, length = 0, unknown
	}
	copy(f.Tuple.Src[:], header[8:24])
	copy(f.Tuple.Dst[:], header[24:40])

	for n := 0; w.err == nil && id>>16&0xffff <= moreFragments && isExtension(next); n++ {
		w.check(n < maxExtensions && length >= 8, ErrMalformed)
		b := w.look(8)
		size := 8 + int(b[1])*8
		switch next {
		case protoAH:
			size = 8 + int(b[1])*4
		case protoFragment:
			const reserved = 6 // between offset and flag
			size = 8
			id = uint64(be.Uint32(b[4:]))<<32 | uint64(be.Uint16(b[2:])&^reserved)<<16
		case protoRouting:
			f.setFinal(w.b[:min(size, len(w.b))])
		}
		w.check(size <= length, ErrMalformed)
		w.skip(size)
		next, length = b[0], length-size
	}
	f.Tuple.Proto = next
	if f.Length > 0 { // without the headers, which may be added or removed on the way
		id |= uint64(length)
	}
	return id, length
}

// isExtension reports whether to walk over a header. Those that are always last,
// such as mobility and HIP, count as protocols.
func isExtension(next uint8) bool {
	switch next {
	case protoHopByHop, protoRouting, protoFragment, protoAH, protoDestination:
		return true
	}
	return false
}

// setFinal sets the destination to that of the last segment, if a routing header still has segments to visit. A
// type that is unknown (or whose addresses are compressed) leaves the destination as it is.
func (f *Frame) setFinal(routing []byte) {
	const address = 16
	if len(routing) < 8+address || routing[3] == 0 {
		return
	}
	switch routing[2] {
	case 0, 2: // source route (RFC 5095), home address (RFC 6275): in order
		f.Tuple.Dst = [address]byte(routing[len(routing)-address:])
	case 4: // segment routing (RFC 8754): last segment first
		f.Tuple.Dst = [address]byte(routing[8:])
	}
}

// parseTransport sets the ports and the bytes that are hashed of what follows the IP headers: length bytes were
// sent, of which w has the beginning or all. A later fragment has no transport header. It takes what follows
// the packet off w.
func (f *Frame) parseTransport(w *walk, length int, later bool) {
	w.b = w.b[:min(len(w.b), length)] // without Ethernet padding
	t, data, into := &f.Tuple, w.b, f.rest[:transportSize]
	switch t.Proto {
	case protoTCP, protoUDP, protoDCCP, protoSCTP, protoUDPLite:
		if !later && length >= 4 {
			ports := w.look(4)
			t.SrcPort, t.DstPort = binary.BigEndian.Uint16(ports), binary.BigEndian.Uint16(ports[2:])
		}
	}
	if t.Proto == protoTCP && !later && len(data) >= tcpHeaderSize {
		if size := int(data[12]>>4) * 4; size > tcpHeaderSize { // leave the options out
			copy(into, data[:tcpHeaderSize])
			into, data, length = into[tcpHeaderSize:], data[min(size, len(data)):], length-size
		}
	}
	f.Cut = copy(into, data) < min(len(into), length)
}
