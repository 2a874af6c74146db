package hashing

import (
	"encoding/binary"
	"math/bits"
)

// A LinkType is the kind of link-layer header that a frame begins with, by its number in capture files
// (LINKTYPE_ of tcpdump.org). Frame understands the numbers 0 and 108 (BSD loopback), 1 (Ethernet), 9 (PPP),
// 101, 228 and 229 (raw IP), 104 (Cisco HDLC), 113 and 276 (Linux cooked captures, v1 and v2), 242 (IP over
// InfiniBand), and Ethernet with the tag of a switch: 281 and 282 (Broadcom), 284 and 285 (Marvell).
type LinkType uint16

// The link types that most frames have.
const (
	LinkEthernet LinkType = 1
	LinkRaw      LinkType = 101 // raw IPv4 or IPv6
)

const (
	linkNull      LinkType = 0   // BSD loopback: 4-byte address family, capturer's byte order
	linkPPP       LinkType = 9   // PPP, with or without address and control bytes
	linkHDLC      LinkType = 104 // Cisco HDLC
	linkLoop      LinkType = 108 // OpenBSD loopback: 4-byte address family, big-endian
	linkCooked    LinkType = 113 // Linux cooked capture v1
	linkIPv4      LinkType = 228 // raw IPv4
	linkIPv6      LinkType = 229 // raw IPv6
	linkIPoIB     LinkType = 242 // IP over InfiniBand, behind a global routing header
	linkCooked2   LinkType = 276 // Linux cooked capture v2
	linkBroadcom  LinkType = 281 // Ethernet with a Broadcom switch tag behind the addresses
	linkBroadcom0 LinkType = 282 // Ethernet behind a Broadcom switch tag
	linkDSA       LinkType = 284 // Ethernet with a Marvell switch tag behind the addresses
	linkEDSA      LinkType = 285 // Ethernet with an extended Marvell switch tag
)

// A kind says what comes next in a frame: an EtherType, a link type beginning at kindLink, or one of what else
// comes before an IP header.
type kind uint32

// EtherTypes. Those of tunnels occur in GRE and Geneve only.
const (
	maxEtherLength kind = 1500 // up to here the field is an IEEE 802.3 length
	typeIPv4       kind = 0x0800
	typeIPv6       kind = 0x86dd
	typeVLAN       kind = 0x8100 // IEEE 802.1Q
	typeQinQ       kind = 0x88a8 // IEEE 802.1ad
	typeQinQ9100   kind = 0x9100 // what came before 802.1ad
	typeQinQ9200   kind = 0x9200
	typeMPLS       kind = 0x8847
	typeMPLSMulti  kind = 0x8848
	typePPPoE      kind = 0x8864 // session stage
	typeVNTag      kind = 0x8926 // IEEE 802.1BR, as Cisco has it
	typeBackbone   kind = 0x88e7 // IEEE 802.1ah
	typeFabricPath kind = 0x8903
	typeMACsec     kind = 0x88e5
	typeNSH        kind = 0x894f
	typeBridged    kind = 0x6558 // of tunnels: Ethernet
	typePPP        kind = 0x880b // of tunnels
	typeERSPAN     kind = 0x88be // of tunnels: version I, or II if the GRE header has a sequence number
	typeERSPANIII  kind = 0x22eb // of tunnels
)

const (
	kindNone   kind = 1<<16 + iota // nothing that carries IP
	kindEither                     // IPv4 or IPv6, by the version field
	kindPPP                        // a PPP protocol number
	kindEtherIP
	kindGRE
	kindVXLAN
	kindVXLANGPE
	kindGeneve
	kindGTP

	kindLink     kind = 2 << 16
	kindEthernet      = kindLink + kind(LinkEthernet)
)

// A walk goes from header to header. Nothing that it returns counts once it has an error: the first reason why
// it cannot go on.
type walk struct {
	b   []byte // what follows
	err error
}

// zeros are more than any header that is looked at as a whole.
var zeros [64]byte

// check notes a reason to stop, unless all is well.
func (w *walk) check(ok bool, err error) {
	if !ok && w.err == nil {
		w.err = err
	}
}

// look returns the next n bytes, or zeros if they were not captured.
func (w *walk) look(n int) []byte {
	if len(w.b) < n {
		w.check(false, ErrTruncated)
		return zeros[:n]
	}
	return w.b[:n]
}

