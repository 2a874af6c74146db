package lds

import (
	"math"
	"testing"
)

// TestZeroWidthIsExact: where cells are half empty, an interval without a width means
// that the flow is alone in its cells, and nearly all of few flows have one. A single row
// proves nothing. The control: some answers with a width are wrong, near empty cells too.
func TestZeroWidthIsExact(t *testing.T) {
	one := lossless
	one.Rows, one.Rates = 1, [MaxRows]float64{1}
	for _, test := range []struct {
		c     Config
		exact float64 // of 20 flows, at least
	}{{lossless, 0.99}, {DefaultConfig, 0.9}, {one, 0}} {
		test.c.Columns = 600
		off := 0
		for _, flows := range []int{20, 60, 300} {
			exact, all := 0.0, 0.0
			for seed := range uint64(1200 / flows) {
				up, down := mustNew(t, test.c), mustNew(t, test.c)
				keys, _, means := laws["lognormal sizes"].obey(seed, []*Sketch{up}, []*Sketch{down}, flows, 0)
				for k, want := range means {
					r, err := Estimate(up, down, keys[k])
					i, wrong := r.MeanInterval(0.95), math.Abs(r.Mean-want) > 1e-9*want
					switch narrow := i.High-i.Low < 1e-6*want; {
					case err != nil || narrow && wrong:
						t.Errorf("%d rows, %d flows: %v, %v, want %v", test.c.Rows, flows, i, err, want)
					case narrow:
						exact++
					case wrong:
						off++
					}
					all++
				}
			}
			if t.Logf("%d rows, %d flows: %.3f exact", test.c.Rows, flows, exact/all); flows == 20 && exact < test.exact*all {
				t.Errorf("%d rows: %.3f exact, want %v", test.c.Rows, exact/all, test.exact)
			}
		}
		if off == 0 {
			t.Errorf("%d rows: no answer was wrong", test.c.Rows)
		}
	}
}
