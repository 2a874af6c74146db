package kernel

// maxSegments is the number of segments of a bundle that the program follows: 64 KiB in segments of 256 bytes,
// or 370 KiB at an MTU of 1,500. The verifier walks through each of them.
const maxSegments = 256

// tunnelPorts are destination ports of tunnels in UDP: VXLAN, Linux's first choice for it and Cilium's,
// VXLAN-GPE, Geneve, GTP-U, MPLS. A bundle of theirs is cut inside.
var tunnelPorts = []uint16{4789, 8472, 8473, 4790, 6081, 2152, 6635}

// bundle turns what is on the stack into the first segment of a bundle (GSO or GRO). r0 is the payload of every
// segment but the last, r4 tells fragments, and r5 is the protocol. Segments have the headers of the bundle
// except for lengths, the identification, which rises by one or is always 0, sequence numbers, and flags that
// only the first or the last one has. Bundles are made and taken apart by just these rules.
func (p *program) bundle() {
	udp, known := p.label(), p.label()
	p.storeValue(double, fp, stackFlags, 0)
	p.jumpWith(ifNotEqual, r4, 0, p.lump)
	p.jumpWith(ifEqual, r5, protoUDP, udp)
	p.jumpWith(ifNotEqual, r5, protoTCP, p.lump)
	p.load(byte1, r2, fp, stackTransport+12)
	p.with(opRight, r2, 4)
	p.with(opLeft, r2, 2)
	p.jumpWith(ifLess, r2, 20, p.lump)
	p.goTo(known)
	p.place(udp)
	p.load(half, r2, fp, stackTransport+2)
	for _, port := range tunnelPorts {
		p.jumpWith(ifEqual, r2, swapped(port), p.lump)
	}
	p.load(double, r1, fp, stackStep)
	p.with(opAdd, r1, 1)
	p.with(opRight, r1, 1)
	p.store(double, fp, stackStep, r1)
	p.with(opMove, r2, 8)
	p.place(known)

	p.move(r1, r8)
	p.do(opSub, r1, r7)
	p.do(opAdd, r1, r2)
	p.load(word, r3, r6, bufferLength)
	p.do(opSub, r3, r1) // payload of all segments
	p.jump(ifSignedAtMost, r3, r0, p.count)
	p.store(double, fp, stackPayload, r1)
	p.store(double, fp, stackSize, r0)
	p.store(double, fp, stackSegments, r3)
	p.with(opMul, r0, maxSegments)
	p.jump(ifGreater, r3, r0, p.lump)
	p.load(double, r2, fp, stackNetwork)
	p.do(opSub, r1, r2)
	p.store(double, fp, stackLength, r1)
	p.storeValue(double, fp, stackCount, 0)
	p.load(double, r1, fp, stackLane)
	p.store(double, r1, 8*laneProto, r5)
	p.load(double, r2, fp, stackStep)
	p.with(opAnd, r2, 1)
	p.store(double, r1, 8*laneStep, r2)
	p.jumpWith(ifEqual, r5, protoUDP, p.segment)

	// Only the last segment has FIN and PSH.
	p.load(byte1, r1, fp, stackTransport+13)
	p.move(r2, r1)
	p.with(opAnd, r2, 0x09)
	p.store(double, fp, stackFlags, r2)
	p.with(opAnd, r1, 0xf6)
	p.store(byte1, fp, stackTransport+13, r1)
	p.goTo(p.segment)
}

// segments adds each segment of a bundle to the cells.
func (p *program) segments() {
	p.place(p.segment)
	p.completeSegment()
	p.digest()
	p.blind(r8, r1)
	if p.after != nil {
		p.after(p)
	}
	p.updateLDA()

	p.load(double, r1, fp, stackSegments)
	p.jumpWith(ifEqual, r1, 0, p.out)
	p.load(double, r1, fp, stackCount)
	p.jumpWith(ifEqual, r1, maxSegments, p.out) // never: bundle made sure
	p.with(opAdd, r1, 1)
	p.store(double, fp, stackCount, r1)

	p.load(half, r1, fp, stackID+2)
	p.swap(r1, 16)
	p.load(double, r3, fp, stackLane)
	p.load(double, r2, r3, 8*laneStep)
	p.do(opAdd, r1, r2)
	p.swap(r1, 16)
	p.store(half, fp, stackID+2, r1)
	p.load(double, r1, r3, 8*laneProto)
	p.jumpWith(ifNotEqual, r1, protoTCP, p.segment)
	p.load(word, r1, fp, stackTransport+4)
	p.swap(r1, 32)
	p.load(double, r2, fp, stackSize)
	p.do(opAdd, r1, r2)
	p.swap(r1, 32)
	p.store(word, fp, stackTransport+4, r1)
	p.load(byte1, r1, fp, stackTransport+13)
	p.with(opAnd, r1, 0x7f) // CWR belongs to the first segment
	p.store(byte1, fp, stackTransport+13, r1)
	p.goTo(p.segment)
}

// completeSegment fills in what depends on the segment's length and on whether it is the last one.
func (p *program) completeSegment() {
	last, more, tcp, loaded := p.label(), p.label(), p.label(), p.label()
	p.load(double, r3, fp, stackSegments)
	p.load(double, r4, fp, stackSize)
	p.jump(ifNotAbove, r3, r4, last)
	p.do(opSub, r3, r4)
	p.store(double, fp, stackSegments, r3)
	p.goTo(more)
	p.place(last)
	p.move(r4, r3)
	p.storeValue(double, fp, stackSegments, 0)
	p.load(byte1, r1, fp, stackTransport+13)
	p.load(double, r2, fp, stackFlags)
	p.do(opOr, r1, r2)
	p.store(byte1, fp, stackTransport+13, r1)
	p.place(more)

	p.load(double, r1, fp, stackLength)
	p.do(opAdd, r1, r4)
	p.swap(r1, 16)
	p.store(half, fp, stackID+6, r1)
	p.load(double, r2, fp, stackPayload)
	p.move(r1, r2)
	p.do(opAdd, r1, r4)
	p.store(double, fp, stackPayload, r1)
	p.load(double, r1, fp, stackLane)
	p.load(double, r1, r1, 8*laneProto)
	p.jumpWith(ifEqual, r1, protoTCP, tcp)
	p.move(r1, r4)
	p.with(opAdd, r1, 8)
	p.swap(r1, 16)
	p.store(half, fp, stackTransport+4, r1)
	p.storeValue(double, fp, stackTransport+8, 0)
	p.storeValue(double, fp, stackTransport+16, 0)
	p.loadPayload(16, stackTransport+8)
	p.goTo(loaded)
	p.place(tcp)
	p.storeValue(word, fp, stackTransport+20, 0)
	p.loadPayload(4, stackTransport+20)
	p.place(loaded)
	p.bump(counterSegments)
}

// loadPayload copies to the stack the first of the r4 bytes of payload at offset r2.
func (p *program) loadPayload(most int32, to int16) {
	few := p.label()
	p.blind(r4, r1)
	p.jumpWith(ifNotAbove, r4, most, few)
	p.with(opMove, r4, most)
	p.place(few)
	p.jumpWith(ifEqual, r4, 0, p.out) // never: the verifier cannot know
	p.move(r3, fp)
	p.with(opAdd, r3, int32(to))
	p.loadBytes()
}
