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

// tags lists the sizes of tags by EtherType, up to and including the type that
// follows them: VLAN, IEEE 802.1BR, FabricPath, IEEE 802.1ah.
var tags = []struct {
	etherType uint16
	size      int32
}{{0x8100, 4}, {0x88a8, 4}, {0x9100, 4}, {0x9200, 4}, {0x8926, 6}, {0x8903, 16}, {0x88e7, 18}}

// PPP protocol numbers.
const (
	pppIPv4  = 0x0021
	pppIPv6  = 0x0057
	pppMPLS  = 0x0281
	pppMPLS2 = 0x0283
)

// An etherParser says where to continue after the link layer.
type etherParser struct {
	*program
	either, ip4, ip6                label // an IP header at the cursor
	ethernet, turn, labels, service label
}

// parseEthernet walks over the link layer, by EtherTypes in r2 in the byte
// order in which they were loaded. r5 counts the turns.
func (p *program) parseEthernet(either, ip4, ip6 label) {
	e := &etherParser{program: p, either: either, ip4: ip4, ip6: ip6}
	e.turn, e.labels, e.service = p.label(), p.label(), p.label()
	p.with(opMove, r5, 0)
	e.ethernet = p.here()
	p.need(14)
	p.load(half, r2, r8, 12)
	p.with(opAdd, r8, 14)
	e.parseType()
	e.parsePPPoE()
	e.parseLabels()
}

// parseType continues after the EtherType in r2. The commonest come first.
func (e *etherParser) parseType() {
	session, macsec, nsh := e.label(), e.label(), e.label()
	byType := e.here()
	e.jumpWith(ifEqual, r2, swapped(typeIPv4), e.ip4)
	e.jumpWith(ifEqual, r2, swapped(typeIPv6), e.ip6)
	sized := make([]label, len(tags))
	for i, t := range tags {
		sized[i] = e.label()
		e.jumpWith(ifEqual, r2, swapped(t.etherType), sized[i])
	}
	e.jumpWith(ifEqual, r2, swapped(typeMPLS), e.labels)
	e.jumpWith(ifEqual, r2, swapped(typeMPLS2), e.labels)
	e.jumpWith(ifEqual, r2, swapped(typePPPoE), session)
	e.jumpWith(ifEqual, r2, swapped(typeMACsec), macsec)
	e.jumpWith(ifEqual, r2, swapped(typeNSH), nsh)
	e.swap(r2, 16)
	e.jumpWith(ifGreater, r2, 1500, e.notIP)

	// LLC with a SNAP header of organisation 0: an EtherType.
	e.need(8)
	e.load(word, r2, r8, 0)
	e.jumpWith(ifNotEqual, r2, 0x0003aaaa, e.notIP)
	e.load(half, r2, r8, 4)
	e.jumpWith(ifNotEqual, r2, 0, e.notIP)
	e.skipTag(8)
	e.place(e.turn)
	e.settle()
	e.with(opAdd, r5, 1)
	e.jumpWith(ifGreater, r5, maxTags, e.deep)
	e.goTo(byType)
	for i, t := range tags {
		e.place(sized[i])
		e.skipTag(t.size)
		e.goTo(e.turn)
	}

	// MACsec without encryption, with or without an explicit channel.
	long := e.label()
	e.place(macsec)
	e.need(1)
	e.load(byte1, r2, r8, 0)
	e.move(r3, r2)
	e.with(opAnd, r3, 0x0c)
	e.jumpWith(ifNotEqual, r3, 0, e.notIP)
	e.with(opAnd, r2, 0x20)
	e.jumpWith(ifNotEqual, r2, 0, long)
	e.skipTag(8)
	e.goTo(e.turn)
	e.place(long)
	e.skipTag(16)
	e.goTo(e.turn)
	e.place(nsh)
	e.parseService()
	e.place(session)
}

// skipTag walks over a tag and sets r2 to the EtherType in the tag's last
// bytes.
func (e *etherParser) skipTag(size int32) {
	e.need(size)
	e.load(half, r2, r8, int16(size-2))
	e.with(opAdd, r8, size)
}

// parseService continues after a network service header (NSH).
func (e *etherParser) parseService() {
	e.need(8)
	e.load(byte1, r2, r8, 3)
	e.load(byte1, r3, r8, 1)
	e.with(opAnd, r3, 0x3f)
	e.with(opLeft, r3, 2)
	e.jumpWith(ifLess, r3, 8, e.malformed)
	e.do(opAdd, r8, r3)
	e.jump(ifGreater, r8, r9, e.pull)
	e.settle()
	e.jumpWith(ifEqual, r2, 1, e.ip4)
	e.jumpWith(ifEqual, r2, 2, e.ip6)
	e.jumpWith(ifEqual, r2, 5, e.labels)
	e.jumpWith(ifNotEqual, r2, 3, e.notIP)
	e.with(opAdd, r5, 1)
	e.jumpWith(ifGreater, r5, maxTags, e.deep)
	e.goTo(e.ethernet)
}

// parsePPPoE continues after a header of PPPoE session data (version 1, type
// 1, code 0), by a PPP protocol number of two bytes, or of one byte that is
// odd.
func (e *etherParser) parsePPPoE() {
	long, known := e.label(), e.label()
	e.need(6)
	e.load(half, r2, r8, 0)
	e.jumpWith(ifNotEqual, r2, 0x11, e.notIP)
	e.with(opAdd, r8, 6)
	e.need(1)
	e.load(byte1, r2, r8, 0)
	e.with(opAdd, r8, 1)
	e.move(r3, r2)
	e.with(opAnd, r3, 1)
	e.jumpWith(ifNotEqual, r3, 0, known)
	e.place(long)
	e.need(1)
	e.load(byte1, r3, r8, 0)
	e.with(opAdd, r8, 1)
	e.with(opLeft, r2, 8)
	e.do(opOr, r2, r3)
	e.place(known)
	e.jumpWith(ifEqual, r2, pppIPv4, e.ip4)
	e.jumpWith(ifEqual, r2, pppIPv6, e.ip6)
	e.jumpWith(ifEqual, r2, pppMPLS, e.labels)
	e.jumpWith(ifNotEqual, r2, pppMPLS2, e.notIP)
}

// parseLabels pops an MPLS label stack. After it comes IP, or Ethernet after
// the control word of a pseudowire, which begins with a nibble of 0.
func (e *etherParser) parseLabels() {
	bottom := e.label()
	e.place(e.labels)
	e.settle()
	for range maxLabels {
		e.need(4)
		e.load(byte1, r2, r8, 2)
		e.with(opAdd, r8, 4)
		e.with(opAnd, r2, 1)
		e.jumpWith(ifNotEqual, r2, 0, bottom)
	}
	e.goTo(e.deep)
	e.place(bottom)
	e.settle()
	e.version()
	e.jumpWith(ifNotEqual, r1, 0, e.either)
	e.need(4)
	e.with(opAdd, r8, 4)
	e.with(opAdd, r5, 1)
	e.jumpWith(ifGreater, r5, maxTags, e.deep)
	e.goTo(e.ethernet)
}
