package kernel

// Limits of the number of headers of each kind that the program follows. hashing.Frame follows any number of
// tags and labels.
const (
	maxTags       = 8
	maxLabels     = 8
	maxExtensions = 16
	maxOffset     = 0x7fff // of a header in the frame
)

// IP protocols.
const (
	protoHopByHop    = 0
	protoRouting     = 43
	protoFragment    = 44
	protoAH          = 51
	protoNone        = 59
	protoDestination = 60

	unknownLength = 1<<31 - 1
)

// parse walks from the first byte of the frame to the transport header, and puts on the stack what identifies
// the packet. It refuses the same frames as hashing.Frame, for the same reasons and in the same order.
func (p *program) parse() {
	either, ip4, ip6, transport := p.label(), p.label(), p.label(), p.label()
	p.loadEnds()
	p.move(r8, r7)
	if !p.raw {
		p.parseEthernet(either, ip4, ip6)
	}
	p.place(either)
	p.settle()
	p.version()
	p.jumpWith(ifEqual, r1, 4, ip4)
	p.jumpWith(ifNotEqual, r1, 6, p.notIP)
	p.place(ip6)
	p.settle()
	p.version()
	p.jumpWith(ifNotEqual, r1, 6, p.malformed)
	p.parseIPv6()
	p.goTo(transport)
	p.place(ip4)
	p.settle()
	p.version()
	p.jumpWith(ifNotEqual, r1, 4, p.malformed)
	p.parseIPv4()
	p.place(transport)
	p.settle()
	p.rest()
	p.parseTransport()
}

// settle leaves the cursor where it is, but makes the verifier forget how it got there, so that what follows is
// verified once and not once for each way. It leaves the cursor's offset in r1.
func (p *program) settle() {
	p.move(r1, r8)
	p.do(opSub, r1, r7)
	p.jumpWith(ifGreater, r1, maxOffset, p.deep)
	p.loadData()
	p.move(r8, r7)
	p.do(opAdd, r8, r1)
	here := p.label() // the verifier compares what it knows only at targets of jumps
	p.goTo(here)
	p.place(here)
}

// version sets r1 to the version of the IP header at the cursor.
func (p *program) version() {
	p.need(1)
	p.load(byte1, r1, r8, 0)
	p.with(opRight, r1, 4)
}

// bound puts on the stack where in the frame the IP packet begins, or its payload, from which the length r3 in
// its header counts; and where it ends.
func (p *program) bound() {
	p.move(r1, r8)
	p.do(opSub, r1, r7)
	p.store(double, fp, stackNetwork, r1)
	p.do(opAdd, r1, r3)
	p.store(double, fp, stackEnd, r1)
}

// rest sets r3 to the number of bytes in the packet after the cursor, whose offset is in r1.
func (p *program) rest() {
	p.load(double, r3, fp, stackEnd)
	p.do(opSub, r3, r1)
}

// parseIPv4 prepares what parseTransport needs.
func (p *program) parseIPv4() {
	p.need(20)
	numbered := p.label() // though nobody may fragment it
	p.storeValue(double, fp, stackStep, 1)
	p.load(word, r1, r8, 4)
	p.with(opAnd, r1, swapped(0x4000)<<16|0xffff)
	p.jumpWith(ifNotEqual, r1, swapped(0x4000)<<16, numbered)
	p.storeValue(double, fp, stackStep, unlessTCP)
	p.place(numbered)
	p.load(byte1, r2, r8, 0)
	p.with(opAnd, r2, 15)
	p.with(opLeft, r2, 2) // size of the header
	p.jumpWith(ifLess, r2, 20, p.malformed)
	p.load(half, r5, r8, 2)
	p.move(r3, r5)
	p.with(opLeft, r5, 48)
	p.swap(r3, 16)
	known := p.label()
	p.jumpWith(ifNotEqual, r3, 0, known)
	p.with(opMove, r3, unknownLength)
	p.place(known)
	p.jump(ifLess, r3, r2, p.malformed)
	p.bound()

	// Identification, fragment offset, total length.
	whole := p.label()
	p.load(half, r1, r8, 4)
	p.with(opLeft, r1, 16)
	p.do(opOr, r5, r1)
	p.load(half, r4, r8, 6)
	p.with(opAnd, r4, swapped(0x3fff)) // without the flags "reserved" and "do not fragment"
	p.jumpWith(ifEqual, r4, 0, whole)
	p.swap(r4, 16)
	p.move(r1, r4)
	p.with(opRight, r1, 13) // more fragments
	p.with(opLeft, r4, 3)
	p.with(opAnd, r4, 0xffff)
	p.do(opOr, r1, r4)
	p.swap(r1, 16)
	p.with(opLeft, r1, 32)
	p.do(opOr, r5, r1)
	p.place(whole)
	p.store(double, fp, stackID, r5)

	for _, address := range []struct{ from, to int16 }{{12, stackSource}, {16, stackDestination}} {
		p.load(word, r1, r8, address.from)
		p.with(opLeft, r1, 32)
		p.set(r5, 0xffff0000) // IPv4-mapped
		p.do(opOr, r1, r5)
		p.storeValue(double, fp, address.to, 0)
		p.store(double, fp, address.to+8, r1)
	}
	p.load(byte1, r5, r8, 9)
	p.do(opAdd, r8, r2)
	p.jump(ifGreater, r8, r9, p.pull)
}

