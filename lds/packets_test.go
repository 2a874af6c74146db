package lds

import (
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/hashing"
)

func TestPacketsIsAnUpperBound(t *testing.T) {
	for _, spread := range []int{1, 5} {
		c := shapes()["plain"]
		c.Spread = spread
		stream := packets(21, 5000, 300)
		s, _ := fill(t, c, stream)
		exact, sizes := 0, map[hashing.Flow]uint64{}
		for _, p := range stream {
			sizes[p.flow]++
		}
		for f, n := range sizes {
			got := s.Packets(f)
			if got < n {
				t.Errorf("%d packets for %d", got, n)
			}
			if got == n {
				exact++
			}
		}
		if exact == 0 && spread == 1 {
			t.Error("no flow is alone in a row: the test shows nothing")
		}
	}
}

// TestLossIsAtLeastTheFlows: over rows that see all, Lost bounds the flow's
// own losses from above.
func TestLossIsAtLeastTheFlows(t *testing.T) {
	for _, spread := range []int{1, 5} {
		c := shapes()["plain"]
		c.Spread = spread
		stream := packets(24, 5000, 100)
		r := rand.New(rand.NewPCG(24, 2))
		missing := map[hashing.Flow]uint64{}
		for i := range stream {
			if r.Float64() < 0.05 {
				stream[i].lost = true
				missing[stream[i].flow]++
			}
		}
		up, down := fill(t, c, stream)
		for _, p := range stream {
			n := lost(up, down, p.flow)
			if got, err := Estimate(up, down, p.flow); err == nil && got.Lost != n {
				t.Errorf("Lost %d, want %d", got.Lost, n)
			}
			if n < missing[p.flow] {
				t.Errorf("%d lost, for %d", n, missing[p.flow])
			}
		}
	}
}
