package hashing

import (
	"encoding/binary"
	"errors"
	"math/bits"
)

// The reasons why [Frame.Parse] refuses a frame.
var (
	// ErrNotIP means that the frame carries something other than IP, such as ARP, LLDP or a pseudowire. Count
	// it and go on, or identify it by the [Digest] of all its bytes if nothing between the points rewrites
	// them.
	ErrNotIP = errors.New("hashing: frame carries no IP")

	// ErrTruncated means that the captured bytes end inside the headers that name the flow. Use a larger snap
	// length.
	ErrTruncated = errors.New("hashing: frame ends inside its headers")

	// ErrMalformed means that a header contradicts itself or the one below it.
	ErrMalformed = errors.New("hashing: malformed IP header")

	// ErrLink means that [LinkType] does not list the link type, so that no frame of that capture can be read.
	ErrLink = errors.New("hashing: unsupported link type")
)

// A Frame is what two points need to know of a captured frame: who sent it to whom, and the bytes that stay the
// same on the way.
//
// Digest covers 72 bytes, which SPEC.md lists: both addresses, the protocol, identification, place and length
// of a fragment, and the first 24 bytes of the transport: for TCP, the header without options and 4 bytes of
// payload. Of the fields that RFC 4302 (the IP authentication header) counts as immutable or predictable, they
// are those that distinguish packets.
//
// Two points agree unless something between them turns the packet into a different one: translated addresses or
// ports, fragmentation, offloads that merge or split segments, and the other causes that SPEC.md lists. Where
// the cause is the network card, capture beside the host, or turn its offloads off.
//
// # Tunnels
//
// Thousands of packets in a tunnel have the same outer headers, so the packet is the one inside. Parse looks
// into IP in IP, GRE (with Ethernet, PPP, MPLS and ERSPAN in it), EtherIP, MPLS over IP and UDP, and, by their
// destination port, VXLAN, VXLAN-GPE, Geneve and GTP-U. [Tunnels] says how deep, and by which ports. It does
// not look into fragments. If there is no whole IP header inside, as with ARP or encrypted traffic, the packet
// remains the outer one.
//
// # Fragments
//
// A datagram's first fragment has ports and belongs to the datagram's flow. Later fragments have no ports: they
// belong to the flow with the same addresses and protocol and ports 0, one for each pair of hosts. Their
// digests differ by identification, offset, length and first bytes.
//
// # Snap length
//
// Without a tunnel, the bytes fit a snap length of 96 even with one VLAN tag, IPv6 and TCP timestamps
// (14+4+40+32+4 = 94), and one of 64 with one tag, IPv4 and no options; 128 covers the inner packet of VXLAN
// over IPv4, and 160 that over IPv6. If a capture ends earlier, Cut is set and the missing bytes count as
// zeros: then two points agree only if both stop at the same byte of the packet.
//
// A Frame holds no reference to the bytes that it was parsed from, and can be
// reused for the next frame. It is not safe for concurrent use.
type Frame struct {
	// Tuple identifies the flow: that of the innermost packet that was looked
	// into. Only TCP, UDP, UDP-Lite, SCTP and DCCP have ports. Digest reads
	// addresses and protocol from here: to change the tuple, change a copy.
	Tuple Tuple

	// Length is the length in bytes of the outermost IP datagram, including its header, according to that
	// header. It is 0 if the header says 0, as in captures of segmentation offload and in IPv6 jumbograms.
	Length int

	rest [transportSize + 8]byte // bytes 32 to 63 of those that Digest covers

	// Tunnels is the number of tunnels that were looked into.
	Tunnels uint16

	// Fragment says that the innermost datagram is a fragment, possibly the first.
	Fragment bool

	// Cut says that the capture ends before the last byte that Digest covers.
	Cut bool
}

const (
	invariantSize = 72 // bytes that Digest covers
	transportSize = 24 // of these, from the transport
)

// Digest returns the [Digest] under seed of the bytes that do not change in transit. For a Frame that was not
// parsed, or was refused, it is that of zeros.
func (f *Frame) Digest(seed uint64) Packet {
	// In this order the compiler moves the fewest registers.
	le := binary.LittleEndian
	s, k := split(seed, key1+2*invariantSize)
	y := mix(le.Uint64(f.Tuple.Dst[8:])^bits.RotateLeft64(k, 32), le.Uint64(f.Tuple.Dst[:8])^s)
	x := mix(le.Uint64(f.Tuple.Src[8:])^k, le.Uint64(f.Tuple.Src[:8])^s)
	x = mix(le.Uint64(f.rest[:8])^s, le.Uint64(f.rest[8:16])^x)
	x = mix(le.Uint64(f.rest[16:24])^s, le.Uint64(f.rest[24:])^x)
	return Packet(mix(mix(uint64(f.Tuple.Proto)^y, le.Uint64(f.rest[24:])^x), key2))
}

// Append appends the 72 bytes that Digest covers to dst, for another family of
// hashes, such as [SipHash] if somebody may craft traffic.
func (f *Frame) Append(dst []byte) []byte {
	dst = append(append(append(dst, f.Tuple.Src[:]...), f.Tuple.Dst[:]...), f.rest[:]...)
	return binary.LittleEndian.AppendUint64(dst, uint64(f.Tuple.Proto))
}

// ClearChecksum sets the transport checksum of TCP, UDP, UDP-Lite and SCTP to zero among the bytes that Digest
// covers. A sending host fills it in last, often in the network card, so that a point inside the host does not
// see it. Both points do so, or neither.
func (f *Frame) ClearChecksum() {
	if binary.BigEndian.Uint16(f.rest[transportSize+4:]) > moreFragments {
		return // a later fragment has no such header
	}
	switch f.Tuple.Proto {
	case protoTCP:
		clear(f.rest[16:18])
	case protoUDP, protoUDPLite:
		clear(f.rest[6:8])
	case protoSCTP:
		clear(f.rest[8:12])
	}
}

// Parse reads the headers of one frame; b may hold only its first bytes. It looks into tunnels as
// [DefaultTunnels] say. It never panics and allocates nothing. On error, one of [ErrNotIP], [ErrTruncated],
// [ErrMalformed] and [ErrLink], f is the zero Frame.
func (f *Frame) Parse(link LinkType, b []byte) error {
	return f.ParseWith(link, b, &DefaultTunnels)
}

// parse is ParseWith for any frame.
func (f *Frame) parse(link LinkType, b []byte, tunnels *Tunnels) error {
	*f = Frame{}
	w := walk{b: b}
	if w.ip(kindLink + kind(link)); w.err == nil {
		f.parseIP(&w)
	}
	if w.err != nil {
		*f = Frame{}
		return w.err
	}
	f.enter(&w, tunnels)
	return nil
}
