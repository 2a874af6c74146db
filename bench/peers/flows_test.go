package main

import (
	"math/rand/v2"
	"testing"

	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/hoplag/hoplag/lds"
)

// A DDSketch a flow, for packets that carry the time they were sent, and the
// flow's key: how many flows fit into the bytes of the experiment ours-lds-table,
// by their packets, beside what a table of package lds holds.
func TestDDSketchPerFlow(t *testing.T) {
	const bytes, key = 910_000, 8
	held := bytes / lds.DefaultTableConfig.FlowBytes()
	rng := rand.New(rand.NewPCG(1, 1))
	for _, packets := range []int{10, 100, 1000} {
		d := must(ddsketch.NewDefaultDDSketch(0.01))
		for range packets {
			if err := d.Add(1e6 * rng.ExpFloat64()); err != nil {
				t.Fatal(err)
			}
		}
		var encoded []byte
		d.Encode(&encoded, false)
		n := bytes / (key + len(encoded))
		t.Logf("flows of %d packets: a DDSketch encodes in %d bytes, %d flows fit; lds.Table holds %d", packets, len(encoded), n, held)
		if packets >= 100 && n > held {
			t.Errorf("%d histograms of %d packets fit, more than the table's %d flows", n, packets, held)
		}
	}
}
