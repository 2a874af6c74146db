package kernel

import "math/bits"

// A program runs in the kernel for every packet. It is generated from the Config. It does these things in
// order; each has its own file:
//
//	begin    find this processor's cells of the present interval; the time
//	parse    walk the headers, as hashing.Frame does
//	identify put on the stack the bytes that hashing.Frame.Append gives
//	count    their digest
//	add      the packet to its cell of the LDA
//	segments of a bundle, go on with the next packet of it
//
// A plain packet takes a short way from begin to count. The program keeps these registers throughout parsing,
// and afterwards only the first.
//
//	r6  the context
//	r7  the first byte of the packet
//	r8  the cursor, a header
//	r9  the end of what can be read of the packet
type program struct {
	assembler
	config  Config
	hook    Hook
	raw     bool // no link layer: packets begin with IP
	cells   int  // descriptors of maps
	control int
	lanes   int // a power of two

	start                                   label // of parsing
	count                                   label // of what is on the stack
	segment                                 label // of a bundle, to be completed
	out                                     label
	pull                                    label // the packet's linear part is too short
	notIP, truncated, malformed, deep, lump label // reasons to pass over a frame

	after     func(*program) // in tests, adds to what happens with the digest in r8
	fixedTime bool           // in tests, takes the time from the control map
}

// The stack, by offsets from its end.
const (
	stackTime      = -8
	stackLane      = -16  // address of this processor's lane
	stackPulled    = -24  // whether the linear part was extended
	stackSegments  = -32  // bytes of payload after this segment; 0: nothing more
	stackNetwork   = -40  // address from which the length field counts
	stackStep      = -48  // by how much the identification rises
	stackSize      = -64  // gso_size
	stackEnd       = -104 // offset of the IP packet's end
	stackPayload   = -72  // offset of the segment's payload
	stackLength    = -80  // of the segment without payload, as in the length field
	stackCount     = -88  // segments so far
	stackFlags     = -96  // TCP flags that the last segment alone has
	stackInvariant = -192 // 72 bytes
	stackSpill     = -224 // 24 bytes, while parsing

	// The words of the invariant bytes.
	stackSource      = stackInvariant
	stackDestination = stackInvariant + 16
	stackTransport   = stackInvariant + 32
	stackID          = stackInvariant + 56
	stackProto       = stackInvariant + 64
)

// unlessTCP says that the identification rises by one, but not in segments of TCP: Linux numbers these, so 0 in
// one that nobody may fragment is of another sender, which has 0 in all of them (RFC 6864, 4.1).
const unlessTCP = 2

// The control map: what the reader says to the programs.
const (
	controlActive = 0 // index of the cells that get packets, 0 or 1
	controlTime   = 8 // for tests
	controlSize   = 4096
)

// The kernel's helpers, and the versions that introduced them.
const (
	helperLoadBytes    = 26  // 4.5
	helperPull         = 39  // 4.9
	helperProcessor    = 8   // 4.1
	helperBoot         = 125 // 5.8
	helperXDPLength    = 188 // 5.18
	helperXDPLoadBytes = 189 // 5.18
)

// Offsets in the contexts: struct __sk_buff of tc, and struct xdp_md.
const (
	bufferLength  = 0
	bufferData    = 76
	bufferEnd     = 80
	bufferSegment = 176 // gso_size
	xdpData       = 0
	xdpEnd        = 4
)

// Results that let the packet pass.
const (
	scheduleNext = -1 // TCX_NEXT and TC_ACT_UNSPEC
	xdpPass      = 2
)

// generate returns the instructions.
func (p *program) generate() []instruction {
	p.labels()
	p.begin()
	p.plain()
	p.place(p.count)
	p.digest()
	if p.after != nil {
		p.after(p)
	}
	p.updateLDA()
	p.place(p.out)
	p.with(opMove, r0, map[bool]int32{true: xdpPass, false: scheduleNext}[p.hook == XDP])
	p.exit()
	p.place(p.start)
	p.parse()
	if p.hook != XDP {
		p.segments()
	}
	p.refusals()
	return p.assemble()
}

// labels makes the labels that several files use.
func (p *program) labels() {
	for _, l := range []*label{
		&p.start, &p.count, &p.segment, &p.out, &p.pull, &p.notIP, &p.truncated, &p.malformed, &p.deep, &p.lump,
	} {
		*l = p.label()
	}
}

