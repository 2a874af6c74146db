package lds

import (
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/hashing"
)

// Over rows that see all, Packets bounds a flow's packets from above, and Lost its own losses.
func TestPacketsAreUpperBounds(t *testing.T) {
	for _, spread := range []int{1, 5} {
		c := shapes()["plain"]
		c.Spread = spread
		stream, r := packets(21, 5000, 300), rand.New(rand.NewPCG(24, 2))
		exact, sizes, missing := 0, map[hashing.Flow]uint64{}, map[hashing.Flow]uint64{}
		for i := range stream {
			p := &stream[i]
			if sizes[p.flow]++; r.Float64() < 0.05 {
				p.lost = true
				missing[p.flow]++
			}
		}
		up, down := fill(t, c, stream)
		for f, n := range sizes {
			got, ofLost := up.Packets(f), lost(up, down, f)
			if r, err := Estimate(up, down, f); got < n || ofLost < missing[f] || err == nil && r.Lost != ofLost {
				t.Errorf("%d packets for %d, %d lost for %d, %+v", got, n, ofLost, missing[f], r)
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
