package kernel

// parseTransport puts the rest of what identifies a packet on the stack: protocol, and 24 bytes from the cursor
// on. Of the packet's r3 bytes there, fewer may have been captured, and the frame may be longer. r4 tells a
// fragment after the first, and r5 is the protocol.
func (p *program) parseTransport() {
	tcp, ports, plain, copied := p.label(), p.label(), p.label(), p.label()
	for i := range int16(3) {
		p.storeValue(double, fp, stackTransport+8*i, 0)
	}
	p.jumpWith(ifNotEqual, r4, 0, plain)
	p.jumpWith(ifEqual, r5, protoTCP, tcp)
	for _, proto := range []int32{protoUDP, protoUDPLite, protoDCCP, protoSCTP} {
		p.jumpWith(ifEqual, r5, proto, ports)
	}
	p.goTo(plain)

	p.place(tcp)
	p.jumpWith(ifLess, r3, 20, ports)
	p.move(r1, r8)
	p.with(opAdd, r1, 20)
	whole := p.label()
	p.jump(ifNotAbove, r1, r9, whole)
	// The linear part ends in the header: gather the rest of the frame, if there is one.
	p.spill()
	p.frameLength()
	p.move(r1, r9)
	p.do(opSub, r1, r7)
	p.move(r2, r0)
	p.unspill()
	p.jump(ifLess, r1, r2, p.pull)
	p.goTo(ports)
	p.place(whole)
	p.load(byte1, r2, r8, 12)
	p.with(opRight, r2, 4)
	p.with(opLeft, r2, 2)
	p.jumpWith(ifNotAbove, r2, 20, plain)
	p.copyRest(4, stackTransport+20) // the payload's bytes take the place of the options'
	p.with(opMove, r2, 0)
	p.copyRest(20, stackTransport)
	p.goTo(copied)

	p.place(ports)
	p.jumpWith(ifLess, r3, 4, plain)
	p.need(4)
	p.place(plain)
	p.with(opMove, r2, 0)
	p.copyRest(24, stackTransport)
	p.place(copied)
	p.identify()
}

// spill saves the state of parsing across a call, and unspill restores it.
func (p *program) spill() {
	for i, r := range []int{r3, r4, r5} {
		p.store(double, fp, int16(stackSpill+8*i), r)
	}
}

func (p *program) unspill() {
	for i, r := range []int{r3, r4, r5} {
		p.load(double, r, fp, int16(stackSpill+8*i))
	}
}

// copyRest copies to the stack the packet's bytes at the cursor, r3 in all, from the r2-th on, as many as there
// are but at most the given number. It preserves what unspill restores.
func (p *program) copyRest(most int32, to int16) {
	none, few, all := p.label(), p.label(), p.label()
	p.spill()
	p.store(double, fp, stackPayload, r2)
	p.frameLength()
	p.load(double, r2, fp, stackPayload)
	p.load(double, r4, fp, stackSpill) // the packet's length
	p.do(opSub, r4, r2)
	p.do(opAdd, r2, r8)
	p.do(opSub, r2, r7) // offset in the frame
	p.do(opSub, r0, r2) // bytes of the frame from there on
	p.jump(ifSignedAbove, r0, r4, all)
	p.move(r4, r0)
	p.place(all)
	p.blind(r4, r1)
	p.jumpWith(ifSignedBelow, r4, 1, none)
	p.jumpWith(ifNotAbove, r4, most, few)
	p.with(opMove, r4, most)
	p.place(few)
	p.move(r3, fp)
	p.with(opAdd, r3, int32(to))
	p.loadBytes()
	p.place(none)
	p.unspill()
}

// identify clears the checksum on the stack and stores the rest. Then the packet is counted, unless it is a
// bundle of segments.
func (p *program) identify() {
	udp, sctp, done := p.label(), p.label(), p.label()
	p.jumpWith(ifNotEqual, r4, 0, done)
	p.jumpWith(ifEqual, r5, protoUDP, udp)
	p.jumpWith(ifEqual, r5, protoUDPLite, udp)
	p.jumpWith(ifEqual, r5, protoSCTP, sctp)
	p.jumpWith(ifNotEqual, r5, protoTCP, done)
	p.storeValue(half, fp, stackTransport+16, 0)
	p.goTo(done)
	p.place(sctp)
	p.storeValue(word, fp, stackTransport+8, 0)
	p.goTo(done)
	p.place(udp)
	p.storeValue(half, fp, stackTransport+6, 0)
	p.place(done)
	p.store(double, fp, stackProto, r5)
	if p.hook != XDP {
		p.load(word, r0, r6, bufferSegment)
		p.jumpWith(ifEqual, r0, 0, p.count)
		p.bundle()
		return
	}
	p.goTo(p.count)
}
