package hashing

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
)

// A Flow is a keyed digest of a flow's 5-tuple. Two points agree on it when they use the same seed.
type Flow uint64

// A Tuple is a flow's 5-tuple. IPv4 addresses have their IPv4-mapped IPv6 form, so that 10.0.0.1 and
// ::ffff:10.0.0.1 are one address. A Tuple is comparable and can be the key of a map.
type Tuple struct {
	Src, Dst         [16]byte
	DstPort, SrcPort uint16 // host order, so that Flow loads both at once; 0 if the protocol has no ports
	Proto            uint8  // IP protocol number: 6 TCP, 17 UDP
}

// MakeTuple returns the 5-tuple of a flow from src to dst. An invalid address becomes ::, and a zone, which
// names an interface of one host, is dropped.
func MakeTuple(proto uint8, src, dst netip.AddrPort) Tuple {
	return Tuple{
		Src: src.Addr().As16(), Dst: dst.Addr().As16(),
		SrcPort: src.Port(), DstPort: dst.Port(),
		Proto: proto,
	}
}

// Source returns the tuple's source, an IPv4-mapped address as IPv4.
func (t *Tuple) Source() netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom16(t.Src).Unmap(), t.SrcPort)
}

// Destination returns the tuple's destination, an IPv4-mapped address as IPv4.
func (t *Tuple) Destination() netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom16(t.Dst).Unmap(), t.DstPort)
}

// Reverse returns the tuple of the opposite direction.
func (t *Tuple) Reverse() Tuple {
	return Tuple{Src: t.Dst, Dst: t.Src, SrcPort: t.DstPort, DstPort: t.SrcPort, Proto: t.Proto}
}

// Flow returns the tuple's digest under seed. Like [Digest] it is stable across processes, machines and
// releases, and its bits are independent of Digest's over the same bytes. Against someone who knows the seed,
// use [SipHash] over the bytes of [Tuple.Append].
func (t *Tuple) Flow(seed uint64) Flow {
	le := binary.LittleEndian
	x, y := split(seed, key3)
	src := mix(le.Uint64(t.Src[:8])^x, le.Uint64(t.Src[8:])^y)
	dst := mix(le.Uint64(t.Dst[:8])^x, le.Uint64(t.Dst[8:])^y)
	ports := uint64(uint32(t.DstPort)|uint32(t.SrcPort)<<16)<<16 | uint64(t.Proto)
	return finishFlow(ports, src, dst)
}

// finishFlow joins what the addresses became. The rotation keeps the two directions of a flow apart.
func finishFlow(ports, src, dst uint64) Flow {
	return Flow(mix(mix(ports^src, bits.RotateLeft64(dst, 32)), key5))
}

// Append appends the tuple's 37 canonical bytes for use with another hash: source and destination address,
// source and destination port (big-endian), protocol.
func (t *Tuple) Append(dst []byte) []byte {
	dst = append(append(dst, t.Src[:]...), t.Dst[:]...)
	dst = binary.BigEndian.AppendUint16(dst, t.SrcPort)
	dst = binary.BigEndian.AppendUint16(dst, t.DstPort)
	return append(dst, t.Proto)
}
