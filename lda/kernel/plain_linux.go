package kernel

// plain goes on with count for what nearly every packet is, and otherwise with start, to parse it in full: IPv4
// or IPv6 without options or extension headers and not a fragment, UDP with 16 bytes of payload or more, or TCP
// without options, with timestamps, or without payload. The way is short and straight, because a packet's first
// cost is to fetch the program.
func (p *program) plain() {
	ip4, transport := p.label(), p.label()
	link := int16(14)
	if p.raw {
		link = 0
	}
	p.loadEnds()
	p.readable(link + 20 + 24)
	p.load(byte1, r1, r7, link)
	p.move(r8, r7)
	if p.raw {
		p.jumpWith(ifEqual, r1, 0x45, ip4)
		p.with(opAnd, r1, 0xf0)
		p.jumpWith(ifNotEqual, r1, 0x60, p.start)
	} else {
		p.load(half, r2, r7, 12)
		p.jumpWith(ifEqual, r2, swapped(typeIPv4), ip4)
		p.jumpWith(ifNotEqual, r2, swapped(typeIPv6), p.start)
		p.with(opAnd, r1, 0xf0)
		p.jumpWith(ifNotEqual, r1, 0x60, p.start)
	}
	p.readable(link + 40 + 24)
	p.load(half, r0, r7, link+4)
	p.load(byte1, r5, r7, link+6)
	for i := range int16(4) {
		p.load(double, r1, r7, link+8+8*i)
		p.store(double, fp, stackSource+8*i, r1)
	}
	p.move(r3, r0)
	p.with(opLeft, r0, 48)
	p.swap(r3, 16)
	p.with(opAdd, r8, int32(link)+40)
	p.goTo(transport)

	p.place(ip4)
	p.jumpWith(ifNotEqual, r1, 0x45, p.start)
	p.load(half, r1, r7, link+6)
	p.with(opAnd, r1, swapped(0x3fff))
	p.jumpWith(ifNotEqual, r1, 0, p.start)
	p.load(half, r0, r7, link+2)
	p.load(byte1, r5, r7, link+9)
	p.move(r3, r0)
	p.with(opLeft, r0, 48)
	p.load(half, r1, r7, link+4)
	p.with(opLeft, r1, 16)
	p.do(opOr, r0, r1)
	p.swap(r3, 16)
	p.with(opSub, r3, 20)
	p.set(r4, 0xffff0000) // IPv4-mapped
	for _, address := range []struct{ from, to int16 }{{12, stackSource}, {16, stackDestination}} {
		p.load(word, r1, r7, link+address.from)
		p.with(opLeft, r1, 32)
		p.do(opOr, r1, r4)
		p.storeValue(double, fp, address.to, 0)
		p.store(double, fp, address.to+8, r1)
	}
	p.with(opAdd, r8, int32(link)+20)
	p.place(transport)
	p.plainTransport()
}

// readable continues at start unless the given number of the packet's bytes can be read.
func (p *program) readable(n int16) {
	p.move(r1, r7)
	p.with(opAdd, r1, int32(n))
	p.jump(ifGreater, r1, r9, p.start)
}

// plainTransport goes on with the transport header at r8, where 24 bytes can be read, of a packet with r3 bytes
// from there on. r0 is the word of its identification and length, r5 its protocol.
func (p *program) plainTransport() {
	tcp, bare, done := p.label(), p.label(), p.label()
	p.store(double, fp, stackID, r0)
	p.load(double, r0, r8, 0)
	p.load(double, r2, r8, 16)
	p.jumpWith(ifEqual, r5, protoTCP, tcp)
	p.jumpWith(ifNotEqual, r5, protoUDP, p.start)
	p.jumpWith(ifSignedBelow, r3, 24, p.start)
	p.with(opLeft, r0, 16) // without the checksum
	p.with(opRight, r0, 16)
	p.goTo(done)

	p.place(tcp)
	p.load(byte1, r4, r8, 12)
	p.with(opRight, r4, 4)
	p.with(opLeft, r4, 2)
	p.jumpWith(ifLess, r4, 20, p.start)
	p.do(opSub, r3, r4)
	p.with(opRight, r2, 16)
	p.with(opLeft, r2, 16)
	p.jumpWith(ifEqual, r3, 0, bare)
	p.jumpWith(ifSignedBelow, r3, 4, p.start)
	p.jumpWith(ifEqual, r4, 20, done)
	p.jumpWith(ifNotEqual, r4, 32, p.start)
	p.move(r1, r8)
	p.with(opAdd, r1, 36)
	p.jump(ifGreater, r1, r9, p.start)
	p.load(word, r1, r8, 32)
	p.with(opLeft, r1, 32)
	p.do(opMove32, r2, r2)
	p.do(opOr, r2, r1)
	p.goTo(done)
	p.place(bare)
	p.do(opMove32, r2, r2)

	p.place(done)
	p.store(double, fp, stackTransport, r0)
	p.store(double, fp, stackTransport+16, r2)
	p.load(double, r1, r8, 8)
	p.store(double, fp, stackTransport+8, r1)
	p.store(double, fp, stackProto, r5)
}