// begin finds the lane and takes the time.
func (p *program) begin() {
	p.move(r6, r1)
	p.call(helperProcessor)
	p.with(opAnd, r0, int32(p.lanes-1))
	p.with(opMul, r0, int32(p.config.laneSize()))
	p.setMap(r1, mapValue, p.control)
	p.load(double, r2, r1, controlActive)
	p.with(opAnd, r2, 1)
	p.with(opMul, r2, int32(p.lanes*p.config.laneSize()))
	p.do(opAdd, r0, r2)
	p.setMap(r3, mapValue, p.cells)
	p.do(opAdd, r3, r0)
	p.store(double, fp, stackLane, r3)
	if p.fixedTime {
		p.load(double, r0, r1, controlTime)
	} else {
		p.call(helperBoot)
	}
	p.store(double, fp, stackTime, r0)
	p.storeValue(double, fp, stackPulled, 0)
	p.storeValue(double, fp, stackSegments, 0)
	if p.hook != XDP { // where nothing is bundled yet
		p.load(word, r0, r6, bufferSegment)
		p.jumpWith(ifNotEqual, r0, 0, p.start)
	}
}

// loadEnds sets r7 to the first byte of the packet, and r9 to the end of what can be read.
func (p *program) loadEnds() {
	p.loadData()
	if p.hook == XDP {
		p.load(word, r9, r6, xdpEnd)
	} else {
		p.load(word, r9, r6, bufferEnd)
	}
}

// loadData sets r7 to the first byte of the packet.
func (p *program) loadData() {
	if p.hook == XDP {
		p.load(word, r7, r6, xdpData)
	} else {
		p.load(word, r7, r6, bufferData)
	}
}

// need makes sure that the given number of bytes can be read at the cursor. It uses r1.
func (p *program) need(n int32) {
	p.move(r1, r8)
	p.with(opAdd, r1, n)
	p.jump(ifGreater, r1, r9, p.pull)
}

// frameLength sets r0 to the number of bytes in the frame, wherever they lie. It preserves r6 to r9.
func (p *program) frameLength() {
	if p.hook == XDP {
		p.move(r1, r6)
		p.call(helperXDPLength)
		return
	}
	p.load(word, r0, r6, bufferLength)
}

// loadBytes copies bytes of the frame to the stack: r4 bytes from offset r2 to the address in r3. It sets r0 to
// 0 if the frame had them.
func (p *program) loadBytes() {
	p.move(r1, r6)
	if p.hook == XDP {
		p.call(helperXDPLoadBytes)
	} else {
		p.call(helperLoadBytes)
	}
}

// refusals handles frames that are not counted. A frame that seems truncated may lie in parts of the buffer
// that a program cannot read: its beginning is gathered once and parsed again.
func (p *program) refusals() {
	p.place(p.pull)
	if p.hook != XDP {
		const enough = 512
		p.load(double, r1, fp, stackPulled)
		p.jumpWith(ifNotEqual, r1, 0, p.truncated)
		p.storeValue(double, fp, stackPulled, 1)
		p.load(word, r2, r6, bufferLength)
		p.move(r1, r9)
		p.do(opSub, r1, r7)
		p.jump(ifNotLess, r1, r2, p.truncated) // all can be read
		short := p.label()
		p.jumpWith(ifNotAbove, r2, enough, short)
		p.with(opMove, r2, enough)
		p.place(short)
		p.move(r1, r6)
		p.call(helperPull)
		p.jumpWith(ifEqual, r0, 0, p.start)
	}
	for i, l := range []label{p.truncated, p.notIP, p.malformed, p.deep, p.lump} {
		if l == p.lump && p.hook == XDP {
			break
		}
		p.place(l)
		p.bump(counterTruncated + i)
		p.goTo(p.out)
	}
}

// The counters of a lane, which are words at its beginning; and facts about a bundle that the verifier need not
// know, or it would verify each kind of bundle separately.
const (
	counterTruncated = iota
	counterNotIP
	counterMalformed
	counterDeep
	counterBundles
	counterSegments

	laneProto // of a bundle
	laneStep  // by how much its identification rises
	laneBlind
)

// bump adds one to a counter. It uses r1 and r2.
func (p *program) bump(counter int) {
	p.load(double, r1, fp, stackLane)
	p.load(double, r2, r1, int16(8*counter))
	p.with(opAdd, r2, 1)
	p.store(double, r1, int16(8*counter), r2)
}

// blind makes the verifier forget where a register's value comes from. So it need not distinguish all ways to
// get there when it later checks that the value is in range. It uses one other register.
func (p *program) blind(r, other int) {
	p.load(double, other, fp, stackLane)
	p.store(double, other, 8*laneBlind, r)
	p.load(double, r, other, 8*laneBlind)
}

// swapped returns a number as a load of its big-endian bytes gives it.
func swapped(v uint16) int32 { return int32(bits.ReverseBytes16(v)) }
