package hashing

import "encoding/binary"

// sessionPayload strips a PPPoE session header (RFC 2516).
func sessionPayload(b []byte) ([]byte, error) {
	if len(b) < 6 {
		return nil, errTruncated
	}
	if b[0] != 0x11 || b[1] != 0 {
		return nil, errNotIP // version 1, type 1, code 0: session data
	}
	return pppPayload(b[6:])
}

// pppPayload follows a PPP protocol number, which takes one byte if that byte
// is odd (RFC 1661, section 6.5).
func pppPayload(b []byte) ([]byte, error) {
	if len(b) == 0 {
		return nil, errTruncated
	}
	protocol, size := uint16(b[0]), 1
	if b[0]&1 == 0 {
		if len(b) < 2 {
			return nil, errTruncated
		}
		protocol, size = binary.BigEndian.Uint16(b), 2
	}
	switch protocol {
	case pppIPv4:
		return version(4, b[size:])
	case pppIPv6:
		return version(6, b[size:])
	case pppMPLS, pppMPLSMulti:
		return labelledPayload(b[size:])
	}
	return nil, errNotIP
}

// serialPayload is pppPayload for data in which HDLC's address and control
// bytes may come first (RFC 1662), or Cisco HDLC, whose first byte differs.
func serialPayload(b []byte) ([]byte, error) {
	if len(b) < 2 {
		return nil, errTruncated
	}
	switch {
	case b[0] == 0xff && b[1] == 0x03:
		return pppPayload(b[2:])
	case b[0] == 0x0f || b[0] == 0x8f:
		if len(b) < 4 {
			return nil, errTruncated
		}
		return etherPayload(binary.BigEndian.Uint16(b[2:]), b[4:])
	}
	return pppPayload(b)
}

// relayPayload strips a Frame Relay header: an address of two to four bytes,
// the last of them odd, and then a control byte of 3 and a protocol number
// (RFC 2427) or, in Cisco's form, an EtherType.
func relayPayload(b []byte) ([]byte, error) {
	size := 0
	for size < len(b) && size < 4 && b[size]&1 == 0 {
		size++
	}
	size++
	if len(b) < size+3 {
		return nil, errTruncated
	}
	if size < 2 || size > 4 {
		return nil, errNotIP
	}
	b = b[size:]
	const control, ipv4, ipv6, snap = 0x03, 0xcc, 0x8e, 0x80
	if b[0] != control {
		return etherPayload(binary.BigEndian.Uint16(b), b[2:])
	}
	b = b[1:]
	if b[0] == 0 { // padding
		b = b[1:]
	}
	switch protocol := b[0]; {
	case protocol == ipv4:
		return version(4, b[1:])
	case protocol == ipv6:
		return version(6, b[1:])
	case protocol != snap:
		return nil, errNotIP
	case len(b) < 6:
		return nil, errTruncated
	case b[1] == 0 && b[2] == 0 && b[3] == 0: // an EtherType
		return etherPayload(binary.BigEndian.Uint16(b[4:]), b[6:])
	case string(b[1:4]) == "\x00\x80\xc2" && b[4] == 0 && (b[5] == 1 || b[5] == 7): // Ethernet
		return LinkEthernet.network(b[6:])
	}
	return nil, errNotIP
}
