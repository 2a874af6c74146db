package lds

import (
	"math"
	"testing"
)

// MeanInterval holds for flows of every size, whether or not packets are lost,
// and whether or not rows sample.
func TestMeanIntervalCovers(t *testing.T) {
	plain := lossless
	plain.Columns /= 20
	sampled := DefaultConfig
	sampled.Columns /= 20
	spread := lossless
	spread.Columns, spread.Spread = 5*plain.Columns, 5
	for name, c := range map[string]Config{"plain": plain, "default": sampled, "spread": spread} {
		for _, loss := range []float64{0, 0.01} {
			up, down := mustNew(t, c), mustNew(t, c)
			v := newInterval(91, up, down, loss)
			for _, class := range [][2]float64{{1, 9}, {10, 99}, {100, math.Inf(1)}} {
				var flows, covered, narrow float64
				for i, f := range v.flows {
					if v.packets[i] < class[0] || v.packets[i] > class[1] {
						continue
					}
					r, err := Estimate(up, down, f)
					if err != nil {
						continue
					}
					flows++
					if r.MeanInterval(0.95).Contains(v.means[i]) {
						covered++
					}
					r.MeanError /= 20 // the negative control
					if r.MeanInterval(0.95).Contains(v.means[i]) {
						narrow++
					}
				}
				t.Logf("%s, loss %g, %g to %g packets: %.3f of %.0f", name, loss, class[0], class[1], covered/flows, flows)
				if least := 0.95 - 4*math.Sqrt(0.05*0.95/flows); covered < least*flows {
					t.Errorf("%s, loss %g, %g to %g packets: %.3f of %.0f covered", name, loss, class[0], class[1], covered/flows, flows)
				}
				if flows > 100 && narrow >= 0.95*flows {
					t.Errorf("%s, loss %g: intervals a twentieth as wide cover %.3f", name, loss, narrow/flows)
				}
			}
		}
	}
}
