package kernel

import (
	"github.com/hoplag/hoplag/hashing"
)

// The transport checksum's place in the bytes of [hashing.Frame.Append], and
// those that say whether there is one.
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

// Digest returns what a Point without Checksums takes a frame for: the digest
// under seed of the bytes that [hashing.Frame.Digest] covers, the checksum of
// TCP, UDP, UDP-Lite and SCTP taken for zero. A sending host fills that in
// last, in the network card as a rule, so that a point inside the host does
// not see it. For the other point, where that is not a Point: a capture, say.
// It parses frames by [hashing.Frame.ParseDepth] with depth 0, as a Point looks
// into no tunnel.
func Digest(seed uint64, f *hashing.Frame) hashing.Packet {
	var b [frameSize]byte
	f.Append(b[:0])
	if b[atFragment] == 0 && b[atFragment+1]&^1 == 0 { // of fragments the first has the checksum
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

// Fingerprint returns the Identity of the Configs of a Point's synopses, and
// of those that are compared with them: that of the seed where checksums are
// part of the packets, and another where they are not.
func Fingerprint(seed uint64, checksums bool) uint64 {
	if checksums {
		return hashing.Fingerprint(seed)
	}
	return hashing.Mix(hashing.Fingerprint(seed), 1)
}
