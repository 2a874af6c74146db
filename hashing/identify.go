package hashing

import (
	"encoding/binary"
	"math/bits"
)

// An Identifier turns frames into the identities that a [Frame] would give
// them, faster, for who needs no tuple: a data path, or a tap that takes frames
// off a ring in bursts.
//
// It is read-only, and safe for concurrent use.
type Identifier struct {
	seed    uint64
	link    Link
	tunnels Tunnels

	// What split makes of the seed, for a digest and for a flow; and of the
	// UDP ports that may lead into tunnels the lower ten bits.
	x, y, flowX, flowY uint64
	ports              [16]uint64
	inside             *Identifier // of what is in a tunnel
}

// quickDepth bounds the identifiers of what is inside others.
const quickDepth = 4

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
		if tunnels.Depth <= quickDepth {
			tunnels.Depth--
			d.inside = NewIdentifier(seed, LinkEthernet, tunnels)
		}
	}
	return d
}

// Frame identifies one frame. Its error is that of [Frame.Parse].
func (d *Identifier) Frame(b []byte) (p Packet, f Flow, err error) {
	if d.link != LinkEthernet || !d.plain(b, &p, &f) {
		err = d.parse(b, &p, &f)
	}
	return p, f, err
}

// Frames identifies a burst of frames and returns how many of them carry IP.
// It stores their identities, in order, in the first elements of packets and
// flows, and which frames they are of in those of at. These must be as long as
// frames, but flows and at may be nil.
func (d *Identifier) Frames(frames [][]byte, packets []Packet, flows []Flow, at []int) int {
	n, ethernet := 0, d.link == LinkEthernet
	for i, b := range frames {
		var flow *Flow
		if flows != nil {
			flow = &flows[n]
		}
		if !ethernet || !d.plain(b, &packets[n], flow) {
			if d.parse(b, &packets[n], flow) != nil {
				continue
			}
		}
		if at != nil {
			at[n] = i
		}
		n++
	}
	return n
}

// parse identifies any frame. flow may be nil.
func (d *Identifier) parse(b []byte, packet *Packet, flow *Flow) error {
	var f Frame
	if err := f.ParseWith(d.link, b, &d.tunnels); err != nil {
		return err
	}
	*packet = f.Digest(d.seed)
	if flow != nil {
		*flow = f.Tuple.Flow(d.seed)
	}
	return nil
}

// plain is Frame.ParseWith of a plain packet that is in no tunnel, with Digest
// and Flow, without what they need being stored between them.
func (d *Identifier) plain(b []byte, packet *Packet, flow *Flow) bool {
	if len(b) < plainSize {
		return false
	}
	le := binary.LittleEndian
	kind := le.Uint16(b[12:14])
	if kind != etherIPv4 && kind != etherIPv6 {
		b = plainTags(b)
		kind = le.Uint16(b[12:14])
	}
	var s0, s1, t0, t1, id uint64 // source and destination
	var length int
	var ok bool
	proto := b[23]
	if kind == etherIPv4 {
		first := le.Uint64(b[14:22])
		if !isPlain(first) {
			return false
		}
		s1, t1, id, length = plainIPv4(first, le.Uint64(b[26:34]))
	} else {
		if kind != etherIPv6 || len(b) < plainSize+longer || b[14]>>4 != 6 {
			return false
		}
		s0, s1, t0, t1 = le.Uint64(b[22:30]), le.Uint64(b[30:38]), le.Uint64(b[38:46]), le.Uint64(b[46:54])
		size := le.Uint16(b[18:20])
		length, id = int(bits.ReverseBytes16(size)), uint64(size)<<48
		proto = b[20]
		b = b[longer:]
	}

	h := (*[plainSize]byte)(b)
	ports := bits.ReverseBytes32(le.Uint32(h[34:38]))
	last := le.Uint64(h[50:58])
	if proto == protoTCP {
		size := int(h[46]&0xf0) >> 2
		if last, ok = plainTCP(b, last, size, length-size); !ok {
			return false
		}
	} else if length < transportSize {
		return false
	} else if proto == protoUDP {
		if d.ports[ports>>6&15]>>(ports&63)&1 != 0 {
			inner := d.tunnels.vxlan(b[34:min(len(b), 34+length)], uint16(ports))
			return inner != nil && d.inside != nil && d.inside.plain(inner, packet, flow)
		}
	} else if proto == protoICMP || proto == protoICMPv6 {
		ports = 0
	} else {
		return false
	}
	x, y := mix(s0^d.x, s1^d.y), mix(t0^d.x, t1^bits.RotateLeft64(d.y, 32))
	x = mix(le.Uint64(h[34:42])^d.x, le.Uint64(h[42:50])^x)
	x = mix(last^d.x, id^x)
	*packet = finish(id^x, uint64(proto)^y)
	if flow != nil {
		*flow = finishFlow(uint64(ports)<<16|uint64(proto), mix(s0^d.flowX, s1^d.flowY), mix(t0^d.flowX, t1^d.flowY))
	}
	return true
}
