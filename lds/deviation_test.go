package lds

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
)

// deviating fills two sketches with flows of Pareto sizes whose packets have a
// deviation of an eighth to the whole of the flow's delay, and returns the flows
// and the deviations that their packets really had.
func deviating(up, down *Sketch) (flows []joint.FlowRecord, deviations []float64) {
	r := rand.New(rand.NewPCG(21, 21))
	for i := range uint64(7000) {
		f := hashing.Flow(hashing.Word(5, i))
		mean, packets := 1e5*math.Exp(r.NormFloat64()/2), int(min(2*math.Pow(1-r.Float64(), -1/0.9), 1e4))
		fixed := 1 - math.Pow(2, -3*r.Float64())
		var m estimate.Moments
		for range packets {
			delay := math.Trunc(mean * (fixed + (1-fixed)*r.ExpFloat64()))
			p := hashing.Packet(r.Uint64())
			up.Update(f, p, 0)
			down.Update(f, p, int64(delay))
			m.Add(delay)
		}
		flows = append(flows, joint.FlowRecord{Flow: f, Packets: float64(packets)})
		deviation := 0.0
		if packets > 1 {
			deviation = math.Sqrt(m.Variance())
		}
		deviations = append(deviations, deviation)
	}
	return flows, deviations
}

// Deviations are decoded for every flow, within 30 % for half of those of 100
// packets and more, and their intervals hold them.
func TestDecodeDeviations(t *testing.T) {
	skipShort(t)
	c := Config{Rows: 4, Columns: 4400, Spread: 5, Rates: [MaxRows]float64{1, 1, 1, 1}, SumBits: 48, DigestBits: 16}
	up, down := mustNew(t, c), mustNew(t, c)
	flows, truth := deviating(up, down)
	r, err := Decode(t.Context(), up, down, flows, joint.Options{Deviations: true})
	if err != nil {
		t.Fatal(err)
	}
	var errs []float64
	var covered, narrow, n float64
	for i, f := range flows {
		if f.Packets < 100 {
			continue
		}
		n++
		errs = append(errs, estimate.RelativeError(r.Deviation[i], truth[i]))
		if r.DeviationInterval(i, 0.95).Contains(truth[i]) {
			covered++
		}
		r.Freedom[i] *= 30 // the negative control
		if r.DeviationInterval(i, 0.95).Contains(truth[i]) {
			narrow++
		}
	}
	slices.Sort(errs)
	t.Logf("%g flows: median error %.3f, covered %.3f, and by intervals of a fifth %.3f", n, errs[len(errs)/2], covered/n, narrow/n)
	if errs[len(errs)/2] > 0.3 {
		t.Errorf("median error %g", errs[len(errs)/2])
	}
	least := 0.95 + estimate.NormalQuantile(1e-7)*math.Sqrt(0.95*0.05/n)
	if covered/n < least {
		t.Errorf("%g of %g covered", covered, n)
	}
	if narrow/n >= least {
		t.Errorf("%g of %g covered by intervals that are far too narrow", narrow, n)
	}
}

// Where all of a flow's packets are in one cell of each row, nothing is told of
// their deviation, and nothing is promised.
func TestDeviationsNeedSpread(t *testing.T) {
	c := Config{Rows: 4, Columns: 900, Spread: 1, Rates: [MaxRows]float64{1, 1, 1, 1}, SumBits: 48, DigestBits: 16}
	up, down := mustNew(t, c), mustNew(t, c)
	flows, _ := deviating(up, down)
	r, err := Decode(t.Context(), up, down, flows, joint.Options{Deviations: true})
	if err != nil {
		t.Fatal(err)
	}
	for i := range flows {
		if in := r.DeviationInterval(i, 0.95); r.Freedom[i] != 0 || in.Low != 0 || !math.IsInf(in.High, 1) || math.IsNaN(r.Deviation[i]) {
			t.Fatalf("flow %d: %g by %g squares, %+v", i, r.Deviation[i], r.Freedom[i], in)
		}
	}
	if r, err = Decode(t.Context(), up, down, flows, joint.Options{}); err != nil || r.Deviation != nil {
		t.Errorf("deviations that nobody asked for: %v", err)
	}
	if in := r.DeviationInterval(0, 0.95); !math.IsInf(in.High, 1) {
		t.Errorf("%+v without deviations", in)
	}
}
