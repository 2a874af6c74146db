package main

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hoplag/hoplag/hashing"
)

// Speed is told in multiples of a floor: the least that any such structure
// could do for a packet, on the same stream of hashes, in the same run. Path
// and floor are measured in turns, in slices so short that what else happens
// on the machine mostly falls between them, and the figure is the median of
// the slices' ratios.
//
//	x-floor   how many times the floor's time per packet
//	bar-x     how many it may be, where there is a bar
//	ns/op     median time per packet
//	Mpkt/s    the same as a rate, one core

// A loop handles packets from to to-1 of its stream.
type loop func(from, to int)

// sliceLength is how many packets are measured at a time: a fraction of a
// millisecond.
const sliceLength = 1 << 16

// compare measures path beside floor, on a stream of a power of two of
// packets; the bar is in multiples of the floor, 0 for none. With fewer than
// three slices, as by -benchtime 1x, nothing is reported but that it runs.
func compare(b *testing.B, stream int, bar float64, path, floor loop) {
	b.Helper()
	length := min(sliceLength, stream)
	times := make([]float64, 0, b.N/sliceLength+1)
	ratios := make([]float64, 0, b.N/sliceLength+1)
	b.ReportAllocs()
	b.ResetTimer()
	at := 0
	for left := b.N; left > 0; left -= sliceLength {
		n := min(left, sliceLength)
		ours := perPacket(path, at, n, length)
		// From the other half of the stream, so that neither finds in a cache
		// what the other has just read.
		least := perPacket(floor, (at+stream/2)%stream/length*length, n, length)
		times, ratios = append(times, ours), append(ratios, ours/least)
		at = (at + length) % stream
	}
	if len(times) < 3 {
		return
	}
	b.ReportMetric(median(times), "ns/op")
	b.ReportMetric(1e3/median(times), "Mpkt/s")
	b.ReportMetric(median(ratios), "x-floor")
	if bar > 0 {
		b.ReportMetric(bar, "bar-x")
	}
}

// perPacket is the time in nanoseconds that n packets take a loop, in passes
// over the length packets at the given place of its stream.
func perPacket(run loop, at, n, length int) float64 {
	start := time.Now()
	for left := n; left > 0; left -= length {
		run(at, at+min(left, length))
	}
	return float64(time.Since(start).Nanoseconds()) / float64(n)
}

func median(x []float64) float64 {
	slices.Sort(x)
	return x[len(x)/2]
}

// streamLength is how many scattered hashes most benchmarks read: 16 MiB of
// packets, and as much of flows where there are flows.
const streamLength = 1 << 21

var packetStream = sync.OnceValue(func() []hashing.Packet {
	rng := rand.New(rand.NewPCG(1, 21))
	packets := make([]hashing.Packet, streamLength)
	for i := range packets {
		packets[i] = hashing.Packet(rng.Uint64())
	}
	return packets
})

// floorCell is what the floor adds to.
type floorCell struct{ sum, count uint64 }

// cellFloor adds a timestamp to, and counts, the cell out of 1,024 that the
// packet's hash chooses.
func cellFloor(packets []hashing.Packet) loop {
	cells := new([1024]floorCell)
	return func(from, to int) {
		t := uint64(from)
		for i, p := range packets[from:to] {
			c := &cells[p&1023]
			c.sum += t + uint64(i)
			c.count++
		}
	}
}

// BenchmarkFloor holds the floor against itself: 1, but for the noise of the
// method.
func BenchmarkFloor(b *testing.B) {
	b.Run("1024cells/16MiB", func(b *testing.B) {
		compare(b, streamLength, 0, cellFloor(packetStream()), cellFloor(packetStream()))
	})
	b.Run("1024cells/64KiB", func(b *testing.B) {
		few := packetStream()[:1<<13]
		compare(b, len(few), 0, cellFloor(few), cellFloor(few))
	})
}
