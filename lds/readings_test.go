package lds

import (
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/hashing"
)

// A flow that is spread over 64 cells of each row, and loses packets, has
// thousands of runs. All of them count: as many as the levels give of its packets.
func TestSpreadFlowIsReadWhole(t *testing.T) {
	c := accumulatedConfig()
	c.Columns, c.Spread = 500, maxSpread
	a, err := NewAccumulator(c)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(64, 1))
	up, down := mustNew(t, c), mustNew(t, c)
	const intervals, each = 200, 400
	var sum, arrived float64
	for k := range uint64(intervals) {
		up.Reset()
		down.Reset()
		for range each {
			p, delay := hashing.Packet(r.Uint64()), int64(1e6*(1+r.Float64()))
			up.Update(7, p, 0)
			if r.Float64() >= 0.01 {
				down.Update(7, p, delay)
				sum += float64(delay)
				arrived++
			}
		}
		if err := a.Add(k, up, down); err != nil {
			t.Fatal(err)
		}
	}
	got, err := a.Estimate(7)
	if err != nil || got.Share < 0.9 || got.Selected < fewReadings {
		t.Errorf("a share of %.2f, %d cells: %v", got.Share, got.Selected, err)
	}
	if mean := sum / arrived; !got.MeanInterval(0.95).Contains(mean) {
		t.Errorf("%v in %v, really %v", got.Mean, got.MeanInterval(0.95), mean)
	}
}