// skip passes n bytes.
func (w *walk) skip(n int) {
	w.check(len(w.b) >= n, ErrTruncated)
	w.b = w.b[min(n, len(w.b)):]
}

// take is look and skip.
func (w *walk) take(n int) []byte {
	b := w.look(n)
	w.skip(n)
	return b
}

// ip goes from what is of kind k to the version field of an IP header.
func (w *walk) ip(k kind) {
	for w.err == nil {
		switch k {
		case typeIPv4, kindLink + kind(linkIPv4):
			w.check(w.look(1)[0]>>4 == 4, ErrMalformed)
			return
		case typeIPv6, kindLink + kind(linkIPv6):
			w.check(w.look(1)[0]>>4 == 6, ErrMalformed)
			return
		case kindEither, kindLink + kind(LinkRaw):
			version := w.look(1)[0] >> 4
			w.check(version == 4 || version == 6, ErrNotIP)
			return
		}
		if size, at := typed(k); size > 0 {
			k = kind(binary.BigEndian.Uint16(w.take(size)[at:]))
		} else if k >= kindLink {
			k = w.link(LinkType(k - kindLink))
		} else {
			k = w.next(k)
		}
	}
}

// typed returns the size of a header that says at a fixed place which EtherType follows, and that place, or 0.
// Some contain the addresses of an inner frame.
func typed(k kind) (size, at int) {
	switch k {
	case kindEthernet:
		return 14, 12
	case typeVLAN, typeQinQ, typeQinQ9100, typeQinQ9200, kindLink + kind(linkHDLC):
		return 4, 2
	case typeVNTag:
		return 6, 4
	case typeFabricPath, kindLink + kind(linkCooked):
		return 16, 14
	case typeBackbone, kindLink + kind(linkBroadcom), kindLink + kind(linkBroadcom0), kindLink + kind(linkDSA):
		return 18, 16
	case kindLink + kind(linkCooked2):
		return 20, 0
	case kindLink + kind(linkIPoIB):
		return 44, 40
	case kindLink + kind(linkEDSA):
		return 22, 20
	}
	return 0, 0
}

// link passes the headers of the other link types.
func (w *walk) link(l LinkType) kind {
	switch l {
	case linkNull, linkLoop:
		// Families are small numbers, so only one byte order makes sense.
		family := binary.BigEndian.Uint32(w.take(4))
		if family > 0xffff {
			family = bits.ReverseBytes32(family)
		}
		switch family {
		case 2:
			return typeIPv4
		case 10, 23, 24, 28, 30: // Linux, Windows, NetBSD and OpenBSD, FreeBSD, Darwin
			return typeIPv6
		}
		return kindNone
	case linkPPP:
		if b := w.look(2); b[0] == 0xff && b[1] == 0x03 { // address and control (RFC 1662)
			w.skip(2)
		}
		return kindPPP
	}
	w.check(false, ErrLink)
	return kindNone
}

// next passes one header that is neither of fixed form nor of a link.
func (w *walk) next(k kind) kind {
	switch k {
	case typeMPLS, typeMPLSMulti:
		// The version field says what follows a label stack (RFC 4928): where it is 0 there is a pseudowire's
		// control word, and then Ethernet (RFC 4448).
		for w.take(4)[2]&1 == 0 && w.err == nil {
		}
		if w.look(1)[0]>>4 != 0 {
			return kindEither
		}
		w.skip(4)
		return kindEthernet
	case typePPPoE: // RFC 2516: version 1, type 1, code 0 of session data
		b := w.take(6)
		w.check(b[0] == 0x11 && b[1] == 0, ErrNotIP)
		return kindPPP
	case kindPPP:
		return w.ppp()
	case typeMACsec: // IEEE 802.1AE
		const channel, encrypted, changed = 0x20, 0x08, 0x04
		flags, size := w.look(1)[0], 8
		if flags&channel != 0 {
			size = 16
		}
		w.check(flags&(encrypted|changed) == 0, ErrNotIP)
		return kind(binary.BigEndian.Uint16(w.take(size)[size-2:]))
	case typeNSH: // RFC 8300
		b := w.look(8)
		size := int(b[1]&0x3f) * 4
		w.check(size >= 8, ErrMalformed)
		w.skip(size)
		w.check(b[3] != 4, ErrNotIP) // no header within itself
		return service(b[3])
	case kindEtherIP: // RFC 3378
		w.check(w.take(2)[0] == 0x30, ErrNotIP)
		return kindEthernet
	case kindGRE, kindVXLAN, kindVXLANGPE, kindGeneve, kindGTP:
		return w.tunnel(k)
	}
	if k <= maxEtherLength {
		// LLC with a SNAP header whose organisation is 0: an EtherType.
		const snap = "\xaa\xaa\x03\x00\x00\x00"
		n := min(len(w.b), len(snap))
		w.check(string(w.b[:n]) == snap[:n], ErrNotIP)
		return kind(binary.BigEndian.Uint16(w.take(len(snap) + 2)[len(snap):]))
	}
	w.check(false, ErrNotIP)
	return kindNone
}

