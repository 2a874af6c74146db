package main

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/bench/speed"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
)

// twoBanks is the aggregator that the speed bars are set for.
var twoBanks = lda.Config{
	Banks:   [4]lda.Bank{{Rows: 1024, Shift: 0}, {Rows: 1024, Shift: 3}},
	SumBits: 40,
}

// BenchmarkHeaderToLDA is all that a data path does for a packet whose header it has in hand: IP and TCP
// headers of 40 bytes → digest → update. The floor reads the digests from an array of their own. There are only
// as many headers as a receive ring holds, or 80 MiB of them.
func BenchmarkHeaderToLDA(b *testing.B) {
	for _, count := range []int{1 << 10, 1 << 21} {
		b.Run(fmt.Sprintf("%d-headers-%dKiB", count, 40*count>>10), func(b *testing.B) {
			rng := rand.NewChaCha8([32]byte{1, 23})
			headers := make([][40]byte, count)
			packets := make([]hashing.Packet, count)
			for i := range headers {
				rng.Read(headers[i][:])
				packets[i] = hashing.Digest(7, headers[i][:])
			}
			a, floor := must(lda.New(twoBanks)), speed.Floor(packets)
			b.Run("Digest", func(b *testing.B) {
				speed.Compare(b, count, 7.7, func(from, to int) {
					for i, some := 0, headers[from:to]; i < len(some); i++ {
						a.Update(hashing.Digest(7, some[i][:]), int64(from+i))
					}
				}, floor)
			})
			b.Run("40-bytes-alone", func(b *testing.B) {
				speed.Compare(b, count, 0, func(from, to int) {
					for i, some := 0, headers[from:to]; i < len(some); i++ {
						a.Update(digest40(7, &some[i]), int64(from+i))
					}
				}, floor)
			})
		})
	}
}

// BenchmarkFrame parses, digests and hashes the flows of 4,096 frames of up to 128
// bytes: with a Frame, in bursts with an Identifier, and from there into cells.
func BenchmarkFrame(b *testing.B) {
	for _, kind := range frameKinds {
		s := newFrameStream(b, kind.frame)
		for _, path := range []struct {
			name       string
			loop       speed.Loop
			bar, vxlan float64
		}{
			{"parse", s.parse, 0, 0},
			{"parse+digest", s.digest, 14, 32},
			{"parse+digest+flow", s.flow, 18, 0},
			{"stored+digest", s.stored(false), 0, 0},
			{"stored+digest+flow", s.stored(true), 0, 0},
			{"batch", s.bursts(nil, nil), 12, 0},
			{"batch+flow", s.bursts(make([]hashing.Flow, burst), nil), 15, 0},
			{"batch+cells", s.bursts(nil, must(lda.New(twoBanks))), 0, 0},
		} {
			bar := path.bar
			if kind.tunnel {
				bar = path.vxlan
			}
			b.Run(fmt.Sprintf("%s/%s", kind.name, path.name), func(b *testing.B) {
				speed.Compare(b, headerCount, bar, path.loop, speed.Floor(s.packets))
			})
		}
	}
}

const burst = 32

// A frameStream holds frames of one kind and what to do with them.
type frameStream struct {
	frames     [][]byte
	packets    []hashing.Packet // of the frames
	frame      hashing.Frame
	parsed     []hashing.Frame
	identifier *hashing.Identifier
}

func newFrameStream(b *testing.B, create func(*rand.Rand) []byte) *frameStream {
	s := &frameStream{identifier: hashing.NewIdentifier(7, hashing.LinkEthernet, hashing.DefaultTunnels)}
	rng := rand.New(rand.NewPCG(1, 24))
	for range headerCount {
		frame := create(rng)
		if err := s.frame.Parse(hashing.LinkEthernet, frame); err != nil {
			b.Fatal(err)
		}
		s.frames, s.packets = append(s.frames, frame), append(s.packets, s.frame.Digest(7))
		s.parsed = append(s.parsed, s.frame)
	}
	return s
}

