package hashing_test

import (
	"bytes"
	"net/netip"
	"slices"

	"github.com/hoplag/hoplag/hashing"
)

// slowFrame is what the reference parser says of a frame. hashed are the bytes
// in the order of Frame's documentation.
type slowFrame struct {
	tuple         hashing.Tuple
	length        int
	fragment, cut bool
	hashed        []byte
	tunnels       int
	payload       []byte // captured, behind the IP headers
}

// slowParse is a reference for Frame.Parse, above all readable: it copies the
// packet, fills what the capture cut with zeros, and reads the fields off the
// whole.
func slowParse(link hashing.Link, frame []byte) (slowFrame, error) {
	return slowParseDepth(link, frame, 2)
}

func slowParseDepth(link hashing.Link, frame []byte, depth int) (slowFrame, error) {
	f, err := slowOuter(link, frame)
	for ; err == nil && depth > 0; depth-- {
		inner, innerErr := slowInner(f)
		if innerErr == hashing.ErrTruncated {
			f.cut = true
		}
		if innerErr != nil {
			break
		}
		inner.length, inner.tunnels = f.length, f.tunnels+1
		f = inner
	}
	return f, err
}

func slowOuter(link hashing.Link, frame []byte) (slowFrame, error) {
	switch link {
	case hashing.LinkEthernet: // destination, source, EtherType
		return slowAfter(frame, 14, func() (slowFrame, error) {
			return slowEther(number(frame[12:14]), frame[14:])
		})
	case hashing.LinkCooked: // type, address type, length, address, protocol
		return slowAfter(frame, 16, func() (slowFrame, error) {
			return slowEther(number(frame[14:16]), frame[16:])
		})
	case hashing.LinkCooked2: // protocol, …
		return slowAfter(frame, 20, func() (slowFrame, error) {
			return slowEther(number(frame[0:2]), frame[20:])
		})
	case hashing.LinkNull, hashing.LinkLoop: // address family
		return slowAfter(frame, 4, func() (slowFrame, error) {
			family := slices.Clone(frame[:4])
			if family[0] != 0 || family[1] != 0 {
				slices.Reverse(family)
			}
			switch number(family) {
			case 2:
				return slowIP(frame[4:], 4)
			case 10, 23, 24, 28, 30:
				return slowIP(frame[4:], 6)
			}
			return slowFrame{}, hashing.ErrNotIP
		})
	case hashing.LinkRaw, hashing.LinkRawBSD, hashing.LinkRawOpen:
		return slowIP(frame, 0)
	case hashing.LinkIPv4:
		return slowIP(frame, 4)
	case hashing.LinkIPv6:
		return slowIP(frame, 6)
	}
	return slowRare(link, frame)
}

// slowAfter calls next if a header of size bytes was captured.
func slowAfter(b []byte, size int, next func() (slowFrame, error)) (slowFrame, error) {
	if len(b) < size {
		return slowFrame{}, hashing.ErrTruncated
	}
	return next()
}

func slowEther(etherType int, rest []byte) (slowFrame, error) {
	switch {
	case etherType == 0x0800:
		return slowIP(rest, 4)
	case etherType == 0x86dd:
		return slowIP(rest, 6)
	case etherType == 0x8100, etherType == 0x88a8, etherType == 0x9100, etherType == 0x9200:
		return slowAfter(rest, 4, func() (slowFrame, error) {
			return slowEther(number(rest[2:4]), rest[4:])
		})
	case etherType == 0x8847, etherType == 0x8848:
		return slowMPLS(rest)
	case etherType == 0x8864:
		return slowAfter(rest, 6, func() (slowFrame, error) {
			if rest[0] != 0x11 || rest[1] != 0 {
				return slowFrame{}, hashing.ErrNotIP
			}
			return slowPPP(rest[6:])
		})
	case etherType == 0x8926: // two interfaces
		return slowAfter(rest, 6, func() (slowFrame, error) { return slowEther(number(rest[4:6]), rest[6:]) })
	case etherType == 0x8903: // a tree and hops, then a frame
		return slowAfter(rest, 16, func() (slowFrame, error) { return slowOuter(hashing.LinkEthernet, rest[2:]) })
	case etherType == 0x88e7: // a service, then a frame
		return slowAfter(rest, 18, func() (slowFrame, error) { return slowOuter(hashing.LinkEthernet, rest[4:]) })
	case etherType == 0x88e5: // flags, length, number, perhaps 8 bytes of channel
		size := 6
		if len(rest) > 0 && rest[0]&0x20 != 0 {
			size = 14
		}
		if len(rest) > 0 && rest[0]&0x0c != 0 {
			return slowFrame{}, hashing.ErrNotIP
		}
		return slowAfter(rest, size+2, func() (slowFrame, error) { return slowEther(number(rest[size:size+2]), rest[size+2:]) })
	case etherType == 0x894f:
		return slowNSH(rest)
	case etherType <= 1500:
		snap := []byte{0xaa, 0xaa, 0x03, 0, 0, 0}
		if !bytes.HasPrefix(rest, snap) && !bytes.HasPrefix(snap, rest) {
			return slowFrame{}, hashing.ErrNotIP
		}
		return slowAfter(rest, 8, func() (slowFrame, error) {
			return slowEther(number(rest[6:8]), rest[8:])
		})
	}
	return slowFrame{}, hashing.ErrNotIP
}

