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

	// What split makes of the seed for a digest and for a flow, those of IPv4 with the prefix of its addresses;
	// a digest rotates the second key for the destination.
	x, y, y4, turned, turned4, flowX, flowY, flowY4 uint64
}

// NewIdentifier returns an Identifier of frames that begin with link: the digest of [Frame.Digest] and the flow of
// [Tuple.Flow] under seed, as parsed by [Frame.ParseWith].
func NewIdentifier(seed uint64, link LinkType, tunnels Tunnels) *Identifier {
	d := &Identifier{seed: seed, link: link, tunnels: tunnels}
	d.x, d.y = split(seed, key1+2*invariantSize)
	d.turned = bits.RotateLeft64(d.y, 32)
	d.flowX, d.flowY = split(seed, key3)
	d.y4, d.turned4, d.flowY4 = d.y^prefix4, d.turned^prefix4, d.flowY^prefix4
	return d
}

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
	le := binary.LittleEndian
	packets = packets[:len(frames)]
	for n, b := range frames {
	again:
		if len(b) < plainSize {
			return n
		}
		h := (*[plainSize]byte)(b)
		var x, y, id uint64
		proto, length, plain4 := h[23], 0, isPlain4(h)
		if plain4 {
			word := le.Uint32(h[16:20]) // length and identification
			length, id = int(bits.ReverseBytes16(uint16(word)))-20, uint64(word&^0xffff)|uint64(word)<<48
			x, y = mix4(le.Uint64(h[26:34]), d.x, d.y4, d.turned4)
		} else if isPlain6(b) {
			word := le.Uint16(h[18:20])
			length, id, proto = int(bits.ReverseBytes16(word)), uint64(word)<<48, h[20]
			x, y = mix6((*[32]byte)(b[22:54]), d.x, d.y, d.turned)
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
			var ok bool
			if last, ok = plainTCP(b, last, h[46]>>4, length); !ok {
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
		x = mix(le.Uint64(h[34:42])^d.x, le.Uint64(h[42:50])^x)
		x = mix(last^d.x, id^x)
		packets[n] = finish(id^x, uint64(proto)^y)
		if n < len(flows) {
			if plain4 {
				x, y = mix4(le.Uint64(h[26:34]), d.flowX, d.flowY4, d.flowY4)
			} else {
				x, y = mix6((*[32]byte)(h[22-longer:54-longer]), d.flowX, d.flowY, d.flowY)
			}
			flows[n] = finishFlow(uint64(ports)<<16|uint64(proto), x, y)
		}
	}
	return len(frames)
}

// plainTCP completes the last word of a TCP header of the given number of words,
// like Frame.ParseWith. Header and payload have length bytes.
func plainTCP(b []byte, last uint64, words byte, length int) (uint64, bool) {
	switch {
	case words == 8 && length >= stamped && len(b) >= 34+stamped:
		return uint64(uint32(last)) | uint64(binary.LittleEndian.Uint32(b[66:70]))<<32, true
	case words == 5 && length >= transportSize:
		return last, true
	case words >= 5 && length == int(words)*4:
		return uint64(uint32(last)), true
	}
	return 0, false
}

// mix4 mixes the addresses of IPv4, source and destination, with keys that have the prefix in them.
func mix4(addresses, x, source, destination uint64) (s, d uint64) {
	return mix(x, addresses<<32^source), mix(x, addresses>>32<<32^destination)
}

// mix6 mixes the addresses of IPv6.
func mix6(b *[32]byte, x, source, destination uint64) (s, d uint64) {
	le := binary.LittleEndian
	return mix(le.Uint64(b[:8])^x, le.Uint64(b[8:16])^source), mix(le.Uint64(b[16:24])^x, le.Uint64(b[24:])^destination)
}
