package figlda

import (
	"math"
	"testing"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/lda"
)

var quick = &experiment.Run{Seed: 1, Quick: true}

func passage(t *testing.T, law Law, share float64) *Passage {
	t.Helper()
	return NewTrace(quick, law).Lose(quick, share)
}

// Without loss, an aggregator that samples every packet gives the mean of the
// trace to the last bit; with a packet lost, it does not.
func TestExact(t *testing.T) {
	p := passage(t, Laws[0], 0)
	c := lda.Config{SumBits: sumBits}
	c.Banks[0].Rows = rows
	estimated := func() estimate.Delay {
		up, down := p.Measure(c, 1)
		r, err := lda.Estimate(up, down)
		if err != nil {
			t.Fatal(err)
		}
		return r.Delay
	}
	var sum int64
	for _, d := range p.Delays {
		sum += int64(d)
	}
	exact := float64(sum) / quickSize
	if d := estimated(); d.N != quickSize || math.Abs(d.Mean-exact) > 1e-9*exact || math.Abs(p.Truth.Mean-exact) > 1e-9*exact {
		t.Errorf("mean %v of %d packets, truth %v, want %v of %d", d.Mean, d.N, p.Truth.Mean, exact, quickSize)
	}
	p.Lost[7] = true
	if d := estimated(); d.N == quickSize || d.Mean == exact {
		t.Errorf("mean %v of %d packets although one was lost", d.Mean, d.N)
	}
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
