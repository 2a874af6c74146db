package hashing

const udpHeaderSize = 8

// tunnelPorts has each UDP destination port of a tunnel, and what it leads to, at the port's lower eight bits.
var tunnelPorts = [1 << 8]struct {
	port uint16
	kind kind
}{
	2152 & 0xff: {2152, kindGTP},
	4789 & 0xff: {4789, kindVXLAN},
	4790 & 0xff: {4790, kindVXLANGPE},
	6081 & 0xff: {6081, kindGeneve},
	6635 & 0xff: {6635, typeMPLS},
	8472 & 0xff: {8472, kindVXLAN}, // Linux began with this one
}

// Tunnels say which tunnels [Frame.ParseWith] looks into. The zero value looks into none: each tunnel is one
// flow. Points that are compared need the same Tunnels; see [Tunnels.Identity].
type Tunnels struct {
	// Depth is how many tunnels to look into, one inside another, 0 to 65,535.
	Depth int

	// VXLAN, Geneve and GTP are each one more UDP port of their kind of tunnel, or 0, besides the ports that
	// are always looked at: 4789 and 8472 for VXLAN, 4790 for VXLAN-GPE, 6081 for Geneve, 2152 for GTP-U and
	// 6635 for MPLS. Cilium, for one, can be told to use 8473.
	VXLAN, Geneve, GTP uint16
}

// DefaultTunnels are those that [Frame.Parse] looks into.
var DefaultTunnels = Tunnels{Depth: 2}

// Identity returns the Identity for the Configs of points that look into these tunnels and hash with the seed
// or key of the given fingerprint, so that points that look into other tunnels are not compared with them. For
// [DefaultTunnels] it is the given fingerprint.
func (t Tunnels) Identity(id uint64) uint64 {
	if t == (Tunnels{Depth: 2}) {
		return id
	}
	return fingerprint("tunnels", id,
		uint64(max(t.Depth, 0))<<48|uint64(t.VXLAN)<<32|uint64(t.Geneve)<<16|uint64(t.GTP))
}

// mayLead reports whether a UDP port may lead into a tunnel.
func (t *Tunnels) mayLead(port uint16) bool {
	return (tunnelPorts[uint8(port)].port == port || port == t.VXLAN || port == t.Geneve || port == t.GTP) && t.Depth > 0
}

// behind returns what the given UDP port may lead to.
func (t *Tunnels) behind(port uint16) kind {
	if at := &tunnelPorts[uint8(port)]; at.port == port && port != 0 {
		return at.kind
	}
	switch port {
	case 0:
		return kindNone
	case t.VXLAN:
		return kindVXLAN
	case t.Geneve:
		return kindGeneve
	case t.GTP:
		return kindGTP
	}
	return kindNone
}

// enter replaces f by the packet inside it, up to tunnels.Depth times. w is behind f's IP headers. If there is
// no packet to enter, f stays as it is. If only captured bytes are missing, f is cut, because a longer capture
// would be entered.
func (f *Frame) enter(w *walk, tunnels *Tunnels) {
	for depth := tunnels.Depth; depth > 0 && !f.Fragment; depth-- {
		inner := Frame{}
		if w.ip(f.carried(w, tunnels)); w.err == nil {
			inner.parseIP(w)
		}
		if w.err != nil {
			f.Cut = f.Cut || w.err == ErrTruncated
			return
		}
		inner.Length, inner.Tunnels = f.Length, f.Tunnels+1
		*f = inner
	}
}

// carried returns what the packet carries if it is of a tunnel.
func (f *Frame) carried(w *walk, tunnels *Tunnels) kind {
	switch f.Tuple.Proto {
	case protoUDP:
		k := tunnels.behind(f.Tuple.DstPort)
		if k != kindNone {
			w.skip(udpHeaderSize)
		}
		return k
	case protoIPv4:
		return typeIPv4
	case protoIPv6:
		return typeIPv6
	case protoGRE:
		return kindGRE
	case protoMPLS:
		return typeMPLS
	case protoEtherIP:
		return kindEtherIP
	}
	return kindNone
}
