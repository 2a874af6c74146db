package figlda

import (
	"math"
	"testing"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/estimate"
)

var quick = &experiment.Run{Seed: 1, Quick: true}

func passage(t *testing.T, law Law, share float64) *Passage {
	t.Helper()
	return NewTrace(quick, law).Lose(quick, share)
}

// The sample is the expected one, to five standard errors of its mean over the runs. The expectation at twice the
// loss is rejected.
func TestSample(t *testing.T) {
	p := passage(t, Laws[0], 0.01)
	pt := p.measure(quick)
	tolerance := 5 * pt.sample.StdDev() / math.Sqrt(float64(pt.sample.N())) / pt.sample.Mean()
	if off := estimate.RelativeError(pt.sample.Mean(), pt.expected); off > tolerance {
		t.Errorf("sample %v, expected %v ± %v", pt.sample.Mean(), pt.expected, tolerance)
	}
	wrong, _ := pt.config.Expect(pt.presampled*float64(len(p.Delays)), 2*p.LossRate)
	if estimate.RelativeError(pt.sample.Mean(), wrong) < tolerance {
		t.Errorf("the sample to expect at twice the loss, %v, passes for %v", wrong, pt.sample.Mean())
	}
}
