package hashing_test

import (
	"bytes"
	"net/netip"
	"slices"

	"github.com/hoplag/hoplag/hashing"
)

// slowFrame is what the reference parser says of a frame. hashed are the bytes in the order of Frame's
// documentation.
type slowFrame struct {
	tuple         hashing.Tuple
	length        int
	fragment, cut bool
	hashed        []byte
	tunnels       int
	payload       []byte // captured, behind the IP headers
}

// slowParse is a reference for Frame.Parse, above all readable: it copies the packet, fills what the capture
// cut with zeros, and reads the fields off the whole. The functions below panic with the reason why a frame is
// refused.
func slowParse(link hashing.LinkType, frame []byte) (slowFrame, error) {
	return slowParseDepth(link, frame, 2)
}

func slowParseDepth(link hashing.LinkType, frame []byte, depth int) (f slowFrame, err error) {
	f, err = slowTry(func() slowFrame { return slowLink(link, frame) })
	for ; err == nil && depth > 0; depth-- {
		inner, innerErr := slowTry(func() slowFrame { return slowInner(f) })
		if innerErr != nil {
			f.cut = f.cut || innerErr == hashing.ErrTruncated
			break
		}
		inner.length, inner.tunnels = f.length, f.tunnels+1
		f = inner
	}
	return f, err
}

func slowTry(parse func() slowFrame) (f slowFrame, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = reason.(error)
		}
	}()
	return parse(), nil
}

// need panics with a reason unless all is well.
func need(ok bool, reason error) {
	if !ok {
		panic(reason)
	}
}

// cut returns the first n bytes and the rest.
func cut(b []byte, n int) (header, rest []byte) {
	need(len(b) >= n, hashing.ErrTruncated)
	return b[:n], b[n:]
}

// number reads a big-endian number.
func number(b []byte) int {
	n := 0
	for _, digit := range b {
		n = n*256 + int(digit)
	}
	return n
}

func slowLink(link hashing.LinkType, frame []byte) slowFrame {
	// Where the EtherType stands, and how long the header is.
	typed := map[hashing.LinkType][2]int{1: {12, 14}, 104: {2, 4}, 113: {14, 16}, 242: {40, 44}, 276: {0, 20},
		281: {16, 18}, 282: {16, 18}, 284: {16, 18}, 285: {20, 22}}
	if place, ok := typed[link]; ok {
		header, rest := cut(frame, place[1])
		return slowEther(number(header[place[0]:place[0]+2]), rest)
	}
	switch link {
	case hashing.LinkRaw:
		return slowIP(frame, 0)
	case hashing.LinkIPv4:
		return slowIP(frame, 4)
	case hashing.LinkIPv6:
		return slowIP(frame, 6)
	case hashing.LinkNull, hashing.LinkLoop: // address family
		header, rest := cut(frame, 4)
		family := slices.Clone(header)
		if family[0] != 0 || family[1] != 0 {
			slices.Reverse(family)
		}
		versions := map[int]int{2: 4, 10: 6, 23: 6, 24: 6, 28: 6, 30: 6}
		need(versions[number(family)] > 0, hashing.ErrNotIP)
		return slowIP(rest, versions[number(family)])
	case hashing.LinkPPP:
		if header, rest := cut(frame, 2); number(header) == 0xff03 {
			return slowPPP(rest)
		}
		return slowPPP(frame)
	}
	panic(hashing.ErrLink)
}

func slowEthernet(b []byte) slowFrame { return slowLink(hashing.LinkEthernet, b) }

