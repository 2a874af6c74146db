package hashing

import (
	"encoding/binary"
)

func (f *Frame) parseIPv4(b []byte) (payload []byte, err error) {
	if len(b) < 20 {
		return nil, errTruncated
	}
	be := binary.BigEndian
	header := (*[20]byte)(b)
	size, total := int(header[0]&15)*4, int(be.Uint16(header[2:4]))
	length := total - size
	if total == 0 {
		length = unknown
	}
	switch {
	case size < 20 || length < 0:
		return nil, errMalformed
	case size > len(b):
		return nil, errTruncated
	}

	t := &f.Tuple
	t.Src[10], t.Src[11] = 0xff, 0xff // IPv4-mapped
	t.Dst[10], t.Dst[11] = 0xff, 0xff
	copy(t.Src[12:], header[12:16])
	copy(t.Dst[12:], header[16:20])
	t.Proto = header[9]
	f.Length = total
	// Flags come before the offset here, and after it in IPv6.
	flags := be.Uint16(header[6:8])
	f.setID(uint32(be.Uint16(header[4:6])), flags<<3|flags>>13&moreFragments, uint16(total))
	return f.parseTransport(b[size:], length, flags<<3 != 0)
}

// unknown stands for the length of a packet whose header does not say: it ends
// where the capture does, or later.
const unknown = 1<<31 - 1

// moreFragments is the flag beside a fragment offset.
const moreFragments = 1

// setID sets the fields that distinguish a flow's packets and fragments at the
// IP layer. offset has the form of IPv6, and lengthField is the header's.
func (f *Frame) setID(id uint32, offset, lengthField uint16) {
	f.Fragment = offset != 0
	binary.BigEndian.PutUint64(f.rest[transportSize:], uint64(id)<<32|uint64(offset)<<16|uint64(lengthField))
}

// parseTransport completes f, whose tuple has everything but the ports, from
// the bytes after the IP headers. length of them were sent; data, which is
// their beginning or all of them, was captured. A later fragment has no
// transport header. It returns data without what follows the packet, or
// nothing for a fragment.
func (f *Frame) parseTransport(data []byte, length int, later bool) ([]byte, error) {
	if len(data) > length {
		data = data[:length] // Ethernet padding
	}
	t := &f.Tuple
	if !later && length >= 4 && hasPorts(t.Proto) {
		if len(data) < 4 {
			return nil, errTruncated
		}
		t.SrcPort = binary.BigEndian.Uint16(data[:2])
		t.DstPort = binary.BigEndian.Uint16(data[2:4])
	}
	into := f.rest[:transportSize]
	if size := tcpSize(data); t.Proto == protoTCP && !later && size > tcpHeaderSize {
		copy(into, data[:tcpHeaderSize])
		into, data, length = into[tcpHeaderSize:], data[min(size, len(data)):], length-size
	}
	f.Cut = copy(into, data) < min(len(into), length)
	if f.Fragment || t.Proto == protoTCP {
		return nil, nil // nothing is carried in TCP
	}
	return data, nil
}

// tcpSize returns the length of a TCP header, or 0 if its beginning was not
// captured.
func tcpSize(data []byte) int {
	if len(data) < tcpHeaderSize {
		return 0
	}
	return int(data[12]>>4) * 4
}

// hasPorts reports whether a protocol's header begins with two 16-bit ports.
func hasPorts(proto uint8) bool {
	switch proto {
	case protoTCP, protoUDP, protoDCCP, protoSCTP, protoUDPLite:
		return true
	}
	return false
}
