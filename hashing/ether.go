package hashing

import "encoding/binary"

// EtherTypes, and the PPP protocol numbers of the same protocols.
const (
	typeIPv4       = 0x0800
	typeIPv6       = 0x86dd
	typeVLAN       = 0x8100 // IEEE 802.1Q
	typeQinQ       = 0x88a8 // IEEE 802.1ad
	typeQinQ9100   = 0x9100 // what came before 802.1ad
	typeQinQ9200   = 0x9200
	typeMPLS       = 0x8847
	typeMPLSMulti  = 0x8848
	typePPPoE      = 0x8864 // session stage
	typeVNTag      = 0x8926 // IEEE 802.1BR, as Cisco has it
	typeBackbone   = 0x88e7 // IEEE 802.1ah
	typeFabricPath = 0x8903
	typeMACsec     = 0x88e5
	typeNSH        = 0x894f
	maxEtherLength = 1500 // up to here the field is an IEEE 802.3 length

	pppIPv4      = 0x0021
	pppIPv6      = 0x0057
	pppMPLS      = 0x0281
	pppMPLSMulti = 0x0283
)

// tagSize returns the length of the tags of fixed size, up to and including
// the EtherType after them, or 0. Some contain the addresses of an inner
// frame.
func tagSize(etherType uint16) int {
	switch etherType {
	case typeVLAN, typeQinQ, typeQinQ9100, typeQinQ9200:
		return 4
	case typeVNTag:
		return 6
	case typeFabricPath:
		return 16
	case typeBackbone:
		return 18
	}
	return 0
}

// macsecSize is tagSize for MACsec (IEEE 802.1AE). It returns 0 if the frame
// is encrypted.
func macsecSize(b []byte) int {
	const channel, encrypted, changed = 0x20, 0x08, 0x04
	switch {
	case len(b) == 0:
		return 8
	case b[0]&(encrypted|changed) != 0:
		return 0
	case b[0]&channel != 0:
		return 16
	}
	return 8
}

// etherPayload follows an EtherType through tags, label stacks and sessions.
// Each turn consumes at least four bytes. Cooked captures number a few kinds
// of frame below 1500, where Ethernet has lengths; those that can carry IP
// have the same LLC header after it.
func etherPayload(etherType uint16, b []byte) ([]byte, error) {
	for {
		size := 0
		switch etherType {
		case typeIPv4:
			return version(4, b)
		case typeIPv6:
			return version(6, b)
		case typeMPLS, typeMPLSMulti:
			return labelledPayload(b)
		case typePPPoE:
			return sessionPayload(b)
		case typeNSH:
			return nshPayload(b)
		case typeMACsec:
			size = macsecSize(b)
		default:
			size = tagSize(etherType)
		}
		if size == 0 && etherType <= maxEtherLength {
			// LLC with a SNAP header whose organisation is 0: an EtherType.
			const snap = "\xaa\xaa\x03\x00\x00\x00"
			if string(b[:min(len(b), len(snap))]) != snap[:min(len(b), len(snap))] {
				return nil, errNotIP
			}
			size = len(snap) + 2
		}
		switch {
		case size == 0:
			return nil, errNotIP
		case len(b) < size:
			return nil, errTruncated
		}
		etherType, b = binary.BigEndian.Uint16(b[size-2:]), b[size:]
	}
}

// labelledPayload pops an MPLS label stack. Nothing in it says what follows,
// so the IP version field must (RFC 4928): where it is 0 there is a
// pseudowire's control word, and then most often Ethernet (RFC 4448).
func labelledPayload(b []byte) ([]byte, error) {
	for len(b) >= 4 {
		bottom := b[2]&1 != 0
		b = b[4:]
		if !bottom {
			continue
		}
		if len(b) > 0 && b[0]>>4 == 0 {
			if len(b) < 4 {
				return nil, errTruncated
			}
			return LinkEthernet.network(b[4:])
		}
		return eitherVersion(b)
	}
	return nil, errTruncated
}
