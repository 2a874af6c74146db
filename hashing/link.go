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
	LinkNull      Link = 0   // BSD loopback: 4-byte address family, capturer's byte order
	LinkEthernet  Link = 1   // Ethernet
	LinkPPP       Link = 9   // PPP, with or without address and control bytes
	LinkRawBSD    Link = 12  // raw IP, as some BSDs number it
	LinkRawOpen   Link = 14  // raw IP, as OpenBSD numbers it
	LinkPPPSerial Link = 50  // PPP in HDLC-like framing, or Cisco HDLC
	LinkPPPoE     Link = 51  // PPPoE session
	LinkRaw       Link = 101 // raw IPv4 or IPv6
	LinkHDLC      Link = 104 // Cisco HDLC
	LinkLoop      Link = 108 // OpenBSD loopback: 4-byte address family, big-endian
	LinkCooked    Link = 113 // Linux cooked capture v1
	LinkPPPDir    Link = 204 // a byte of direction, and PPP
	LinkHDLCDir   Link = 205 // a byte of direction, and Cisco HDLC
	LinkIPv4      Link = 228 // raw IPv4
	LinkIPv6      Link = 229 // raw IPv6
	LinkIPoIB     Link = 242 // IP over InfiniBand, behind a global routing header
	LinkCooked2   Link = 276 // Linux cooked capture v2
	LinkBroadcom  Link = 281 // Ethernet with a Broadcom switch tag behind the addresses
	LinkBroadcom0 Link = 282 // Ethernet behind a Broadcom switch tag
	LinkDSA       Link = 284 // Ethernet with a Marvell switch tag behind the addresses
	LinkEDSA      Link = 285 // Ethernet with an extended Marvell switch tag
)

// typed lists the link types whose header says at a fixed place which
// EtherType follows: where that place is, and how long the header is.
var typed = [...]struct {
	link     Link
	at, size int
}{
	{LinkCooked, 14, 16},
	{LinkCooked2, 0, 20},
	{LinkHDLC, 2, 4},
	{LinkHDLCDir, 3, 5},
	{LinkIPoIB, 40, 44},
	{LinkBroadcom, 16, 18},
	{LinkBroadcom0, 16, 18},
	{LinkDSA, 16, 18},
	{LinkEDSA, 20, 22},
}

// network strips the link layer of b and returns what begins with the version
// field of an IP header.
func (l Link) network(b []byte) ([]byte, error) {
	be := binary.BigEndian
	switch l {
	case LinkEthernet:
		if len(b) < 14 {
			return nil, errTruncated
		}
		return etherPayload(be.Uint16(b[12:14]), b[14:])
	case LinkNull, LinkLoop:
		if len(b) < 4 {
			return nil, errTruncated
		}
		return familyPayload(be.Uint32(b[:4]), b[4:])
	case LinkRaw, LinkRawBSD, LinkRawOpen:
		return eitherVersion(b)
	case LinkIPv4:
		return version(4, b)
	case LinkIPv6:
		return version(6, b)
	}
	for _, t := range typed {
		if t.link == l {
			if len(b) < t.size {
				return nil, errTruncated
			}
			return etherPayload(be.Uint16(b[t.at:]), b[t.size:])
		}
	}
	return l.rare(b)
}

// rare is network for the link types with a form of their own.
func (l Link) rare(b []byte) ([]byte, error) {
	switch l {
	case LinkPPP, LinkPPPSerial:
		return serialPayload(b)
	case LinkPPPDir:
		if len(b) == 0 {
			return nil, errTruncated
		}
		return serialPayload(b[1:])
	case LinkPPPoE:
		return sessionPayload(b)
	}
	return nil, errLink
}

// familyPayload accepts the address family in either byte order: families are
// small numbers, so only one order makes sense.
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
	return nil, errNotIP
}

// version returns b if its version field is what the layer below promised.
func version(want byte, b []byte) ([]byte, error) {
	switch {
	case len(b) == 0:
		return nil, errTruncated
	case b[0]>>4 != want:
		return nil, errMalformed
	}
	return b, nil
}

// eitherVersion returns b if its version field is that of IPv4 or IPv6.
func eitherVersion(b []byte) ([]byte, error) {
	switch {
	case len(b) == 0:
		return nil, errTruncated
	case b[0]>>4 != 4 && b[0]>>4 != 6:
		return nil, errNotIP
	}
	return b, nil
}
