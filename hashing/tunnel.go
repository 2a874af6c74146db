package hashing

import "encoding/binary"

// UDP destination ports of tunnels.
const (
	portGTP       = 2152
	portVXLAN     = 4789
	portVXLANGPE  = 4790
	portGeneve    = 6081
	portMPLS      = 6635
	portVXLANOld  = 8472 // Linux began with this one
	udpHeaderSize = 8
)

// EtherTypes that occur only in tunnels.
const (
	typeBridged   = 0x6558 // Ethernet
	typePPP       = 0x880b
	typeERSPAN    = 0x88be // version I, or II if the GRE header has a sequence number
	typeERSPANIII = 0x22eb
)

// Tunnels say which tunnels [Frame.ParseWith] looks into. The zero value looks
// into none: each tunnel is one flow. Two points that are compared need the
// same Tunnels; see [Tunnels.Identity].
type Tunnels struct {
	// Depth is how many tunnels to look into, one inside another.
	Depth int

	// VXLAN, Geneve and GTP are each a further UDP port of their kind of tunnel,
	// beside the ports that are always looked at: 4789 and 8472 for VXLAN, 4790
	// for VXLAN-GPE, 6081 for Geneve, 2152 for GTP-U and 6635 for MPLS. Cilium,
	// for one, can be told to use 8473. 0 is none.
	VXLAN, Geneve, GTP uint16
}

// DefaultTunnels are those that [Frame.Parse] looks into.
var DefaultTunnels = Tunnels{Depth: 2}

// Identity returns the fingerprint of points that look into these tunnels and
// hash by the seed or key with the given fingerprint, for the Identity of their
// Configs. Points that look into others, and so identify other packets, have
// another one: they are not compared. For [DefaultTunnels] it is the given one.
func (t Tunnels) Identity(id uint64) uint64 {
	if t == (Tunnels{Depth: 2}) {
		return id
	}
	return fingerprint("tunnels", id,
		uint64(max(t.Depth, 0))<<48|uint64(t.VXLAN)<<32|uint64(t.Geneve)<<16|uint64(t.GTP))
}

// kind returns the first port of the tunnels that the given UDP port may lead
// into, or 0.
func (t *Tunnels) kind(port uint16) uint16 {
	switch port {
	case 0:
		return 0
	case portGTP, portVXLAN, portVXLANGPE, portGeneve, portMPLS:
		return port
	case portVXLANOld, t.VXLAN:
		return portVXLAN
	case t.Geneve:
		return portGeneve
	case t.GTP:
		return portGTP
	}
	return 0
}

// enter replaces f by the packet inside it, up to tunnels.Depth times. payload
// is what follows f's IP headers. If there is no packet to enter, f stays as it
// is. If only captured bytes are missing, f is cut, because a longer capture
// would be entered.
func (f *Frame) enter(payload []byte, tunnels *Tunnels) {
	for depth := tunnels.Depth; depth > 0 && !f.Fragment; depth-- {
		var inner Frame
		packet, err := f.carried(payload, tunnels)
		if err == nil {
			payload, err = inner.parseIP(packet)
		}
		if err != nil {
			f.Cut = f.Cut || err == errTruncated
			return
		}
		inner.Length, inner.Tunnels = f.Length, f.Tunnels+1
		*f = inner
	}
}

// carried returns the IP packet in a tunnel's payload, from the version field
// of its header on.
func (f *Frame) carried(b []byte, tunnels *Tunnels) ([]byte, error) {
	switch f.Tuple.Proto {
	case protoUDP:
		return udpPayload(b, f.Tuple.DstPort, tunnels)
	case protoIPv4:
		return version(4, b)
	case protoIPv6:
		return version(6, b)
	case protoGRE:
		return grePayload(b)
	case protoMPLS:
		return labelledPayload(b)
	case protoEtherIP: // RFC 3378
		if len(b) < 2 {
			return nil, errTruncated
		}
		if b[0] == 0x30 {
			return LinkEthernet.network(b[2:])
		}
	}
	return nil, errNotIP
}

// udpPayload follows the UDP destination port of a tunnel.
func udpPayload(b []byte, port uint16, tunnels *Tunnels) ([]byte, error) {
	kind := tunnels.kind(port)
	if kind == 0 {
		return nil, errNotIP
	}
	if len(b) < udpHeaderSize+4 {
		return nil, errTruncated
	}
	b = b[udpHeaderSize:]
	switch kind {
	case portVXLAN, portVXLANGPE:
		return vxlanPayload(b, kind == portVXLANGPE)
	case portGeneve:
		return genevePayload(b)
	case portGTP:
		return gtpPayload(b)
	}
	return labelledPayload(b)
}

