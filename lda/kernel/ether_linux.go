package kernel

// EtherTypes.
const (
	typeIPv4   = 0x0800
	typeIPv6   = 0x86dd
	typeMPLS   = 0x8847
	typeMPLS2  = 0x8848
	typePPPoE  = 0x8864
	typeMACsec = 0x88e5
	typeNSH    = 0x894f
)

// vlanTypes are EtherTypes before a tag of 4 bytes. rareTypes are those of tags that hashing.Frame follows but
// the program does not: PPPoE, IEEE 802.1BR, FabricPath, IEEE 802.1ah, MACsec and NSH.
var (
	vlanTypes = []uint16{0x8100, 0x88a8, 0x9100, 0x9200}
	rareTypes = []uint16{typePPPoE, 0x8926, 0x8903, 0x88e7, typeMACsec, typeNSH}
)

// parseEthernet walks over the link layer, by EtherTypes in r2 in the byte order in which they were loaded, to
// an IP header. r5 counts the tags.
func (p *program) parseEthernet(either, ip4, ip6 label) {
	tag, labels := p.label(), p.label()
	p.with(opMove, r5, 0)
	p.need(14)
	p.load(half, r2, r8, 12)
	p.with(opAdd, r8, 14)
	byType := p.here()
	p.jumpWith(ifEqual, r2, swapped(typeIPv4), ip4)
	p.jumpWith(ifEqual, r2, swapped(typeIPv6), ip6)
	for _, t := range vlanTypes {
		p.jumpWith(ifEqual, r2, swapped(t), tag)
	}
	p.jumpWith(ifEqual, r2, swapped(typeMPLS), labels)
	p.jumpWith(ifEqual, r2, swapped(typeMPLS2), labels)
	for _, t := range rareTypes {
		p.jumpWith(ifEqual, r2, swapped(t), p.deep)
	}
	p.swap(r2, 16)
	p.jumpWith(ifGreater, r2, 1500, p.notIP)

	// LLC with a SNAP header of organisation 0 has an EtherType.
	p.need(8)
	p.load(word, r2, r8, 0)
	p.jumpWith(ifEqual, r2, 0x0003aaaa, p.deep)
	p.goTo(p.notIP)

	p.place(tag)
	p.need(4)
	p.load(half, r2, r8, 2)
	p.with(opAdd, r8, 4)
	p.settle()
	p.with(opAdd, r5, 1)
	p.jumpWith(ifGreater, r5, maxTags, p.deep)
	p.goTo(byType)
	p.place(labels)
	p.parseLabels(either)
}

// parseLabels pops an MPLS label stack, after which comes IP. Ethernet after the control word of a pseudowire,
// which begins with a nibble of 0, is not followed.
func (p *program) parseLabels(either label) {
	bottom := p.label()
	p.settle()
	for range maxLabels {
		p.need(4)
		p.load(byte1, r2, r8, 2)
		p.with(opAdd, r8, 4)
		p.with(opAnd, r2, 1)
		p.jumpWith(ifNotEqual, r2, 0, bottom)
	}
	p.goTo(p.deep)
	p.place(bottom)
	p.settle()
	p.version()
	p.jumpWith(ifEqual, r1, 0, p.deep)
	p.goTo(either)
}