func slowEther(etherType int, rest []byte) slowFrame {
	// How long a tag is, with the EtherType at its end.
	tags := map[int]int{0x8100: 4, 0x88a8: 4, 0x9100: 4, 0x9200: 4, 0x8926: 6, 0x8903: 16, 0x88e7: 18}
	size := tags[etherType]
	switch {
	case etherType == 0x0800:
		return slowIP(rest, 4)
	case etherType == 0x86dd:
		return slowIP(rest, 6)
	case etherType == 0x8847, etherType == 0x8848:
		return slowMPLS(rest)
	case etherType == 0x894f:
		return slowNSH(rest)
	case etherType == 0x8864:
		header, session := cut(rest, 6)
		need(header[0] == 0x11 && header[1] == 0, hashing.ErrNotIP)
		return slowPPP(session)
	case etherType == 0x88e5: // flags, length, number, perhaps 8 bytes of channel
		flags, _ := cut(rest, 1)
		need(flags[0]&0x0c == 0, hashing.ErrNotIP)
		size = 8
		if flags[0]&0x20 != 0 {
			size = 16
		}
	case etherType <= 1500:
		snap := []byte{0xaa, 0xaa, 0x03, 0, 0, 0}
		need(bytes.HasPrefix(rest, snap) || bytes.HasPrefix(snap, rest), hashing.ErrNotIP)
		size = 8
	}
	need(size > 0, hashing.ErrNotIP)
	header, rest := cut(rest, size)
	return slowEther(number(header[size-2:]), rest)
}

func slowMPLS(stack []byte) slowFrame {
	label, rest := cut(stack, 4)
	if label[2]%2 == 0 { // not the last
		return slowMPLS(rest)
	}
	if len(rest) > 0 && rest[0] < 16 { // a control word
		_, inner := cut(rest, 4)
		return slowEthernet(inner)
	}
	return slowIP(rest, 0)
}

func slowPPP(b []byte) slowFrame {
	first, _ := cut(b, 1)
	protocol, rest := cut(b, 2-int(first[0]%2))
	switch number(protocol) {
	case 0x21:
		return slowIP(rest, 4)
	case 0x57:
		return slowIP(rest, 6)
	case 0x281, 0x283:
		return slowMPLS(rest)
	}
	panic(hashing.ErrNotIP)
}

func slowNSH(b []byte) slowFrame {
	base, _ := cut(b, 8)
	words := int(base[1] % 64)
	need(words >= 2, hashing.ErrMalformed)
	_, rest := cut(b, 4*words)
	need(base[3] != 4, hashing.ErrNotIP)
	return slowService(int(base[3]), rest)
}

func slowService(next int, b []byte) slowFrame {
	switch next {
	case 1:
		return slowIP(b, 4)
	case 2:
		return slowIP(b, 6)
	case 3:
		return slowEthernet(b)
	case 4:
		return slowNSH(b)
	case 5:
		return slowMPLS(b)
	}
	panic(hashing.ErrNotIP)
}

// slowInner parses what a tunnel's packet carries.
func slowInner(f slowFrame) slowFrame {
	b := f.payload
	need(!f.fragment, hashing.ErrNotIP)
	switch f.tuple.Proto {
	case 4:
		return slowIP(b, 4)
	case 41:
		return slowIP(b, 6)
	case 137:
		return slowMPLS(b)
	case 47:
		return slowGRE(b)
	case 97:
		header, rest := cut(b, 2)
		need(header[0] == 0x30, hashing.ErrNotIP)
		return slowEthernet(rest)
	case 17:
		tunnels := map[uint16]func([]byte) slowFrame{
			4789: slowVXLAN, 8472: slowVXLAN, 4790: slowVXLANGPE, 6081: slowGeneve, 2152: slowGTP, 6635: slowMPLS,
		}
		if next := tunnels[f.tuple.DstPort]; next != nil {
			_, rest := cut(b, 8)
			return next(rest)
		}
	}
	panic(hashing.ErrNotIP)
}

func slowVXLAN(b []byte) slowFrame {
	header, rest := cut(b, 8)
	need(header[0]>>3&1 == 1, hashing.ErrNotIP)
	return slowEthernet(rest)
}

func slowVXLANGPE(b []byte) slowFrame {
	header, rest := cut(b, 8)
	need(header[0]>>3&1 == 1, hashing.ErrNotIP)
	if header[0]>>2&1 == 0 {
		return slowVXLAN(b)
	}
	return slowService(int(header[3]), rest)
}

func slowGeneve(b []byte) slowFrame {
	header, _ := cut(b, 8)
	need(header[0] < 64, hashing.ErrNotIP)
	_, rest := cut(b, 8+4*int(header[0]%64))
	return slowBridged(number(header[2:4]), rest)
}

func slowBridged(etherType int, b []byte) slowFrame {
	if etherType == 0x6558 {
		return slowEthernet(b)
	}
	return slowEther(etherType, b)
}

