package hashing

import "encoding/binary"

// maxExtensions bounds the extension headers of a packet. RFC 8200 expects
// each kind at most once (destination options twice), which makes seven.
const maxExtensions = 16

func (f *Frame) parseIPv6(b []byte) (payload []byte, err error) {
	if len(b) < 40 {
		return nil, errTruncated
	}
	header, data := (*[40]byte)(b), b[40:]
	length, next := int(binary.BigEndian.Uint16(header[4:6])), header[6]
	f.Length = 40 + length
	if length == 0 && next != protoNone {
		f.Length, length = 0, unknown
	}
	copy(f.Tuple.Src[:], header[8:24])
	copy(f.Tuple.Dst[:], header[24:40])

	var id uint32
	var offset uint16
	later := false
	for n := 0; !later && isExtension(next); n++ {
		if n == maxExtensions || length < 8 {
			return nil, errMalformed
		}
		if len(data) < 8 {
			return nil, errTruncated
		}
		size := 8 + int(data[1])*8
		switch next {
		case protoAH:
			size = 8 + int(data[1])*4
		case protoFragment:
			size = 8
			const reserved = 6 // between offset and flag
			offset = binary.BigEndian.Uint16(data[2:4]) &^ reserved
			id = binary.BigEndian.Uint32(data[4:8])
			later = offset > moreFragments
		}
		if size > length {
			return nil, errMalformed
		}
		if size > len(data) {
			return nil, errTruncated
		}
		if next == protoRouting {
			f.setFinal(data[:size])
		}
		next, data, length = data[0], data[size:], length-size
	}
	f.Tuple.Proto = next
	if f.Length == 0 {
		f.setID(id, offset, 0)
	} else { // without the headers, which may be added or removed on the way
		f.setID(id, offset, uint16(length))
	}
	return f.parseTransport(data, length, later)
}

// isExtension reports whether to walk over a header. Headers that are always
// last, such as mobility and HIP, count as protocols here: their bytes
// distinguish packets.
func isExtension(next uint8) bool {
	switch next {
	case protoHopByHop, protoRouting, protoFragment, protoAH, protoDestination:
		return true
	}
	return false
}

// setFinal sets the destination to that of the last segment, if a routing
// header still has segments to visit: until then the IPv6 header's destination
// is only the next of them. A type that is unknown (or whose addresses are
// compressed) leaves the destination as it is.
func (f *Frame) setFinal(routing []byte) {
	const address = 16
	if routing[3] == 0 || len(routing) < 8+address {
		return
	}
	switch routing[2] {
	case 0, 2: // source route (RFC 5095), home address (RFC 6275): in order
		f.Tuple.Dst = [address]byte(routing[len(routing)-address:])
	case 4: // segment routing (RFC 8754): last segment first
		f.Tuple.Dst = [address]byte(routing[8:])
	}
}
