package hashing

import (
	"encoding/binary"
	"math/bits"
)

// A Link is the kind of link-layer header a frame begins with, by its number
// in capture files (the LINKTYPE_ registry).
type Link uint16

// The link types that [Frame] understands.
const (
	LinkNull     Link = 0   // BSD loopback: 4-byte address family, capturer's byte order
	LinkEthernet Link = 1   // Ethernet
	LinkRawBSD   Link = 12  // raw IP, as some BSDs number it
	LinkRawOpen  Link = 14  // raw IP, as OpenBSD numbers it
	LinkRaw      Link = 101 // raw IPv4 or IPv6
	LinkLoop     Link = 108 // OpenBSD loopback: 4-byte address family, big-endian
	LinkCooked   Link = 113 // Linux cooked capture v1
	LinkIPv4     Link = 228 // raw IPv4
	LinkIPv6     Link = 229 // raw IPv6
	LinkCooked2  Link = 276 // Linux cooked capture v2
)

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
	maxEtherLength = 1500   // up to here the field is an IEEE 802.3 length

	pppIPv4 = 0x0021
	pppIPv6 = 0x0057
	pppMPLS = 0x0281
)

// network strips the link layer of b and returns what begins with the version
// field of an IP header.
func (l Link) network(b []byte) ([]byte, error) {
	be := binary.BigEndian
	switch l {
	case LinkEthernet:
		if len(b) < 14 {
			return nil, ErrTruncated
		}
		return etherPayload(be.Uint16(b[12:14]), b[14:])
	case LinkCooked:
		if len(b) < 16 {
			return nil, ErrTruncated
		}
		return etherPayload(be.Uint16(b[14:16]), b[16:])
	case LinkCooked2:
		if len(b) < 20 {
			return nil, ErrTruncated
		}
		return etherPayload(be.Uint16(b[:2]), b[20:])
	case LinkNull, LinkLoop:
		if len(b) < 4 {
			return nil, ErrTruncated
		}
		return familyPayload(be.Uint32(b[:4]), b[4:])
	case LinkRaw, LinkRawBSD, LinkRawOpen:
		return eitherVersion(b)
	case LinkIPv4:
		return version(4, b)
	case LinkIPv6:
		return version(6, b)
	}
	return nil, ErrLink
}

// etherPayload follows an EtherType through tags, label stacks and sessions.
// Each turn consumes at least four bytes. Cooked captures number a few kinds
// of frame below 1500, where Ethernet has lengths; those that can carry IP
// have the same LLC header after it.
func etherPayload(etherType uint16, b []byte) ([]byte, error) {
	be := binary.BigEndian
	for {
		switch etherType {
		case typeIPv4:
			return version(4, b)
		case typeIPv6:
			return version(6, b)
		case typeVLAN, typeQinQ, typeQinQ9100, typeQinQ9200:
			if len(b) < 4 {
				return nil, ErrTruncated
			}
			etherType, b = be.Uint16(b[2:4]), b[4:]
		case typeMPLS, typeMPLSMulti:
			return labelledPayload(b)
		case typePPPoE:
			return sessionPayload(b)
		default:
			if etherType > maxEtherLength {
				return nil, ErrNotIP
			}
			// LLC with a SNAP header whose organisation is 0: an EtherType.
			const snap = "\xaa\xaa\x03\x00\x00\x00"
			if string(b[:min(len(b), len(snap))]) != snap[:min(len(b), len(snap))] {
				return nil, ErrNotIP
			}
			if len(b) < 8 {
				return nil, ErrTruncated
			}
			etherType, b = be.Uint16(b[6:8]), b[8:]
		}
	}
}

// labelledPayload pops an MPLS label stack. Nothing in it says what follows,
// so the IP version field must (RFC 4928).
func labelledPayload(b []byte) ([]byte, error) {
	for len(b) >= 4 {
		bottom := b[2]&1 != 0
		b = b[4:]
		if bottom {
			return eitherVersion(b)
		}
	}
	return nil, ErrTruncated
}

// sessionPayload strips a PPPoE session header and the PPP protocol number
// (RFC 2516).
func sessionPayload(b []byte) ([]byte, error) {
	if len(b) < 8 {
		return nil, ErrTruncated
	}
	if b[0] != 0x11 || b[1] != 0 {
		return nil, ErrNotIP // version 1, type 1, code 0: session data
	}
	switch binary.BigEndian.Uint16(b[6:8]) {
	case pppIPv4:
		return version(4, b[8:])
	case pppIPv6:
		return version(6, b[8:])
	case pppMPLS:
		return labelledPayload(b[8:])
	}
	return nil, ErrNotIP
}

// familyPayload takes the address family in either byte order: families are
// small numbers, so one order alone makes sense.
func familyPayload(family uint32, b []byte) ([]byte, error) {
	if family > 0xffff {
		family = bits.ReverseBytes32(family)
	}
	switch family {
	case 2:
		return version(4, b)
	case 10, 23, 24, 28, 30: // Linux, Windows, NetBSD and OpenBSD, FreeBSD, Darwin
		return version(6, b)
	}
	return nil, ErrNotIP
}

// version returns b if its version field is what the layer below promised.
func version(want byte, b []byte) ([]byte, error) {
	switch {
	case len(b) == 0:
		return nil, ErrTruncated
	case b[0]>>4 != want:
		return nil, ErrMalformed
	}
	return b, nil
}

// eitherVersion returns b if its version field is that of IPv4 or IPv6.
func eitherVersion(b []byte) ([]byte, error) {
	switch {
	case len(b) == 0:
		return nil, ErrTruncated
	case b[0]>>4 != 4 && b[0]>>4 != 6:
		return nil, ErrNotIP
	}
	return b, nil
}
