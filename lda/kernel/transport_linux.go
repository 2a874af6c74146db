package kernel

// parseTransport puts the rest of what identifies a packet on the stack:
// ports, protocol, and 24 bytes from the cursor on. Of the packet's r3 bytes
// there, fewer may have been captured, and the frame may be longer. r4 tells a
// fragment after the first, and r5 is the protocol.
func (p *program) parseTransport() {
	tcp, ports, plain, copied := p.label(), p.label(), p.label(), p.label()
	p.with(opMove, r0, 0)
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
	// The linear part ends in the header: gather the rest of the frame, if
	// there is one.
	p.spill()
	p.frameLength()
	p.move(r1, r9)
	p.do(opSub, r1, r7)
	p.move(r2, r0)
	p.unspill()
	p.jump(ifLess, r1, r2, p.pull)
	p.goTo(ports)
	p.place(whole)
	p.loadPorts()
	p.load(byte1, r2, r8, 12)
	p.with(opRight, r2, 4)
	p.with(opLeft, r2, 2)
	p.jumpWith(ifNotAbove, r2, 20, plain)
	p.copyBehindOptions()
	p.goTo(copied)

	p.place(ports)
	p.jumpWith(ifLess, r3, 4, plain)
	p.need(4)
	p.loadPorts()
	p.place(plain)
	p.copyTransport()
	p.place(copied)
	p.identify()
}

// loadPorts sets r0 to the ports at the cursor, in the form of the tuple's
// digest.
func (p *program) loadPorts() {
	p.load(word, r0, r8, 0)
	p.swap(r0, 32)
	p.with(opLeft, r0, 16)
}

// spill saves across a call what parsing knows, and unspill restores it.
func (p *program) spill() {
	for i, r := range []int{r0, r3, r4, r5} {
		p.store(double, fp, int16(stackSpill+8*i), r)
	}
}

func (p *program) unspill() {
	for i, r := range []int{r0, r3, r4, r5} {
		p.load(double, r, fp, int16(stackSpill+8*i))
	}
}

// copyTransport puts the first 24 bytes at the cursor in r1, r2 and r3.
func (p *program) copyTransport() {
	slow, copied := p.label(), p.label()
	p.jumpWith(ifLess, r3, 24, slow)
	p.move(r1, r8)
	p.with(opAdd, r1, 24)
	p.jump(ifGreater, r1, r9, slow)
	p.load(double, r1, r8, 0)
	p.load(double, r2, r8, 8)
	p.load(double, r3, r8, 16)
	p.goTo(copied)

	p.place(slow)
	for i := range int16(3) {
		p.storeValue(double, fp, stackTransport+8*i, 0)
	}
	p.with(opMove, r2, 0)
	p.copyRest(24, stackTransport)
	for i, r := range []int{r1, r2, r3} {
		p.load(double, r, fp, int16(stackTransport+8*i))
	}
	p.place(copied)
}

// copyBehindOptions puts 24 bytes in r1, r2 and r3: the first 20 bytes of TCP
// at the cursor, whose header has r2 bytes, and the 4 bytes after the header.
func (p *program) copyBehindOptions() {
	slow, copied := p.label(), p.label()
	// The payload's bytes take the place of the options' first.
	p.storeValue(double, fp, stackScratch, 0)
	p.move(r1, r2)
	p.with(opAdd, r1, 4)
	p.jump(ifLess, r3, r1, slow)
	p.move(r1, r8)
	p.do(opAdd, r1, r2)
	p.with(opAdd, r1, 4)
	p.jump(ifGreater, r1, r9, slow)
	p.load(word, r3, r1, -4)
	p.goTo(copied)

	p.place(slow)
	p.copyRest(4, stackScratch)
	p.load(word, r3, fp, stackScratch)
	p.place(copied)
	p.move(r1, r8) // again, because a call may lie between
	p.with(opAdd, r1, 20)
	p.jump(ifGreater, r1, r9, p.truncated)
	p.with(opLeft, r3, 32)
	p.load(word, r1, r8, 16)
	p.do(opOr, r3, r1)
	p.load(double, r1, r8, 0)
	p.load(double, r2, r8, 8)
}

// copyRest copies to the stack the packet's bytes at the cursor, r3 in all,
// from the r2-th on, as many as there are but at most the given number. It
// preserves what unspill restores.
func (p *program) copyRest(most int32, to int16) {
	none, few, all := p.label(), p.label(), p.label()
	p.spill()
	p.store(double, fp, stackPayload, r2)
	p.frameLength()
	p.load(double, r2, fp, stackPayload)
	p.load(double, r4, fp, stackSpill+8) // the packet's length
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

// identify stores the transport's words in r1, r2 and r3, without the
// checksum, and the protocol. Then the packet is counted, unless it is a
// bundle of segments.
func (p *program) identify() {
	done := p.label()
	if !p.config.Checksums {
		udp, sctp := p.label(), p.label()
		p.jumpWith(ifNotEqual, r4, 0, done)
		p.jumpWith(ifEqual, r5, protoUDP, udp)
		p.jumpWith(ifEqual, r5, protoUDPLite, udp)
		p.jumpWith(ifEqual, r5, protoSCTP, sctp)
		p.jumpWith(ifNotEqual, r5, protoTCP, done)
		p.with(opRight, r3, 16)
		p.with(opLeft, r3, 16)
		p.goTo(done)
		p.place(sctp)
		p.with(opRight, r2, 32)
		p.with(opLeft, r2, 32)
		p.goTo(done)
		p.place(udp)
		p.with(opLeft, r1, 16)
		p.with(opRight, r1, 16)
	}
	p.place(done)
	for i, r := range []int{r1, r2, r3} {
		p.store(double, fp, int16(stackTransport+8*i), r)
	}
	p.store(double, fp, stackProto, r5)
	p.do(opOr, r0, r5)
	p.store(double, fp, stackPorts, r0)
	if p.hook != XDP {
		p.load(word, r0, r6, bufferSegment)
		p.jumpWith(ifEqual, r0, 0, p.count)
		p.bundle()
		return
	}
	p.goTo(p.count)
}
