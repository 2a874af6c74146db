//go:build linux

package main

import (
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/lda/kernel"
)

// beginUnderWay are what two points see from the fifth cut on, of packets of
// which one in so many is a copy, as a keep-alive is, and takes longer than the
// others. When the points begin, as many copies are on their way as ever after.
func beginUnderWay(t *testing.T, copies int) (cuts [][2]*kernel.Interval, mean float64) {
	t.Helper()
	const length, packets, before = int64(1e8), 5000, 4
	cuts = make([][2]*kernel.Interval, 30)
	for i := range cuts {
		for end := range cuts[i] {
			a, err := lda.New(cells)
			if err != nil {
				t.Fatal(err)
			}
			cuts[i][end] = &kernel.Interval{Aggregator: a, Start: int64(i) * length, End: int64(i+1) * length}
		}
	}
	rng := rand.New(rand.NewPCG(17, 4))
	var exact estimate.Moments
	for i := range (len(cuts) - 2) * packets {
		p, at, delay := hashing.Packet(rng.Uint64()), int64(i)*length/packets, length/10
		if copies > 0 && i%copies == 0 {
			p, delay = 12345, length*5/4
		}
		cuts[at/length][0].Aggregator.Update(p, at)
		cuts[(at+delay)/length][1].Aggregator.Update(p, at+delay)
		exact.Add(float64(delay))
	}
	return cuts[before:], exact.Mean()
}

// Packets that were on their way when the points in the kernel began are no extra
// ones, and copies among them make no mean false. Whoever takes nothing to be on
// its way takes the copies' delays for nothing.
func TestBeginUnderWay(t *testing.T) {
	for _, copies := range []int{0, 10, 2} { // one in so many
		cuts, mean := beginUnderWay(t, copies)
		m := new(inside)
		var all totals
		var repeats uint64
		if err := m.begin(cells); err != nil {
			t.Fatal(err)
		}
		careless, err := lda.NewAccumulator(cells)
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range cuts {
			if err := m.add(c[0], c[1]); err != nil {
				t.Fatal(err)
			}
			if err := careless.Add(c[0].Start, c[0].End, c[0].Aggregator, c[1].Aggregator); err != nil {
				t.Fatal(err)
			}
			if i%10 != 9 {
				continue
			}
			m.end()
			if d, _ := m.all.Estimate(); d.Repeats.Unknown > 0 {
				repeats += d.Repeats.Unknown
			}
			r := m.row().Report
			if r.Begins != (i < 20) || r.Forth.Lost+r.Forth.Extra > 0 {
				t.Errorf("copies %v, cut %d: %+v", copies, i, r)
			}
			if r.Forth.Err == nil {
				all.add(&r.Forth)
			}
		}
		all.report()
		if all.Mean != nil && (*all.Low > mean || *all.High < mean) {
			t.Errorf("copies %v: mean %s (%s to %s), exactly %s", copies, format(all.Mean), format(all.Low), format(all.High), format(&mean))
		}
		if copies == 0 && all.Mean == nil || copies > 0 && repeats == 0 {
			t.Errorf("copies %v: %+v, %d repeats", copies, all, repeats)
		}
		d, err := careless.Estimate()
		if copies > 0 && (err != nil || d.Mean > mean/2) {
			t.Errorf("copies %v, without care: %+v, %v: want a mean of half of %v at most", copies, d, err, mean)
		}
	}
}
