package hashing

import (
	"encoding/binary"
	"math/bits"
)

// An Identifier turns bursts of frames, such as those of a capture ring, into the identities that a [Frame]
// would give them, but faster. It is read-only, and safe for concurrent use.
type Identifier struct {
	seed    uint64
	link    LinkType
	tunnels Tunnels

	// What split makes of the seed for a digest, a flow and a word; a digest rotates the second key for the destination.
	x, y, turned, flowX, flowY, wordX, wordY uint64
}

// NewIdentifier returns an Identifier of frames that begin with link, by [Frame.ParseWith], [Frame.Digest] and [Tuple.Flow].
func NewIdentifier(seed uint64, link LinkType, tunnels Tunnels) *Identifier {
	d := &Identifier{seed: seed, link: link, tunnels: tunnels}
	d.x, d.y = split(seed, key1+2*invariantSize)
	d.turned = bits.RotateLeft64(d.y, 32)
	d.flowX, d.flowY = split(seed, key3)
	d.wordX, d.wordY = split(seed, key1+2*8)
	return d
}

// Word is the digest of function Word under the seed, with one product less to wait for.
func (d *Identifier) Word(x uint64) Packet { return short(x, x, d.wordX, d.wordY) }

// Frames identifies a burst of frames and returns how many of them carry IP. It stores their identities, in order, in the
// first elements of packets and flows, and which frames they are of in those of at. These must be as long as frames, but
// flows and at may be nil.
func (d *Identifier) Frames(frames [][]byte, packets []Packet, flows []Flow, at []int) int {
	var f Frame
	n := 0
	for i := 0; i < len(frames); i++ {
		if d.link == LinkEthernet {
			quick := d.run(frames[i:], packets[n:], flows[min(n, len(flows)):])
			for k := range min(quick, len(at)) {
				at[n+k] = i + k
			}
			n, i = n+quick, i+quick
		}
		if i == len(frames) || f.ParseWith(d.link, frames[i], &d.tunnels) != nil {
			continue
		}
		packets[n] = f.Digest(d.seed)
		if flows != nil {
			flows[n] = f.Tuple.Flow(d.seed)
		}
		if at != nil {
			at[n] = i
		}
		n++
	}
	return n
}

// run identifies frames up to the first that is not plain and returns their
// number. Nothing but their identities is stored on the way.
func (d *Identifier) run(frames [][]byte, packets []Packet, flows []Flow) int {
	le, packets := binary.LittleEndian, packets[:len(frames)]
	for n, b := range frames {
	again:
		if len(b) < plainSize {
			return n
		}
		h := (*[plainSize]byte)(b)
		var src0, src1, dst0, dst1, id uint64 // the halves of the addresses
		proto, length := h[23], 0
		if isPlain4(h) {
			word := le.Uint32(h[16:20]) // length and identification
			length, id = int(bits.ReverseBytes16(uint16(word)))-20, uint64(word&^0xffff)|uint64(word)<<48
			src1, dst1 = uint64(le.Uint32(h[26:30]))<<32|prefix4, uint64(le.Uint32(h[30:34]))<<32|prefix4
		} else if isPlain6(b) {
			word := le.Uint16(h[18:20])
			length, id, proto = int(bits.ReverseBytes16(word)), uint64(word)<<48, h[20]
			src0, src1, dst0, dst1 = halves((*[32]byte)(b[22:54]))
			b = b[longer:]
			h = (*[plainSize]byte)(b)
		} else if kind := le.Uint16(h[12:14]); kind == etherVLAN || kind == etherQinQ {
			b = b[4:]
			goto again
		} else {
			return n
		}
		ports, last := bits.ReverseBytes32(le.Uint32(h[34:38])), le.Uint64(h[50:58])
		if proto == protoTCP {
			switch words := h[46] >> 4; { // as in Frame.ParseWith
			case words == 8 && length >= stamped && len(b) >= 34+stamped:
				last = uint64(uint32(last)) | uint64(le.Uint32(b[66:70]))<<32
			case words == 5 && length >= transportSize:
			case words >= 5 && length == int(words)*4:
				last = uint64(uint32(last))
			default:
				return n
			}
		} else if length < transportSize {
			return n
		} else if proto == protoUDP {
			if d.tunnels.mayLead(uint16(ports)) {
				passed := len(frames[n]) - len(b)
				if b = d.tunnels.inside(b[34:], length); b == nil || passed >= outer {
					return n // or perhaps inside a tunnel already
				}
				goto again
			}
		} else if ports = 0; proto != protoICMP && proto != protoICMPv6 {
			return n
		}
		x, y := mix(src0^d.x, src1^d.y), mix(dst0^d.x, dst1^d.turned)
		x = mix(le.Uint64(h[34:42])^d.x, le.Uint64(h[42:50])^x)
		x = mix(last^d.x, id^x)
		packets[n] = finish(id^x, uint64(proto)^y)
		if n < len(flows) {
			flows[n] = finishFlow(uint64(ports)<<16|uint64(proto), mix(src0^d.flowX, src1^d.flowY), mix(dst0^d.flowX, dst1^d.flowY))
		}
	}
	return len(frames)
}

// halves returns the words of two addresses of IPv6.
func halves(b *[32]byte) (src0, src1, dst0, dst1 uint64) {
	le := binary.LittleEndian
	return le.Uint64(b[:8]), le.Uint64(b[8:16]), le.Uint64(b[16:24]), le.Uint64(b[24:])
}
