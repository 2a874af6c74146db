package lds

import (
	"math"
	"testing"

	"github.com/hoplag/hoplag/estimate/clock"
	"github.com/hoplag/hoplag/hashing"
)

// A far clock that is 100 ms behind and gains 100 millionths leaves every
// flow's delay as it is, once the far sketch is corrected.
func TestCorrect(t *testing.T) {
	const start = 1_790_000_000_000_000_000
	c := shapes()["plain"]
	c.SumBits, c.GreatestDelay = 40, 1e6
	ahead := func(at int64) int64 { return -100_000_000 + (at-start)/10_000 }
	stream := packets(1, 500, 8)
	for i := range stream {
		stream[i].sent += start
	}
	up, exact := fill(t, c, stream)
	for i, p := range stream {
		stream[i].delay += ahead(p.sent + p.delay)
	}
	_, far := fill(t, c, stream)
	far.Correct(clock.Reading{Time: start + 5e8, Offset: float64(ahead(start + 5e8)), Drift: 1e-4})
	for i := range uint64(8) {
		flow := hashing.Flow(hashing.Word(1, i))
		want, err := Estimate(up, exact, flow)
		got, errFar := Estimate(up, far, flow)
		if err != nil || errFar != nil || math.Abs(got.Mean-want.Mean) > 1 {
			t.Errorf("flow %d: mean %.1f, %v; with clocks that agree %.1f, %v", i, got.Mean, errFar, want.Mean, err)
		}
	}
}
