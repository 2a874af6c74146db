package hashing

import "encoding/binary"

// radiotapPayload strips the description that a wireless adapter puts before a
// frame.
func radiotapPayload(b []byte) ([]byte, error) {
	if len(b) < 4 {
		return nil, errTruncated
	}
	size := int(binary.LittleEndian.Uint16(b[2:]))
	switch {
	case b[0] != 0 || size < 8:
		return nil, errNotIP
	case size > len(b):
		return nil, errTruncated
	}
	return wirelessPayload(b[size:])
}

// wirelessPayload strips the header of an IEEE 802.11 data frame that is not
// encrypted and does not combine several frames. Such a frame is as it was on
// the air; an access point makes another of it.
func wirelessPayload(b []byte) ([]byte, error) {
	const (
		kind, data         = 0x0c, 0x08 // and version 0
		noData, quality    = 0x40, 0x80 // of the first byte
		bothWays           = 0x03       // of the second
		encrypted, control = 0x40, 0x80
		aggregate          = 0x80 // of the quality field
	)
	if len(b) < 24 {
		return nil, errTruncated
	}
	size := 24
	if b[1]&bothWays == bothWays {
		size += 6
	}
	switch {
	case b[0]&(kind|3) != data || b[0]&noData != 0 || b[1]&encrypted != 0:
		return nil, errNotIP
	case b[22]&0x0f != 0: // only the first fragment has a header of its own
		return nil, errNotIP
	}
	if b[0]&quality != 0 {
		size += 2
		if len(b) < size {
			return nil, errTruncated
		}
		if b[size-2]&aggregate != 0 {
			return nil, errNotIP
		}
		if b[1]&control != 0 {
			size += 4
		}
	}
	if len(b) < size {
		return nil, errTruncated
	}
	return etherPayload(0, b[size:])
}

// arcnetPayload strips an ARCNET header as Linux captures it. It has 8 bytes
// with a sequence number, except for the oldest encapsulation of IP.
func arcnetPayload(b []byte) ([]byte, error) {
	const ipv4, ipv4Old, ipv6, at = 212, 240, 196, 4
	if len(b) < 8 {
		return nil, errTruncated
	}
	switch kind, flag := b[at], b[at+1]; {
	case kind == ipv4Old:
		return version(4, b[at+1:])
	case flag != 0 || kind != ipv4 && kind != ipv6: // or a part of a packet
		return nil, errNotIP
	case kind == ipv4:
		return version(4, b[8:])
	}
	return version(6, b[8:])
}

// logPayload finds the packet among the attributes of a netfilter log message.
// They are in the byte order of the capturing host, which nearly always has the
// low byte first.
func logPayload(b []byte) ([]byte, error) {
	const payload = 9
	if len(b) < 4 {
		return nil, errTruncated
	}
	for b = b[4:]; len(b) >= 4; {
		size, kind := int(binary.LittleEndian.Uint16(b)), binary.LittleEndian.Uint16(b[2:])
		switch {
		case size < 4:
			return nil, errMalformed
		case kind == payload:
			return eitherVersion(b[4:min(size, len(b))])
		}
		b = b[min((size+3)&^3, len(b)):]
	}
	return nil, errTruncated
}