// vxlanPayload strips a VXLAN header (RFC 7348). The generic one
// (draft-ietf-nvo3-vxlan-gpe) says what follows.
func vxlanPayload(b []byte, generic bool) ([]byte, error) {
	if len(b) < 8 {
		return nil, errTruncated
	}
	flags, next := b[0], b[3]
	b = b[8:]
	if flags&0x08 == 0 {
		return nil, errNotIP // no network identifier
	}
	if generic && flags&0x04 != 0 {
		return servicePayload(next, b)
	}
	return LinkEthernet.network(b)
}

// servicePayload follows the next protocol of VXLAN-GPE and NSH (RFC 8300).
func servicePayload(next byte, b []byte) ([]byte, error) {
	switch next {
	case 1:
		return version(4, b)
	case 2:
		return version(6, b)
	case 3:
		return LinkEthernet.network(b)
	case 4:
		return nshPayload(b)
	case 5:
		return labelledPayload(b)
	}
	return nil, errNotIP
}

// nshPayload strips a network service header, which gives its length in words.
func nshPayload(b []byte) ([]byte, error) {
	if len(b) < 8 {
		return nil, errTruncated
	}
	size, next := int(b[1]&0x3f)*4, b[3]
	switch {
	case size < 8:
		return nil, errMalformed
	case size > len(b):
		return nil, errTruncated
	case next == 4:
		return nil, errNotIP // no header within itself
	}
	return servicePayload(next, b[size:])
}

// genevePayload strips a Geneve header and its options (RFC 8926).
func genevePayload(b []byte) ([]byte, error) {
	if len(b) < 8 {
		return nil, errTruncated
	}
	size := 8 + int(b[0]&0x3f)*4
	if b[0]>>6 != 0 {
		return nil, errNotIP // another version
	}
	if size > len(b) {
		return nil, errTruncated
	}
	return bridgedPayload(binary.BigEndian.Uint16(b[2:4]), b[size:])
}

// bridgedPayload is etherPayload for a type that may also be Ethernet.
func bridgedPayload(etherType uint16, b []byte) ([]byte, error) {
	if etherType == typeBridged {
		return LinkEthernet.network(b)
	}
	return etherPayload(etherType, b)
}

// gtpPayload strips the header of user data in GTP (3GPP TS 29.281, 5.1).
func gtpPayload(b []byte) ([]byte, error) {
	if len(b) < 8 {
		return nil, errTruncated
	}
	const userData = 255
	flags := b[0]
	if flags>>4 != 3 || b[1] != userData { // version 1, not GTP'
		return nil, errNotIP
	}
	if flags&7 == 0 {
		return eitherVersion(b[8:])
	}
	// Four more bytes end in the kind of the next extension header. Each of
	// them says its length in words, and ends so, too.
	if len(b) < 12 {
		return nil, errTruncated
	}
	kind := b[11]
	b = b[12:]
	for flags&4 != 0 && kind != 0 {
		if len(b) == 0 {
			return nil, errTruncated
		}
		size := int(b[0]) * 4
		if size == 0 {
			return nil, errMalformed
		}
		if size > len(b) {
			return nil, errTruncated
		}
		kind, b = b[size-1], b[size:]
	}
	return eitherVersion(b)
}

// grePayload strips a GRE header (RFC 2784, RFC 2890; RFC 2637 for PPP).
func grePayload(b []byte) ([]byte, error) {
	if len(b) < 4 {
		return nil, errTruncated
	}
	const checksum, routing, key, sequence, acknowledgement = 0x8000, 0x4000, 0x2000, 0x1000, 0x0080
	flags, etherType := binary.BigEndian.Uint16(b[:2]), binary.BigEndian.Uint16(b[2:4])
	size := 4
	for _, field := range [...]uint16{checksum, key, sequence} {
		if flags&field != 0 {
			size += 4
		}
	}
	pointToPoint := flags&7 == 1 && etherType == typePPP
	if pointToPoint && flags&acknowledgement != 0 {
		size += 4
	}
	switch {
	case flags&routing != 0, flags&7 != 0 && !pointToPoint:
		return nil, errNotIP
	case etherType == typeERSPAN && flags&sequence != 0:
		size += 8
	case etherType == typeERSPANIII:
		size += 12
		if len(b) < size {
			return nil, errTruncated
		}
		if b[size-1]&1 != 0 { // a subheader of the platform
			size += 8
		}
	}
	if size > len(b) {
		return nil, errTruncated
	}
	b = b[size:]
	switch etherType {
	case typeERSPAN, typeERSPANIII:
		return LinkEthernet.network(b)
	case typePPP:
		return pppPayload(b)
	}
	return bridgedPayload(etherType, b)
}
