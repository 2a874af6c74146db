package kernel

import (
	"github.com/hoplag/hoplag/hashing"
)

// The number of bytes that [hashing.Frame.Append] gives, and the protocols that have ports or checksums.
const (
	frameSize = 72

	protoTCP     = 6
	protoUDP     = 17
	protoDCCP    = 33
	protoSCTP    = 132
	protoUDPLite = 136
)

// Digest returns the identity of a frame for a Point: the digest under seed after
// [hashing.Frame.ClearChecksum]. A sending host fills in the checksum last, usually in the network card, so a
// point inside the host does not see it. Use Digest at the other point if that is not a Point but a capture,
// say. Parse its frames with [hashing.Frame.ParseWith] and no [hashing.Tunnels], because a Point looks into
// none.
func Digest(seed uint64, f *hashing.Frame) hashing.Packet {
	unsummed := *f
	unsummed.ClearChecksum()
	return unsummed.Digest(seed)
}

// Fingerprint returns the Identity for the Configs of a Point's synopses, and of those that are compared with
// them. It covers that no tunnels are looked into, and that checksums are not part of a packet's identity.
func Fingerprint(seed uint64) uint64 {
	return hashing.Mix(hashing.Tunnels{}.Identity(hashing.Fingerprint(seed)), 1)
}
