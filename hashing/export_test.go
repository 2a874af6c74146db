package hashing

// Exported to the tests, which are in package hashing_test.
var Split = split

const (
	LinkNull      = linkNull
	LinkPPP       = linkPPP
	LinkHDLC      = linkHDLC
	LinkLoop      = linkLoop
	LinkCooked    = linkCooked
	LinkIPv4      = linkIPv4
	LinkIPv6      = linkIPv6
	LinkIPoIB     = linkIPoIB
	LinkCooked2   = linkCooked2
	LinkBroadcom  = linkBroadcom
	LinkBroadcom0 = linkBroadcom0
	LinkDSA       = linkDSA
	LinkEDSA      = linkEDSA
)
