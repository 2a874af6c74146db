package lds

import (
	"fmt"
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

// BenchmarkFloor is what an update is held against: four cells, chosen by the
// same stream of hashes among the same bytes, get a time stamp added and are
// counted.
func BenchmarkFloor(b *testing.B) {
	flows, packets := scattered()
	cells := make([]cell, DefaultConfig.Rows*DefaultConfig.Columns)
	n := uint64(len(cells))
	b.ResetTimer()
	for i := range b.N {
		f, p, t := uint64(flows[i&(streamLength-1)]), uint64(packets[i&(streamLength-1)]), uint64(i)
		cells[hashing.Row(f, n)].add(t, 1)
		cells[hashing.Row(f>>32, n)].add(t, 1)
		cells[hashing.Row(p, n)].add(t, 1)
		cells[hashing.Row(p>>32, n)].add(t, 1)
	}
}

func BenchmarkUpdate(b *testing.B) {
	flows, packets := scattered()
	bank := multiBank(5)
	for _, c := range []Config{DefaultConfig, bank} {
		b.Run(fmt.Sprintf("%dx%d,k=%d", c.Rows, c.Columns, c.Spread), func(b *testing.B) {
			s := newSketch(c)
			b.SetBytes(0)
			b.ReportAllocs()
			for i := range b.N {
				s.Update(flows[i&(streamLength-1)], packets[i&(streamLength-1)], int64(i))
			}
			b.ReportMetric(1e3*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "Mpkt/s")
		})
	}
}

func BenchmarkUpdateBatch(b *testing.B) {
	const burst = 32
	flows, packets := scattered()
	s := newSketch(DefaultConfig)
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; i += burst {
		at := i & (streamLength - 1)
		s.UpdateBatch(flows[at:at+burst], packets[at:at+burst], int64(i))
	}
	b.ReportMetric(1e3*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "Mpkt/s")
}

func BenchmarkEstimate(b *testing.B) {
	flows, packets := scattered()
	up, down := newSketch(DefaultConfig), newSketch(DefaultConfig)
	for i, f := range flows {
		up.Update(f, packets[i], int64(i))
		down.Update(f, packets[i], int64(i)+1000)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if _, err := Estimate(up, down, flows[i&(streamLength-1)]); err != nil {
			b.Fatal(err)
		}
	}
}

// TestUpdateIsInlined: Update is one call, to add, and that makes none.
func TestUpdateIsInlined(t *testing.T) {
	gobin, err := exec.LookPath("go")
	if err != nil {
		t.Skip("needs the go command")
	}
	out, err := exec.Command(gobin, "build", "-gcflags=-m", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{`\(\*Sketch\)\.Update`, `\(\*cell\)\.add`, "split", "flowWord", "home", "tally"} {
		if !regexp.MustCompile(`can inline ` + name + `\n`).Match(out) {
			t.Errorf("%s cannot be inlined", name)
		}
	}
	if !newSketch(DefaultConfig).plain {
		t.Error("DefaultConfig does not take the short path")
	}
}