// parseIPv6 walks over the extension headers and prepares what parseTransport needs. r0 counts them.
func (p *program) parseIPv6() {
	p.need(40)
	for i := range int16(4) {
		p.load(double, r1, r8, 8+8*i)
		p.store(double, fp, stackSource+8*i, r1)
	}
	p.load(half, r3, r8, 4)
	p.move(r1, r3)
	p.with(opLeft, r1, 48)
	p.store(double, fp, stackID, r1)
	p.swap(r3, 16)
	p.load(byte1, r5, r8, 6)
	known, header, done := p.label(), p.label(), p.label()
	p.jumpWith(ifNotEqual, r3, 0, known)
	p.jumpWith(ifEqual, r5, protoNone, known)
	p.with(opMove, r3, unknownLength)
	p.place(known)
	p.with(opAdd, r8, 40)
	p.bound()
	p.storeValue(double, fp, stackStep, 0)
	p.with(opMove, r4, 0)
	p.with(opMove, r0, 0)

	p.settle()
	next := p.here()
	p.rest()
	for _, proto := range []int32{protoHopByHop, protoRouting, protoFragment, protoAH, protoDestination} {
		p.jumpWith(ifEqual, r5, proto, header)
	}
	p.goTo(done)
	p.place(header)
	p.parseExtension()
	p.with(opAdd, r0, 1)
	p.settle()
	p.jumpWith(ifEqual, r4, 0, next)
	p.place(done)
}

// parseExtension walks over one extension header of kind r5. r3 is the rest of the packet. If the packet is a
// fragment after the first, r4 is set to its place.
func (p *program) parseExtension() {
	p.jumpWith(ifEqual, r0, maxExtensions, p.malformed)
	p.jumpWith(ifLess, r3, 8, p.malformed)
	p.need(8)
	fragment, authentication, sized, done := p.label(), p.label(), p.label(), p.label()
	p.load(byte1, r2, r8, 1)
	p.jumpWith(ifEqual, r5, protoFragment, fragment)
	p.with(opLeft, r2, 2)
	p.jumpWith(ifEqual, r5, protoAH, authentication)
	p.with(opLeft, r2, 1)
	p.place(authentication)
	p.with(opAdd, r2, 8)
	p.goTo(sized)

	p.place(fragment)
	p.load(half, r4, r8, 2)
	p.with(opAnd, r4, swapped(0xfff9)) // without the reserved bits
	p.load(half, r2, fp, stackID+6)
	p.with(opLeft, r2, 16)
	p.do(opOr, r2, r4)
	p.with(opLeft, r2, 32)
	p.load(word, r1, r8, 4)
	p.do(opOr, r2, r1)
	p.store(double, fp, stackID, r2)
	p.with(opAnd, r4, swapped(0xfff8)) // all but the first fragment
	p.with(opMove, r2, 8)

	p.place(sized)
	p.jump(ifGreater, r2, r3, p.malformed)
	p.discount()
	p.move(r1, r8)
	p.do(opAdd, r1, r2)
	p.jump(ifGreater, r1, r9, p.pull)
	p.jumpWith(ifNotEqual, r5, protoRouting, done)
	p.setFinal(done)
	p.place(done)
	p.load(byte1, r5, r8, 0)
	p.do(opAdd, r8, r2)
}

// discount takes a header of r2 bytes off the length, which counts from behind it.
func (p *program) discount() {
	p.load(double, r1, fp, stackNetwork)
	p.do(opAdd, r1, r2)
	p.store(double, fp, stackNetwork, r1)
	unknown := p.label()
	p.load(half, r1, fp, stackID+6)
	p.jumpWith(ifEqual, r1, 0, unknown)
	p.swap(r1, 16)
	p.do(opSub, r1, r2)
	p.swap(r1, 16)
	p.store(half, fp, stackID+6, r1)
	p.place(unknown)
}

// setFinal sets the destination to that of the last segment, if a routing header of r2 bytes at the cursor
// still has segments to visit.
func (p *program) setFinal(done label) {
	list, copied := p.label(), p.label()
	p.load(byte1, r1, r8, 3)
	p.jumpWith(ifEqual, r1, 0, done)
	p.jumpWith(ifLess, r2, 8+16, done)
	p.load(byte1, r1, r8, 2)
	p.jumpWith(ifEqual, r1, 0, list)
	p.jumpWith(ifEqual, r1, 2, list)
	p.jumpWith(ifNotEqual, r1, 4, done)
	p.need(8 + 16)
	p.move(r1, r8)
	p.with(opAdd, r1, 8)
	p.goTo(copied)
	p.place(list)
	p.move(r1, r2)
	p.with(opSub, r1, 16)
	p.do(opAdd, r1, r8)
	p.place(copied)
	p.with(opAdd, r1, 16)
	p.jump(ifGreater, r1, r9, p.pull)
	for i := range int16(2) {
		p.load(double, r5, r1, 8*i-16)
		p.store(double, fp, stackDestination+8*i, r5)
	}
}