func slowMPLS(stack []byte) (slowFrame, error) {
	return slowAfter(stack, 4, func() (slowFrame, error) {
		if rest := stack[4:]; stack[2]%2 == 1 { // the last label
			if len(rest) > 0 && rest[0] < 16 { // a control word
				return slowAfter(rest, 4, func() (slowFrame, error) { return slowOuter(hashing.LinkEthernet, rest[4:]) })
			}
			return slowIP(rest, 0)
		}
		return slowMPLS(stack[4:])
	})
}

// slowIP parses a packet of the given IP version, or of either if it is 0.
func slowIP(packet []byte, version int) (slowFrame, error) {
	switch {
	case len(packet) == 0:
		return slowFrame{}, hashing.ErrTruncated
	case version == 0 && packet[0]>>4 != 4 && packet[0]>>4 != 6:
		return slowFrame{}, hashing.ErrNotIP
	case version != 0 && int(packet[0]>>4) != version:
		return slowFrame{}, hashing.ErrMalformed
	case packet[0]>>4 == 4:
		return slowIPv4(packet)
	}
	return slowIPv6(packet)
}

func slowIPv4(packet []byte) (slowFrame, error) {
	if len(packet) < 20 {
		return slowFrame{}, hashing.ErrTruncated
	}
	headerLength := int(packet[0]%16) * 4
	totalLength := number(packet[2:4])
	if headerLength < 20 || totalLength != 0 && totalLength < headerLength {
		return slowFrame{}, hashing.ErrMalformed
	}
	if headerLength > len(packet) {
		return slowFrame{}, hashing.ErrTruncated
	}
	more := number(packet[6:8]) >> 13 & 1
	offset := number(packet[6:8]) % (1 << 13)
	p := slowPacket{
		source:      netip.AddrFrom4([4]byte(packet[12:16])),
		destination: netip.AddrFrom4([4]byte(packet[16:20])),
		length:      packet[2:4],
		total:       totalLength,
		id:          append([]byte{0, 0}, packet[4:6]...),
		offset:      offset, more: more,
	}
	return p.transport(int(packet[9]), wholePacket(packet, totalLength), headerLength, len(packet))
}

