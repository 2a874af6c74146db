package hashing

import (
	"encoding/binary"
	"math/bits"
)

// An Identifier turns bursts of frames into the identities that a [Frame] would
// give them, faster, where no tuple is needed: in a data path, or a tap that takes
// frames off a ring. It is read-only, and safe for concurrent use.
type Identifier struct {
	seed    uint64
	link    Link
	tunnels Tunnels

	x, y, flowX, flowY uint64     // what split makes of the seed, for a digest and for a flow
	ports              [16]uint64 // lower ten bits of the UDP ports that may lead into tunnels
}

// NewIdentifier returns an Identifier of frames that begin with link: the
// digest of [Frame.Digest] and the flow of [Tuple.Flow] under seed, as parsed
// by [Frame.ParseWith].
func NewIdentifier(seed uint64, link Link, tunnels Tunnels) *Identifier {
	d := &Identifier{seed: seed, link: link, tunnels: tunnels}
	d.x, d.y = split(seed, key1+2*invariantSize)
	d.flowX, d.flowY = split(seed, key3)
	if tunnels.Depth > 0 {
		d.ports = likelyPorts
		for _, port := range []uint16{tunnels.VXLAN, tunnels.Geneve, tunnels.GTP} {
			d.ports[port>>6&15] |= 1 << (port & 63)
		}
	}
	return d
}

// Frames identifies a burst of frames and returns how many of them carry IP.
// It stores their identities, in order, in the first elements of packets and
// flows, and which frames they are of in those of at. These must be as long as
// frames, but flows and at may be nil.
func (d *Identifier) Frames(frames [][]byte, packets []Packet, flows []Flow, at []int) int {
	var f Frame
	n, plain := 0, d.link == LinkEthernet // two others in a row, and the rest takes the slow way
	for i := 0; i < len(frames); i++ {
		if plain {
			quick := d.run(frames[i:], packets[n:], flows[min(n, len(flows)):])
			plain = quick > 0
			for ; quick > 0; quick-- {
				if at != nil {
					at[n] = i
				}
				n++
				i++
			}
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
	for n, b := range frames {
		if len(b) < plainSize || n >= len(packets) {
			return n
		}
		kind := le.Uint16(b[12:14])
		if kind != etherIPv4 && kind != etherIPv6 {
			b = plainTags(b)
			kind = le.Uint16(b[12:14])
		}
		h := (*[plainSize]byte)(b)
		var s0, s1, t0, t1, id uint64 // source and destination
		var length int
		proto := h[23]
		if kind == etherIPv4 {
			first := le.Uint64(h[14:22])
			if !isPlain(first) {
				return n
			}
			s1, t1, id, length = plainIPv4(first, le.Uint64(h[26:34]))
		} else {
			if kind != etherIPv6 || len(b) < plainSize+longer || b[14]>>4 != 6 {
				return n
			}
			s0, s1, t0, t1 = le.Uint64(b[22:30]), le.Uint64(b[30:38]), le.Uint64(b[38:46]), le.Uint64(b[46:54])
			size := le.Uint16(b[18:20])
			length, id = int(bits.ReverseBytes16(size)), uint64(size)<<48
			proto = b[20]
			b = b[longer:]
			h = (*[plainSize]byte)(b)
		}
		ports := bits.ReverseBytes32(le.Uint32(h[34:38]))
		last := le.Uint64(h[50:58])
		if proto == protoTCP {
			size, ok := int(h[46]&0xf0)>>2, false
			if last, ok = plainTCP(b, last, size, length-size); !ok {
				return n
			}
		} else if length < transportSize {
			return n
		} else if proto == protoUDP {
			if d.ports[ports>>6&15]>>(ports&63)&1 != 0 {
				return n
			}
		} else if proto == protoICMP || proto == protoICMPv6 {
			ports = 0
		} else {
			return n
		}
		x, y := mix(s0^d.x, s1^d.y), mix(t0^d.x, t1^bits.RotateLeft64(d.y, 32))
		x = mix(le.Uint64(h[34:42])^d.x, le.Uint64(h[42:50])^x)
		x = mix(last^d.x, id^x)
		packets[n] = finish(id^x, uint64(proto)^y)
		if n < len(flows) {
			flows[n] = finishFlow(uint64(ports)<<16|uint64(proto), mix(s0^d.flowX, s1^d.flowY), mix(t0^d.flowX, t1^d.flowY))
		}
	}
	return len(frames)
}
