package lda

import (
	"math"
	"testing"
)

// Packets that no group tells of are counted in some stratum, but may have been
// received in any: the doubt holds that. Where strata are alike it is nothing.
func TestMissingOfAnotherStratum(t *testing.T) {
	for _, c := range []struct {
		name    string
		step    float64 // ns between the means of strata
		missing float64
	}{
		{"alike", 0, 50},
		{"none missing", 1e6, 0},
		{"a queue that fills", 1e6, 50},
	} {
		var s sample
		s.strata = 5
		truth, packets := 0.0, 0.0
		for k := range 5 {
			p := part{mean: 1e6 + float64(k)*c.step, packets: 1000, degrees: 100}
			if k == 3 {
				p.missing = c.missing // really received in the first
			}
			s.push(p)
			truth += p.mean*p.packets + p.missing*1e6
			packets += p.packets + p.missing
			s.packets, s.received = s.packets+1000, s.received+1000+uint64(p.missing)
		}
		for i := range 10 {
			s.within.Add(float64(i%2)-0.5, 1)
		}
		var r Result
		s.report(&r)
		if off := math.Abs(r.Mean - truth/packets); off > r.MeanDoubt+1e-6*r.Mean {
			t.Errorf("%s: mean off by %.0f ns, doubt %.0f ns", c.name, off, r.MeanDoubt)
		}
		if c.step*c.missing == 0 && r.MeanDoubt > 1e-6*r.Mean {
			t.Errorf("%s: doubt %.0f ns of %.0f", c.name, r.MeanDoubt, r.Mean)
		}
	}
}
