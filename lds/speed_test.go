package lds

import (
	"testing"

	"github.com/hoplag/hoplag/bench/speed"
	"github.com/hoplag/hoplag/internal/compiler"
)

func BenchmarkEstimate(b *testing.B) {
	flows, packets := speed.Flows(), speed.Packets()
	up, down := newSketch(DefaultConfig), newSketch(DefaultConfig)
	for i, f := range flows {
		up.Update(f, packets[i], int64(i))
		down.Update(f, packets[i], int64(i)+1000)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if _, err := Estimate(up, down, flows[i&(speed.StreamLength-1)]); err != nil {
			b.Fatal(err)
		}
	}
}

// TestUpdateIsInlined: Update is one call, to add, and that makes none.
func TestUpdateIsInlined(t *testing.T) {
	compiler.Look(t).WantInlined(t, "(*Sketch).Update", "(*cell).add", "split", "flowWord", "home", "tally", "sampling")
	if !newSketch(DefaultConfig).quick {
		t.Error("DefaultConfig does not take a short path")
	}
}
