package kernel

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/hashing"
)

// header makes a frame with random contents: Ethernet, some tags, IP of either version, options or extension
// headers, fragments, and a transport header.
func randomFrame(random *rand.Rand) []byte {
	be := binary.BigEndian
	frame := make([]byte, 12)
	for range random.IntN(3) {
		frame = be.AppendUint16(frame, []uint16{0x8100, 0x88a8, 0x9100}[random.IntN(3)])
		frame = be.AppendUint16(frame, uint16(random.Uint32()))
	}
	proto := []byte{protoTCP, protoUDP, 1, protoSCTP, protoUDPLite, protoDCCP, 47, protoNone, 58}[random.IntN(9)]
	payload := make([]byte, random.IntN(100))
	for i := range payload {
		payload[i] = byte(random.Uint32())
	}
	if len(payload) > 12 && random.IntN(2) == 0 {
		payload[12] = byte(5+random.IntN(11)) << 4
	}
	if random.IntN(2) == 0 {
		return append(append(be.AppendUint16(frame, typeIPv4), randomIPv4(random, proto, len(payload))...), payload...)
	}
	frame = be.AppendUint16(frame, typeIPv6)
	header := make([]byte, 40)
	header[0], header[7] = 6<<4, 64
	for i := 8; i < 40; i += 8 {
		be.PutUint64(header[i:], random.Uint64())
	}
	next := &header[6]
	extensions := []byte{}
	for range random.IntN(5) * random.IntN(5) {
		kind := []byte{protoHopByHop, protoRouting, protoFragment, protoAH, protoDestination}[random.IntN(5)]
		*next = kind
		extension := make([]byte, 8*(1+random.IntN(6)))
		extension[1] = byte(len(extension)/8 - 1)
		switch kind {
		case protoFragment:
			extension = extension[:8]
			be.PutUint16(extension[2:], uint16(random.IntN(2)|8*random.IntN(2)*random.IntN(2)))
			be.PutUint32(extension[4:], random.Uint32())
		case protoAH:
			extension[1] = byte(len(extension)/4 - 2)
		case protoRouting:
			extension[2], extension[3] = byte(random.IntN(6)), byte(random.IntN(3))
			for i := 8; i < len(extension); i++ {
				extension[i] = byte(random.Uint32())
			}
		}
		at := len(extensions)
		extensions = append(extensions, extension...)
		next = &extensions[at]
	}
	*next = proto
	be.PutUint16(header[4:], uint16(len(extensions)+len(payload)))
	return append(append(append(frame, header...), extensions...), payload...)
}

// randomIPv4 makes a header with options before a payload of the given size.
func randomIPv4(random *rand.Rand, proto byte, payload int) []byte {
	be := binary.BigEndian
	options := 4 * random.IntN(11)
	header := make([]byte, 20+options)
	header[0] = 4<<4 | byte(len(header)/4)
	be.PutUint16(header[2:], uint16(len(header)+payload))
	be.PutUint16(header[4:], uint16(random.Uint32()))
	if random.IntN(4) == 0 {
		be.PutUint16(header[6:], uint16(random.Uint32())&0x600f)
	}
	header[9] = proto
	be.PutUint64(header[12:], random.Uint64())
	return header
}

// mutate changes some bytes of a frame, mostly of its headers, or cuts it.
func mutate(random *rand.Rand, frame []byte) []byte {
	frame = bytes.Clone(frame)
	for range 1 + random.IntN(4) {
		at := random.IntN(min(len(frame), 16<<random.IntN(4)))
		switch random.IntN(4) {
		case 0:
			frame[at] ^= 1 << random.IntN(8)
		case 1:
			frame[at] = byte(random.Uint32())
		case 2: // a protocol, an option, a small length
			kinds := []byte{0, 1, 4, 5, 6, 17, 33, 41, 43, 44, 47, 50, 51, 58, 59, 60, 132, 136}
			frame[at] = kinds[random.IntN(len(kinds))]
		case 3:
			if len(frame) > leastByHand {
				frame = frame[:leastByHand+random.IntN(len(frame)-leastByHand)]
			}
		}
	}
	return frame
}

// Frames that no capture has: made up, and damaged.
func TestDifferentialMutations(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(15, 1))
	number := 20_000
	if testing.Short() {
		number = 10_000
	}
	for _, seed := range []uint64{testConfig.Seed, key0 + 1} { // the second one is replaced
		config := testConfig
		config.Seed = seed
		p := newPoint(t, config)
		for _, hook := range []Hook{Ingress, XDP} {
			var frames [][]byte
			for len(frames) < number {
				frame := randomFrame(random)
				frames = append(frames, frame, mutate(random, frame))
			}
			w := newTwin(t, p, hook, hashing.LinkEthernet)
			w.check(t, byHand(frames))
			w.report(t, hook)
			if c := w.total; c.NotIP == 0 || c.Malformed == 0 || c.Truncated == 0 || c.Counted < uint64(number)/3 {
				t.Errorf("frames that try too little: %+v", c)
			}
		}
	}
}

// Counts and sums that overflow do so in the kernel as they do elsewhere.
func TestCountersWrap(t *testing.T) {
	t.Parallel()
	p := newPoint(t, testConfig)
	w := newTwin(t, p, XDP, hashing.LinkEthernet)
	full := make([]uint64, len(p.sum))
	for i := range full {
		full[i] = ^uint64(0)
	}
	for lane := range p.processor {
		copy(p.memory[lane*p.config.laneSize()/8+countersSize/8:], full)
		w.want.Aggregator.AddCells(full)
	}
	random := rand.New(rand.NewPCG(15, 4))
	var frames [][]byte
	for range 1000 {
		frames = append(frames, randomFrame(random))
	}
	if w.differ(t, byHand(frames)) {
		t.Error("what overflowed differs")
	}
}

// A twin that hashes, stamps or samples otherwise must be found out.
func TestDifferentialBites(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(w *twin, frame []byte){
		"seed":  func(w *twin, _ []byte) { w.point.config.Seed++ },
		"time":  func(w *twin, _ []byte) { w.now++ },
		"bytes": func(w *twin, frame []byte) { frame[14+20+8]++ },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPoint(t, testConfig)
			w := newTwin(t, p, XDP, hashing.LinkEthernet)
			frame := benchFrame()
			p.setTime(w.now)
			if _, err := w.run.run(frame, 1); err != nil {
				t.Fatal(err)
			}
			spoil(w, frame)
			w.expect(frame)
			if !w.compare(t) {
				t.Error("no difference was found")
			}
		})
	}
}
