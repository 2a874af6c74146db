package lds

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// sizes counts each flow's packets and bytes.
func sizes(stream []passed) (packets, bytes map[hashing.Flow]uint64) {
	packets, bytes = map[hashing.Flow]uint64{}, map[hashing.Flow]uint64{}
	for _, p := range stream {
		packets[p.flow]++
		bytes[p.flow] += uint64(p.bytes)
	}
	return packets, bytes
}

func TestPacketsAndBytesAreUpperBounds(t *testing.T) {
	for _, spread := range []int{1, 5} {
		c := shapes()["bytes"]
		c.Spread = spread
		stream := packets(21, 5000, 300)
		s, _ := fill(t, c, stream)
		truePackets, trueBytes := sizes(stream)
		exact := 0
		for f, n := range truePackets {
			got := s.Packets(f)
			bytes, err := s.Bytes(f)
			if got < n || err != nil || bytes < trueBytes[f] {
				t.Errorf("%d packets and %d bytes, %v, for %d and %d", got, bytes, err, n, trueBytes[f])
			}
			if got == n {
				exact++
				if bytes != trueBytes[f] {
					t.Errorf("%d bytes for %d, with the flow alone in its cells", bytes, trueBytes[f])
				}
			}
		}
		if exact == 0 && spread == 1 {
			t.Error("no flow is alone in a row: the test shows nothing")
		}
	}
}

func TestBytesNeedsByteSums(t *testing.T) {
	s := mustNew(t, lossless)
	s.UpdateWeighted(1, 2, 3, 1, 1500)
	if _, err := s.Bytes(1); !errors.Is(err, estimate.ErrConfig) {
		t.Error(err)
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

// boundedBy is of how many flows the bound is at least so many packets.
func boundedBy(s *Sketch, flows []hashing.Flow, packets uint64) (n int) {
	for _, f := range flows {
		if s.Packets(f) >= packets {
			n++
		}
	}
	return n
}

// Heavy hitters are those that there are, where the
// bounds of single flows list many more.
func TestHeavyHitters(t *testing.T) {
	c := shapes()["bytes"]
	c.Columns = 500
	stream := packets(23, 30000, 800)
	s, _ := fill(t, c, stream)
	count, _ := sizes(stream)
	var candidates []hashing.Flow
	for f := range count {
		candidates = append(candidates, f)
	}
	slices.Sort(candidates)
	const packets = 60
	found, err := s.HeavyHitters(t.Context(), candidates, packets)
	if err != nil {
		t.Fatal(err)
	}
	there, right := 0, 0
	for _, n := range count {
		if n >= packets {
			there++
		}
	}
	for i, v := range found {
		if count[v.Flow] >= packets {
			right++
		}
		if i > 0 && v.Packets > found[i-1].Packets {
			t.Errorf("%+v after %+v", v, found[i-1])
		}
	}
	if there < 50 || float64(right) < 0.95*float64(there) || float64(right) < 0.95*float64(len(found)) {
		t.Errorf("%d listed, %d of them right, of %d", len(found), right, there)
	}
	// The control: bounds alone list too many.
	if bounded := boundedBy(s, candidates, packets); float64(bounded) < 1.05*float64(len(found)) {
		t.Errorf("bounds list %d, decoding %d: nothing to gain", bounded, len(found))
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
