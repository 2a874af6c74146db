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
	w, rng, packets := world{config: minutes(6000)}, rand.New(rand.NewPCG(5, 5)), 0.0
	var all []passage
	for i := range 750_000 {
		p := passage{Flow: hashing.Flow(rng.Uint64()), Packet: hashing.Packet(rng.Uint64()), Sent: rng.Int64N(60e9 - 1e9)}
		if minute := int64(i) / 5000; minute < 30 {
			p.Sent += minute * 60e9
		} else {
			p.Sent += (30 + (minute-30)/12) * 60e9
		}
		if p.At = p.Sent + int64(1e6*rng.ExpFloat64()); i%10 == 0 {
			p.Flow, p.At = 7, p.Sent+5e6
			packets++
		}
		all = append(all, p)
	}
	epochs, _ := w.cut(t, all)
	stores := [2]*Store{openStore(t, newMemory(), StoreOptions{}), openStore(t, newMemory(), StoreOptions{})}
	var folds []uint8
	for minute := range int64(40) {
		for i, s := range stores {
			if err := s.Append(epochs[minute][i]); err != nil {
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
