package hashing

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
