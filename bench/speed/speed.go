// Package speed measures a loop over packets in multiples of a floor: the least that any such structure could
// do for a packet, on the same stream of hashes, in the same run. Path and floor take turns, in slices so short
// that disturbances on the machine mostly fall between them. The result is the median of the slices' ratios,
// which is steady even if times are not.
package speed

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hoplag/hoplag/hashing"
)

// A Loop handles packets from to to-1 of its stream.
type Loop func(from, to int)

// A slice of the path takes about sliceTime, much less than a scheduler gives
// a program at a time, and has at most maxSlice packets. A slice of the floor
// has as many packets, but at least minFloor, which take microseconds.
const (
	sliceTime = 500_000 // ns
	maxSlice  = 1 << 16
	minFloor  = 1 << 13
)

// Compare measures path and floor on a stream of the given number of packets,
// which is repeated again and again, and reports
//
//	ns/op     median time per packet
//	Mpkt/s    the same as a rate, one core
//	x-floor   how many times the floor's time per packet
//	bar-x     how many it may be; not reported if bar is 0
//
// With fewer than three slices, as with -benchtime 1x, it reports nothing except that it runs.
func Compare(b *testing.B, stream int, bar float64, path, floor Loop) {
	b.Helper()
	times := make([]float64, 0, b.N/maxSlice+1)
	ratios := make([]float64, 0, b.N/maxSlice+1)
	b.ReportAllocs()
	b.ResetTimer()
	// The floor is half a stream away, so that neither finds in a cache what the other has just read.
	ours, theirs := reader{path, stream, 0}, reader{floor, stream, stream / 2}
	n, best := 1<<10, math.Inf(1)
	for left := b.N; left > 0; {
		n = min(n, left)
		left -= n
		took := ours.perPacket(n)
		ratios = append(ratios, took/theirs.perPacket(min(max(n, minFloor), b.N)))
		times = append(times, took)
		best = min(best, took)
		n = max(1, int(min(maxSlice, sliceTime/best)))
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

// A reader runs a loop round and round its stream.
type reader struct {
	loop       Loop
	stream, at int
}

// perPacket returns the time in nanoseconds that each of the next n packets takes.
func (r *reader) perPacket(n int) float64 {
	start := time.Now()
	for left := n; left > 0; {
		end := min(r.at+left, r.stream)
		r.loop(r.at, end)
		left -= end - r.at
		r.at = end % r.stream
	}
	return float64(time.Since(start).Nanoseconds()) / float64(n)
}

func median(x []float64) float64 {
	slices.Sort(x)
	return x[len(x)/2]
}

// StreamLength is the number of scattered hashes that most benchmarks read: 16
// MiB of packets, and as much of flows if there are flows.
const StreamLength = 1 << 21

// Packets returns a stream of scattered hashes, the same on every call.
var Packets = sync.OnceValue(func() []hashing.Packet {
	return scattered[hashing.Packet](21)
})

// Flows returns the flow of each of Packets: each a different one, so that no
// two packets find their cells close to each other.
var Flows = sync.OnceValue(func() []hashing.Flow {
	return scattered[hashing.Flow](25)
})

func scattered[hash ~uint64](seed uint64) []hash {
	rng := rand.New(rand.NewPCG(1, seed))
	hashes := make([]hash, StreamLength)
	for i := range hashes {
		hashes[i] = hash(rng.Uint64())
	}
	return hashes
}

// FloorCell is what the floor adds to.
type FloorCell struct{ Sum, Count uint64 }

// Add counts a packet that passed at time t.
func (c *FloorCell) Add(t uint64) {
	c.Sum += t
	c.Count++
}

// Floor adds a timestamp to one cell out of 1,024, chosen by the packet's hash, and counts the packet there. It
// is not inlined, so that it is the same loop wherever it is called from.
//
//go:noinline
func Floor(packets []hashing.Packet) Loop {
	cells := new([1024]FloorCell)
	return func(from, to int) {
		t := uint64(from)
		for i, p := range packets[from:to] {
			cells[p&1023].Add(t + uint64(i))
		}
	}
}
