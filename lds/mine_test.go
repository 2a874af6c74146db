package lds

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
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
			size, err := s.MeanPacketSize(f)
			if err != nil || size != float64(bytes)/float64(got) {
				t.Errorf("mean size %v, %v of %d bytes in %d packets", size, err, bytes, got)
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
	if _, err := s.MeanPacketSize(1); !errors.Is(err, estimate.ErrConfig) {
		t.Error(err)
	}
	c := lossless
	c.Bytes = true
	if _, err := mustNew(t, c).MeanPacketSize(1); !errors.Is(err, estimate.ErrNoSamples) {
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

func TestHeavyHitters(t *testing.T) {
	c := shapes()["plain"]
	stream := packets(23, 20000, 300)
	s, _ := fill(t, c, stream)
	count, _ := sizes(stream)
	var candidates []hashing.Flow
	for i := range uint64(300) {
		candidates = append(candidates, hashing.Flow(hashing.Word(1, i)))
	}
	const threshold = 200
	kept := []FlowCount{{Flow: 1, Packets: 2}}
	got := s.HeavyHitters(kept, candidates, threshold)
	if diff := cmp.Diff(kept, got[:1]); diff != "" {
		t.Error(diff)
	}
	listed := map[hashing.Flow]bool{}
	for i, h := range got[1:] {
		listed[h.Flow] = true
		if h.Packets < threshold || h.Packets != s.Packets(h.Flow) || i > 0 && h.Packets > got[i].Packets {
			t.Errorf("%+v at %d after %+v", h, i, got[i])
		}
	}
	heavy := 0
	for f, n := range count {
		if n >= threshold {
			heavy++
			if !listed[f] {
				t.Errorf("a flow of %d packets is not listed", n)
			}
		}
	}
	if heavy < 5 || len(listed) == len(candidates) {
		t.Errorf("%d heavy flows, %d listed of %d: the test shows nothing", heavy, len(listed), len(candidates))
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