func slowIPv6(packet []byte) (slowFrame, error) {
	if len(packet) < 40 {
		return slowFrame{}, hashing.ErrTruncated
	}
	next, at := int(packet[6]), 40
	total := 40 + number(packet[4:6])
	if total == 40 && next != 59 {
		total = 0
	}
	whole := wholePacket(packet, total)
	p := slowPacket{
		source:      netip.AddrFrom16([16]byte(packet[8:24])),
		destination: netip.AddrFrom16([16]byte(packet[24:40])),
		length:      packet[4:6],
		total:       total,
		id:          make([]byte, 4),
	}
	for extensions := 0; ; extensions++ {
		var size func(byte) int
		switch next {
		case 0, 43, 60:
			size = func(n byte) int { return (int(n) + 1) * 8 }
		case 51:
			size = func(n byte) int { return (int(n) + 2) * 4 }
		case 44:
			size = func(byte) int { return 8 }
		}
		if size == nil || p.offset > 0 {
			if total > 0 { // what follows the extension headers
				p.length = []byte{byte((total - at) >> 8), byte(total - at)}
			}
			return p.transport(next, whole, at, len(packet))
		}
		if extensions == 16 || total > 0 && at+8 > total {
			return slowFrame{}, hashing.ErrMalformed
		}
		if at+8 > len(packet) {
			return slowFrame{}, hashing.ErrTruncated
		}
		end := at + size(packet[at+1])
		if total > 0 && end > total {
			return slowFrame{}, hashing.ErrMalformed
		}
		if end > len(packet) {
			return slowFrame{}, hashing.ErrTruncated
		}
		header := packet[at:end]
		switch next {
		case 44:
			p.offset, p.more = number(header[2:4])/8, number(header[2:4])%2
			p.id = header[4:8]
		case 43:
			kind, segmentsLeft := header[2], header[3]
			var segments []netip.Addr
			for a := header[8:]; len(a) >= 16; a = a[16:] {
				segments = append(segments, netip.AddrFrom16([16]byte(a[:16])))
			}
			if segmentsLeft > 0 && len(segments) > 0 {
				switch kind {
				case 0, 2:
					// An address list ends with the header; stray bytes after
					// whole addresses would come before the last one.
					p.destination = netip.AddrFrom16([16]byte(header[len(header)-16:]))
				case 4:
					p.destination = segments[0]
				}
			}
		}
		next, at = int(header[0]), end
	}
}

// slowPacket is an IP header, whichever the version.
type slowPacket struct {
	source, destination netip.Addr
	length              []byte // the length field, in IPv6 without extension headers
	total               int    // the whole packet's length; 0 if not known
	id                  []byte
	offset, more        int
}

// wholePacket returns the packet as it was sent, zeros in place of what the
// capture cut, and without what follows it in the frame. One of unknown
// length, 0, goes on far enough for anything that could be looked at.
func wholePacket(captured []byte, length int) []byte {
	if length == 0 {
		length = len(captured) + 100
	}
	whole := make([]byte, length)
	copy(whole, captured)
	return whole
}

// transport completes the frame with what begins at whole[at:], of which the
// first captured bytes of whole are real.
func (p slowPacket) transport(proto int, whole []byte, at, captured int) (slowFrame, error) {
	f := slowFrame{length: p.total, fragment: p.offset > 0 || p.more > 0}
	data := whole[at:]
	f.payload = whole[at:min(max(at, captured), len(whole))]

	var sourcePort, destinationPort int
	switch proto {
	case 6, 17, 33, 132, 136:
		if p.offset == 0 && len(data) >= 4 {
			if captured < at+4 {
				return slowFrame{}, hashing.ErrTruncated
			}
			sourcePort, destinationPort = number(data[0:2]), number(data[2:4])
		}
	}
	f.tuple = hashing.MakeTuple(uint8(proto),
		netip.AddrPortFrom(p.source, uint16(sourcePort)),
		netip.AddrPortFrom(p.destination, uint16(destinationPort)))

	// Which bytes of data are hashed, by their indices.
	var indices []int
	first := func(from, n int) {
		for i := from; i < from+n && i < len(data); i++ {
			indices = append(indices, i)
		}
	}
	if proto == 6 && p.offset == 0 && len(data) >= 20 {
		first(0, 20)
		first(max(20, int(data[12]>>4)*4), 4)
	} else {
		first(0, 24)
	}
	field := func(b ...byte) { f.hashed = append(f.hashed, b...) }
	field(f.tuple.Src[:]...)
	field(f.tuple.Dst[:]...)
	for _, i := range indices {
		field(data[i])
		if at+i >= captured {
			f.cut = true
		}
	}
	field(make([]byte, 24-len(indices))...)
	field(p.id...)
	field(byte(p.offset>>5), byte(p.offset<<3|p.more))
	field(p.length...)
	field(byte(proto))
	field(make([]byte, 7)...)
	return f, nil
}

// number reads a big-endian number.
func number(b []byte) int {
	n := 0
	for _, digit := range b {
		n = n*256 + int(digit)
	}
	return n
}