func slowGTP(b []byte) slowFrame {
	header, b := cut(b, 8)
	need(header[0]>>5 == 1 && header[0]>>4&1 == 1 && header[1] == 255, hashing.ErrNotIP)
	if header[0]%8 == 0 {
		return slowIP(b, 0)
	}
	options, b := cut(b, 4)
	next := options[3]
	for header[0]>>2&1 == 1 && next != 0 {
		words, _ := cut(b, 1)
		need(words[0] > 0, hashing.ErrMalformed)
		var extension []byte
		extension, b = cut(b, 4*int(words[0]))
		next = extension[len(extension)-1]
	}
	return slowIP(b, 0)
}

func slowGRE(b []byte) slowFrame {
	header, b := cut(b, 4)
	has := func(bit int) bool { return number(header[:2])>>(15-bit)&1 == 1 }
	version, etherType := int(header[1]%8), number(header[2:])
	ppp := version == 1 && etherType == 0x880b
	need(!has(1) && (version == 0 || ppp), hashing.ErrNotIP)
	for bit, size := range map[int]int{0: 4, 2: 4, 3: 4} {
		if has(bit) {
			_, b = cut(b, size)
		}
	}
	if ppp && has(8) {
		_, b = cut(b, 4)
	}
	switch etherType {
	case 0x88be:
		if has(3) {
			_, b = cut(b, 8)
		}
		return slowEthernet(b)
	case 0x22eb:
		header, b := cut(b, 12)
		if header[11]%2 == 1 {
			_, b = cut(b, 8)
		}
		return slowEthernet(b)
	case 0x880b:
		return slowPPP(b)
	}
	return slowBridged(etherType, b)
}

// slowIP parses a packet of the given IP version, or of either if it is 0.
func slowIP(packet []byte, version int) slowFrame {
	first, _ := cut(packet, 1)
	is := int(first[0] >> 4)
	need(version != 0 || is == 4 || is == 6, hashing.ErrNotIP)
	need(version == 0 || is == version, hashing.ErrMalformed)
	if is == 4 {
		return slowIPv4(packet)
	}
	return slowIPv6(packet)
}

func slowIPv4(packet []byte) slowFrame {
	cut(packet, 20)
	headerLength := int(packet[0]%16) * 4
	totalLength := number(packet[2:4])
	need(headerLength >= 20 && (totalLength == 0 || totalLength >= headerLength), hashing.ErrMalformed)
	cut(packet, headerLength)
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

func slowIPv6(packet []byte) slowFrame {
	cut(packet, 40)
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
		need(extensions < 16 && (total == 0 || at+8 <= total), hashing.ErrMalformed)
		cut(packet, at+8)
		end := at + size(packet[at+1])
		need(total == 0 || end <= total, hashing.ErrMalformed)
		cut(packet, end)
		header := packet[at:end]
		switch next {
		case 44:
			p.offset, p.more = number(header[2:4])/8, number(header[2:4])%2
			p.id = header[4:8]
		case 43:
			// An address list ends with the header; stray bytes after whole addresses would come before the
			// last one.
			kind, left := header[2], header[3]
			if left > 0 && len(header) >= 8+16 {
				switch kind {
				case 0, 2:
					p.destination = netip.AddrFrom16([16]byte(header[len(header)-16:]))
				case 4:
					p.destination = netip.AddrFrom16([16]byte(header[8:24]))
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

// wholePacket returns the packet as it was sent, zeros in place of what the capture cut, and without what
// follows it in the frame. One of unknown length, 0, is long enough for anything that could be looked at.
func wholePacket(captured []byte, length int) []byte {
	if length == 0 {
		length = len(captured) + 100
	}
	whole := make([]byte, length)
	copy(whole, captured)
	return whole
}

// transport completes the frame with what begins at whole[at:]; only the first captured bytes of whole are
// real.
func (p slowPacket) transport(proto int, whole []byte, at, captured int) slowFrame {
	f := slowFrame{length: p.total, fragment: p.offset > 0 || p.more > 0}
	data := whole[at:]
	f.payload = whole[at:min(max(at, captured), len(whole))]

	var sourcePort, destinationPort int
	switch proto {
	case 6, 17, 33, 132, 136:
		if p.offset == 0 && len(data) >= 4 {
			need(captured >= at+4, hashing.ErrTruncated)
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
	return f
}
