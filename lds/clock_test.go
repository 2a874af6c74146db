package lds_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/estimate/clock"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lds"
)

// A far clock that is 100 ms behind and gains 100 millionths leaves every
// flow's delay as it is, once the far sketch is corrected.
func TestCorrect(t *testing.T) {
	const start = 1_790_000_000_000_000_000
	config := lds.Config{
		Rows: 4, Columns: 64, Spread: 1, Rates: [lds.MaxRows]float64{1, 1, 1, 1}, SumBits: 40, DigestBits: 16, GreatestDelay: 1e6,
	}
	sketch := func() *lds.Sketch {
		s, err := lds.New(config)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	up, exact, far := sketch(), sketch(), sketch()
	ahead := func(at int64) int64 { return -100_000_000 + (at-start)/10_000 }
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range uint64(500) {
		flow := hashing.Flow(hashing.Word(1, i%8))
		packet := hashing.Word(2, i)
		at := start + rng.Int64N(1e9)
		received := at + 200_000 + rng.Int64N(50_000)
		up.Update(flow, packet, at)
		exact.Update(flow, packet, received)
		far.Update(flow, packet, received+ahead(received))
	}
	far.Correct(clock.Reading{Time: start + 5e8, Offset: float64(ahead(start + 5e8)), Drift: 1e-4})
	for i := range uint64(8) {
		flow := hashing.Flow(hashing.Word(1, i))
		want, err := lds.Estimate(up, exact, flow)
		if err != nil {
			t.Fatal(err)
		}
		got, err := lds.Estimate(up, far, flow)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(got.Mean-want.Mean) > 1 || math.Abs(got.StdDev-want.StdDev) > 2 {
			t.Errorf("flow %d: mean %.1f, deviation %.1f; with clocks that agree %.1f and %.1f", i, got.Mean, got.StdDev, want.Mean, want.StdDev)
		}
	}
}
