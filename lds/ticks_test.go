package lds

import (
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// Flows that send a packet just before each cut always have one on its way, in cells of their own.
// Some of their digests are alike by chance, and nothing is lost: taken for lost, those packets
// left means of minus 90 ms, or clocks that seemed not to agree.
func TestDigestsAlikeByChance(t *testing.T) {
	const intervals, length, flows = 250, int64(1e8), 50
	c := DefaultConfig
	c.Columns = 2000
	random, a := rand.New(rand.NewPCG(5, 6)), mustAccumulate(t, c)
	up, down, next := mustNew(t, c), mustNew(t, c), mustNew(t, c)
	var truth [flows]estimate.Moments
	var keys [flows]hashing.Flow
	for f := range keys {
		keys[f] = hashing.Flow(random.Uint64())
	}
	for k := range int64(intervals) {
		for f, key := range keys {
			p, at := hashing.Packet(random.Uint64()), (k+1)*length-random.Int64N(1e6)-1
			delay := int64(2e6) + int64(6e6*min(10, random.ExpFloat64()))
			up.Update(key, p, at)
			next.Update(key, p, at+delay)
			truth[f].Add(float64(delay))
		}
		if err := a.Add(k*length, (k+1)*length, up, down); err != nil {
			t.Fatal(err)
		}
		up.Reset()
		down.Reset()
		down, next = next, down
	}
	for f, key := range keys {
		r, err := a.Estimate(key)
		if err != nil {
			t.Fatal(err)
		}
		if i := r.MeanInterval(0.99); !i.Contains(truth[f].Mean()) || i.High-i.Low > float64(length) {
			t.Errorf("flow %d: %.3f to %.3f ms, and the mean is %.3f", f, i.Low/1e6, i.High/1e6, truth[f].Mean()/1e6)
		}
		if r.Overdue > 0 {
			t.Errorf("flow %d: %d lost", f, r.Overdue)
		}
	}
}
