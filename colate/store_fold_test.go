package colate

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
)

// Where few packets pass for long, a store folds counters; where more do, it no
// longer does; and a flow that was there all the time has an answer of both.
func TestStoreFolds(t *testing.T) {
	c := minutes(6000)
	rng := rand.New(rand.NewPCG(5, 5))
	stores := [2]*Store{openStore(t, newMemory(), StoreOptions{}), openStore(t, newMemory(), StoreOptions{})}
	packets := 0.0
	var folds []uint8
	for minute := range int64(40) {
		up, _ := New(c)
		down, _ := New(c)
		n := 5000
		if minute >= 30 {
			n = 60_000
		}
		for i := range n {
			f, p, at := hashing.Flow(rng.Uint64()), hashing.Packet(rng.Uint64()), minute*c.Period+rng.Int64N(c.Period-1e9)
			delay := int64(1e6 * rng.ExpFloat64())
			if i%10 == 0 {
				f, delay = 7, 5e6
				packets++
			}
			up.Update(f, p, at)
			down.Update(f, p, at+delay)
		}
		for i, r := range []*Recorder{up, down} {
			if err := stores[i].Append(r); err != nil {
				t.Fatal(err)
			}
		}
		folds = append(folds, stores[0].fold)
	}
	if folds[0] != 0 || folds[29] < 2 || folds[39] != 0 {
		t.Errorf("counters are folded %v times", folds)
	}
	path := Path{Up: stores[0], Down: stores[1]}
	r, coverage, err := path.Estimate(t.Context(), joint.FlowRecord{Flow: 7, Packets: packets}, 0, math.MaxInt64)
	if interval := r.MeanInterval(0.99); err != nil || !interval.Contains(5e6) || interval.High-interval.Low > 1e6 || coverage.Epochs != 40 {
		t.Errorf("%v in %v, %v, %+v", r.Mean, interval, err, coverage)
	}
}