// ppp passes a PPP protocol number, which takes one byte if that byte is odd (RFC 1661, section 6.5).
func (w *walk) ppp() kind {
	protocol := uint16(w.look(1)[0])
	if protocol&1 == 0 {
		protocol = binary.BigEndian.Uint16(w.look(2))
		w.skip(1)
	}
	w.skip(1)
	switch protocol {
	case 0x0021:
		return typeIPv4
	case 0x0057:
		return typeIPv6
	case 0x0281, 0x0283:
		return typeMPLS
	}
	return kindNone
}

// service returns the kind of the next protocol of VXLAN-GPE and NSH.
func service(next byte) kind {
	kinds := [...]kind{kindNone, typeIPv4, typeIPv6, kindEthernet, typeNSH, typeMPLS, kindNone}
	return kinds[min(int(next), len(kinds)-1)]
}

// tunnel passes the header of a tunnel.
func (w *walk) tunnel(k kind) kind {
	switch k {
	case kindGRE:
		return w.gre()
	case kindGTP:
		return w.gtp()
	case kindGeneve: // RFC 8926, with options; version 0
		b := w.look(8)
		w.check(b[0]>>6 == 0, ErrNotIP)
		w.skip(8 + int(b[0]&0x3f)*4)
		return bridged(kind(binary.BigEndian.Uint16(b[2:])))
	}
	// VXLAN (RFC 7348). The generic one (draft-ietf-nvo3-vxlan-gpe) says what follows.
	const identified, generic = 0x08, 0x04
	b := w.take(8)
	w.check(b[0]&identified != 0, ErrNotIP)
	if k == kindVXLANGPE && b[0]&generic != 0 {
		return service(b[3])
	}
	return kindEthernet
}

// bridged returns the kind of an EtherType that may also be Ethernet itself.
func bridged(k kind) kind {
	if k == typeBridged {
		return kindEthernet
	}
	return k
}

// gtp passes the header of user data in GTP (3GPP TS 29.281, 5.1).
func (w *walk) gtp() kind {
	const version1, userData = 3, 255 // and not GTP'
	b := w.take(8)
	flags := b[0]
	w.check(flags>>4 == version1 && b[1] == userData, ErrNotIP)
	if flags&7 == 0 {
		return kindEither
	}
	// Four more bytes end in the kind of the next extension header, as each of these does behind its length in
	// words.
	next := w.take(4)[3]
	for flags&4 != 0 && next != 0 && w.err == nil {
		size := int(w.look(1)[0]) * 4
		w.check(size > 0, ErrMalformed)
		w.skip(max(size, 1) - 1)
		next = w.take(1)[0]
	}
	return kindEither
}

// gre passes a GRE header (RFC 2784, RFC 2890; RFC 2637 for PPP).
func (w *walk) gre() kind {
	const checksum, routing, key, sequence, acknowledgement, version = 0x8000, 0x4000, 0x2000, 0x1000, 0x0080, 7
	b := w.take(4)
	flags, k := binary.BigEndian.Uint16(b), kind(binary.BigEndian.Uint16(b[2:]))
	ppp := flags&version == 1 && k == typePPP
	w.check(flags&routing == 0 && (flags&version == 0 || ppp), ErrNotIP)
	w.skip(4 * bits.OnesCount16(flags&(checksum|key|sequence)))
	switch {
	case k == typeERSPAN && flags&sequence != 0:
		w.skip(8)
	case k == typeERSPANIII:
		if w.take(12)[11]&1 != 0 { // a subheader of the platform
			w.skip(8)
		}
	case ppp && flags&acknowledgement != 0:
		w.skip(4)
	}
	switch k {
	case typeERSPAN, typeERSPANIII:
		return kindEthernet
	case typePPP:
		return kindPPP
	}
	return bridged(k)
}