func (s *frameStream) parse(from, to int) {
	var f hashing.Frame
	for _, frame := range s.frames[from:to] {
		if f.Parse(hashing.LinkEthernet, frame) == nil {
			hashed += uint64(f.Length)
		}
	}
}

func (s *frameStream) digest(from, to int) {
	var f hashing.Frame
	for _, frame := range s.frames[from:to] {
		if f.Parse(hashing.LinkEthernet, frame) == nil {
			hashed += uint64(f.Digest(7))
		}
	}
}

func (s *frameStream) flow(from, to int) {
	var f hashing.Frame
	for _, frame := range s.frames[from:to] {
		if f.Parse(hashing.LinkEthernet, frame) == nil {
			hashed += uint64(f.Digest(7)) + uint64(f.Tuple.Flow(7))
		}
	}
}

// stored copies frames that were parsed before, and hashes them: parsing costs nothing.
func (s *frameStream) stored(flow bool) speed.Loop {
	return func(from, to int) {
		for i := range s.parsed[from:to] { // by value would copy twice
			s.frame = s.parsed[from:to][i]
			hashed += uint64(s.frame.Digest(7))
			if flow {
				hashed += uint64(s.frame.Tuple.Flow(7))
			}
		}
	}
}

// bursts identifies 32 frames at a time, with flows and into cells if there are any.
func (s *frameStream) bursts(flows []hashing.Flow, cells *lda.Aggregator) speed.Loop {
	packets := make([]hashing.Packet, burst)
	return func(from, to int) {
		for ; from < to; from += burst {
			n := s.identifier.Frames(s.frames[from:min(from+burst, to)], packets, flows, nil)
			if cells != nil {
				cells.UpdateBatch(packets[:n], int64(from))
			}
		}
	}
}

var frameKinds = []struct {
	name   string
	tunnel bool
	frame  func(*rand.Rand) []byte
}{
	{"ipv4-tcp", false, func(rng *rand.Rand) []byte { return overIPv4(rng, 6) }},
	{"ipv4-udp", false, func(rng *rand.Rand) []byte { return overIPv4(rng, 17) }},
	{"vlan-ipv6-tcp", false, func(rng *rand.Rand) []byte {
		b := randomBytes(rng, 96)
		binary.BigEndian.PutUint16(b[12:], 0x8100)
		binary.BigEndian.PutUint16(b[16:], 0x86dd)
		b[18] = 6 << 4
		binary.BigEndian.PutUint16(b[22:], 1440) // payload
		b[24] = 6                                // TCP
		b[18+40+12] = 8 << 4
		return b
	}},
	{"vxlan-ipv4-tcp", true, func(rng *rand.Rand) []byte {
		b := randomBytes(rng, 128)
		binary.BigEndian.PutUint16(b[12:], 0x0800)
		ipv4(b[14:], 17)
		binary.BigEndian.PutUint16(b[36:], 4789)
		b[42] = 8 // a network identifier
		binary.BigEndian.PutUint16(b[50+12:], 0x0800)
		ipv4(b[64:], 6)
		b[64+20+12] = 8 << 4
		binary.BigEndian.PutUint16(b[66:], 1400)
		return b
	}},
}

// overIPv4 makes a frame of IPv4; TCP has 12 bytes of options.
func overIPv4(rng *rand.Rand, proto uint8) []byte {
	b := randomBytes(rng, 96)
	binary.BigEndian.PutUint16(b[12:], 0x0800)
	ipv4(b[14:], proto)
	b[14+20+12] = 8 << 4
	return b
}

// ipv4 makes the head of b a header without options of a whole datagram.
func ipv4(b []byte, proto uint8) {
	b[0] = 4<<4 | 5
	binary.BigEndian.PutUint16(b[2:], 1480)
	b[6], b[7] = 0x40, 0 // don't fragment
	b[9] = proto
}

func randomBytes(rng *rand.Rand, n int) (b []byte) {
	for range n {
		b = append(b, byte(rng.Uint32()))
	}
	return b
}
