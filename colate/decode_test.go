package colate

import (
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/traffic"
)

// Large flows that come and go are known by the epochs in which their counters lost nothing, and what these say fills in the others, even
// if all fuller ones lost packets. The negative control assumes that other counters hold packets like all. Packets that losses may hide
// took no longer than those in sets, so intervals are not as wide as if they had taken seconds.
func TestFlowsThatComeAndGo(t *testing.T) {
	var held score
	var off, alike, wide []float64 // relative errors, and half-widths
	for seed := range uint64(3) {
		w, rng := world{config: cutAt(1e9), loss: 0.002, seed: seed}, rand.New(rand.NewPCG(seed, 6))
		w.config.Counters, w.config.PerFlow, w.config.Shift = 400, 16, 6
		var all []passage
		for i := range 310 {
			packets, seconds, mean := 300, 30.0, 1e6
			if i < 10 {
				packets, seconds, mean = 8000, 5, 5e6
			}
			from := (30 - seconds) * rng.Float64()
			for range packets {
				sent, took := int64((from+seconds*rng.Float64())*1e9), int64(mean*rng.ExpFloat64())
				all = append(all, passage{Flow: hashing.Flow(i), Packet: hashing.Packet(rng.Uint64()), Sent: sent, At: sent + took})
			}
		}
		epochs, arrived := w.cut(t, all)
		list := traffic.Truths(arrived, 1)
		decoded := func(filled bool) joint.Result {
			d := newDifferences(w.config, recordsOf(list), room)
			d.addAll(t, epochs)
			d.flush()
			if !filled {
				clear(d.gaps)
			}
			r, err := d.decode(t.Context(), recordsOf(list), joint.Options{}, false)
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		r, other := decoded(true), decoded(false)
		for i, f := range list {
			if f.Packets > 1000 {
				held.add(r.MeanInterval(i, 0.95), f.Mean)
				wide = append(wide, r.StdDev[i]*studentQuantile/f.Mean)
				off, alike = append(off, estimate.RelativeError(r.Mean[i], f.Mean)), append(alike, estimate.RelativeError(other.Mean[i], f.Mean))
			}
		}
	}
	held.want(t, "flows that come and go", 30)
	if half, a, b := median(wide), median(off), median(alike); half > 0.5 || b < 10*a {
		t.Errorf("half-widths of %.2f of the mean, off by %.3f, and by %.3f with packets like all in their gaps", half, a, b)
	}
	d := newDifferences(cutAt(1e9), nil, 1)
	d.gaps[0] = [4]gap{{known: 100, slope: 300, squares: 900, settled: 50}, {packets: 100, extra: 100}}
	if got := d.problem(nil).Sum[0]; got < 300*100/101 { // the prior counts as one packet
		t.Errorf("fuller epochs have %.3g beyond others, want 300", got)
	}
}
