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
