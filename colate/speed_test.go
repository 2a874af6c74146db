package colate

import (
	"math/rand/v2"
	"os/exec"
	"regexp"
	"testing"

	"github.com/hoplag/hoplag/hashing"
)

// streamLength is how many scattered packets the benchmarks read: 16 bytes
// each, 16 MiB in all.
const streamLength = 1 << 20

func scattered() ([]hashing.Flow, []hashing.Packet) {
	r := rand.New(rand.NewPCG(1, 2))
	flows, packets := make([]hashing.Flow, streamLength), make([]hashing.Packet, streamLength)
	for i := range flows {
		flows[i], packets[i] = hashing.Flow(r.Uint64()), hashing.Packet(r.Uint64())
	}
	return flows, packets
}

// shapes are what is measured: 455,334 counters of 4 bytes and of 8.
var shapes = map[string]Config{
	"paper,4B":   {Counters: 455_334, PerFlow: 20, Bits: 30, TimeBits: 10, Vectors: 1},
	"wraps,4B":   {Counters: 455_334, PerFlow: 20, Bits: 32, Vectors: 1},
	"counted,8B": DefaultConfig,
}

// BenchmarkFloor is what an update is held against: one counter, chosen by
// the same stream of hashes among the same bytes, gets a time stamp added; in a
// loop, and by a call.
func BenchmarkFloor(b *testing.B) {
	flows, packets := scattered()
	b.Run("4B", func(b *testing.B) {
		cells := make([]uint32, 455_334)
		for i := range b.N {
			at := i & (streamLength - 1)
			cells[hashing.Row(uint64(flows[at])^uint64(packets[at]), uint64(len(cells)))] += uint32(i)
		}
	})
	b.Run("8B", func(b *testing.B) {
		cells := make([]uint64, 455_334)
		for i := range b.N {
			at := i & (streamLength - 1)
			cells[hashing.Row(uint64(flows[at])^uint64(packets[at]), uint64(len(cells)))] += uint64(i)
		}
	})
	b.Run("8B,called", func(b *testing.B) {
		cells := make([]uint64, 455_334)
		for i := range b.N {
			at := i & (streamLength - 1)
			updateOne(cells, flows[at], packets[at], int64(i))
		}
	})
}

//go:noinline
func updateOne(cells []uint64, f hashing.Flow, p hashing.Packet, t int64) {
	cells[hashing.Row(uint64(f)^uint64(p), uint64(len(cells)))] += uint64(t)
}

func BenchmarkUpdate(b *testing.B) {
	flows, packets := scattered()
	for name, c := range shapes {
		b.Run(name, func(b *testing.B) {
			r, err := New(c)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for i := range b.N {
				at := i & (streamLength - 1)
				r.Update(flows[at], packets[at], int64(i))
			}
			b.ReportMetric(1e3*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "Mpkt/s")
		})
	}
}

func BenchmarkUpdateBatch(b *testing.B) {
	const burst = 32
	flows, packets := scattered()
	for name, c := range shapes {
		b.Run(name, func(b *testing.B) {
			r, err := New(c)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for i := 0; i < b.N; i += burst {
				at := i & (streamLength - 1)
				r.UpdateBatch(flows[at:at+burst], packets[at:at+burst], int64(i))
			}
			b.ReportMetric(1e3*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "Mpkt/s")
		})
	}
}

// BenchmarkQuery is the estimate of one flow from one epoch at each point, the
// gathering included.
func BenchmarkQuery(b *testing.B) {
	flows, packets := scattered()
	for _, name := range []string{"wraps,4B", "counted,8B"} {
		c := shapes[name]
		c.Threshold = 0
		b.Run(name, func(b *testing.B) {
			up, err := New(c)
			if err != nil {
				b.Fatal(err)
			}
			down, _ := New(c)
			for i, f := range flows {
				up.Update(f, packets[i], int64(i))
				down.Update(f, packets[i], int64(i)+1000)
			}
			sender, _ := NewSubvector(c)
			receiver, _ := NewSubvector(c)
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				f := flows[i&(streamLength-1)]
				sender.Reset(f)
				receiver.Reset(f)
				if sender.Add(up.Current()) != nil || receiver.Add(down.Current()) != nil {
					b.Fatal("not added")
				}
				if _, err := Estimate(sender, receiver, 100); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// What Update and UpdateBatch call for every packet is inlined.
func TestInlining(t *testing.T) {
	command, err := exec.LookPath("go")
	if err != nil {
		t.Skip("needs the go command")
	}
	out, err := exec.Command(command, "build", "-gcflags=-m", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{"choice", "position", `\(\*Recorder\)\.Pending`} {
		if !regexp.MustCompile(`can inline ` + name + `\n`).Match(out) {
			t.Errorf("%s cannot be inlined", name)
		}
	}
}
