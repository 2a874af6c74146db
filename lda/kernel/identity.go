package kernel

import (
	"github.com/hoplag/hoplag/hashing"
)

// The place of the transport checksum in the bytes of [hashing.Frame.Append],
// and of the bytes that say whether there is one.
const (
	atTransport = 32
	atFragment  = 60
	atProtocol  = 64
	frameSize   = 72

	protoTCP     = 6
	protoUDP     = 17
	protoDCCP    = 33
	protoSCTP    = 132
	protoUDPLite = 136
)

// Digest returns the identity of a frame for a Point without Checksums: the
// digest under seed of the bytes that [hashing.Frame.Digest] covers, with the
// checksum of TCP, UDP, UDP-Lite and SCTP set to zero. A sending host fills
// that in last, usually in the network card, so a point inside the host does
// not see it. Use Digest at the other point if that is not a Point but, say, a
// capture. Parse its frames with [hashing.Frame.ParseDepth] and depth 0,
// because a Point looks into no tunnel.
func Digest(seed uint64, f *hashing.Frame) hashing.Packet {
	var b [frameSize]byte
	f.Append(b[:0])
	if b[atFragment] == 0 && b[atFragment+1]&^1 == 0 { // the first fragment has the checksum
		at := b[atTransport:]
		switch b[atProtocol] {
		case protoTCP:
			clear(at[16:18])
		case protoUDP, protoUDPLite:
			clear(at[6:8])
		case protoSCTP:
			clear(at[8:12])
		}
	}
	return hashing.Digest(seed, b[:])
}

// Fingerprint returns the Identity for the Configs of a Point's synopses, and
// of those that are compared with them. It is the seed's fingerprint if
// checksums are part of the packets' identity, and another one if not.
func Fingerprint(seed uint64, checksums bool) uint64 {
	if checksums {
		return hashing.Fingerprint(seed)
	}
	return hashing.Mix(hashing.Fingerprint(seed), 1)
}
