package lds

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/hashing"
)

// sizes counts each flow's packets.
func sizes(stream []passed) map[hashing.Flow]uint64 {
	packets := map[hashing.Flow]uint64{}
	for _, p := range stream {
		packets[p.flow]++
	}
	return packets
}

func TestPacketsIsAnUpperBound(t *testing.T) {
	for _, spread := range []int{1, 5} {
		c := shapes()["plain"]
		c.Spread = spread
		stream := packets(21, 5000, 300)
		s, _ := fill(t, c, stream)
		exact := 0
		for f, n := range sizes(stream) {
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

// TestSampledPackets: alone in a sketch whose rows sample at r, a flow's packets
// come out with a relative deviation of √((1−r)/(nr)).
func TestSampledPackets(t *testing.T) {
	const n = 20000
	r := rand.New(rand.NewPCG(22, 22))
	for _, rates := range [][MaxRows]float64{{0.5}, {0.1}, {0.01}, {0.01, 0.5, 0.1}} {
		c := Config{Rows: 1, Columns: 100, Spread: 5, Rates: rates, SumBits: 48}
		best := rates[0]
		for c.Rows < MaxRows && rates[c.Rows] > 0 {
			best = max(best, rates[c.Rows])
			c.Rows++
		}
		s := mustNew(t, c)
		for range n {
			s.Update(1, hashing.Packet(r.Uint64()), 0)
		}
		// 5 deviations: a false alarm in 1.7 million.
		deviations := func(got uint64) float64 {
			return (float64(got) - n) / (n * math.Sqrt((1-best)/(n*best)))
		}
		if z := deviations(s.Packets(1)); math.Abs(z) > 5 {
			t.Errorf("rates %v: %d packets for %d, off by %.1f deviations", rates, s.Packets(1), n, z)
		}
		// Negative control: counts not inverted by the rate.
		if z := deviations(uint64(float64(s.Packets(1)) * best)); math.Abs(z) <= 5 {
			t.Errorf("the check does not notice that %v was forgotten", best)
		}
	}
}

// In rows that sample nothing is seen of most losses: they have no say in Lost
// where other rows see every packet.
func TestLostIsNotSampled(t *testing.T) {
	c := shapes()["banks"]
	up, down := mustNew(t, c), mustNew(t, c)
	for i := range uint64(2000) {
		up.Update(7, hashing.Word(1, i), 0)
		if i%10 > 0 {
			down.Update(7, hashing.Word(1, i), 5)
		}
	}
	if n := lost(up, down, 7); n != 200 {
		t.Errorf("%d lost, want 200", n)
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
