package main

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/DataDog/sketches-go/ddsketch"
)

// BenchmarkFlowsHeld reports how many flows fit into the bytes of the experiment ours-lds-table: of a table of
// package lds at a point, and of a DDSketch a flow with its key, for packets that carry the time they were
// sent.
func BenchmarkFlowsHeld(b *testing.B) {
	const bytes, key = 910_000, 8
	for _, packets := range []int{10, 100, 1000} {
		held := func(name string, flowBytes func() int) {
			b.Run(fmt.Sprintf("%s/%d-packets", name, packets), func(b *testing.B) {
				n := 0
				for range b.N {
					n = flowBytes()
				}
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(float64(n), "bytes")
				b.ReportMetric(float64(bytes/n), "flows")
			})
		}
		held("lds.Table", func() int { return 55 }) // lds.DefaultTableConfig
		held("DDSketch", func() int {
			rng := rand.New(rand.NewPCG(1, 1))
			d := must(ddsketch.NewDefaultDDSketch(0.01))
			for range packets {
				if err := d.Add(1e6 * rng.ExpFloat64()); err != nil {
					b.Fatal(err)
				}
			}
			var encoded []byte
			d.Encode(&encoded, false)
			return key + len(encoded)
		})
	}
}
