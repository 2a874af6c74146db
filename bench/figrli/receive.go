package figrli

import (
	"math"
	"math/bits"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/rli"
)

// A method is one of a receiver's.
type method struct {
	name  string
	kind  rli.Method
	paper bool
}

var (
	byLeft   = method{"RLI-L", rli.Left, true}
	byLine   = method{"RLI", rli.Linear, true}
	byPeriod = method{"busy-aware", rli.BusyAware, false}
	methods  = []method{byLeft, byLine, byPeriod}
)

// config is a receiver's, with room for the flows of a passage.
func (p *passage) config(m method) rli.Config {
	c := rli.DefaultConfig
	c.Rate, c.ReferenceBytes, c.Method = rate, referenceBytes, m.kind
	c.Flows = 1 << bits.Len(uint(len(p.flows)))
	c.Buffer = 4096
	if m.kind == rli.Left {
		c.Buffer = 0
	}
	return c
}

// receive is what a receiver makes of the departures. born, if not nil, is for
// each flow the number of the packet from which on it is measured, negative for
// never; all others only pass.
func (p *passage) receive(c rli.Config, born []int32) (*rli.Receiver, error) {
	r, err := rli.NewReceiver(c)
	if err != nil {
		return nil, err
	}
	for i := range p.events {
		d := &p.events[i]
		switch {
		case !d.regular():
			r.Reference(p.stamps[d.stamp], d.out)
		case born != nil && (born[d.flow] < 0 || d.number < born[d.flow]):
			r.Pass(int(d.bytes), d.out)
		default:
			r.Update(p.flows[d.flow].key, int(d.bytes), d.out)
		}
	}
	r.Flush()
	return r, nil
}

// answers are the flows' relative errors, by flow. NaN is no answer, or no truth
// to compare it with.
type answers struct{ mean, deviation []float64 }

// judge compares a receiver with the truth about flows, of as many as the
// passage has.
func (p *passage) judge(r *rli.Receiver, truth []flow) answers {
	a := answers{nothing(len(truth)), nothing(len(truth))}
	for i := range truth {
		f := &truth[i]
		if f.delays.N() == 0 {
			continue
		}
		got, err := r.Estimate(p.flows[i].key)
		if err != nil {
			continue
		}
		a.mean[i] = estimate.RelativeError(got.Mean, f.mean())
		if d := f.deviation(); d > 0 {
			a.deviation[i] = estimate.RelativeError(got.StdDev, d)
		}
	}
	return a
}

// measure is what a method is off by, for all flows.
func (p *passage) measure(m method) (answers, *rli.Receiver, error) {
	r, err := p.receive(p.config(m), nil)
	if err != nil {
		return answers{}, nil, err
	}
	return p.judge(r, p.flows), r, nil
}

func nothing(n int) []float64 {
	list := make([]float64, n)
	for i := range list {
		list[i] = math.NaN()
	}
	return list
}

// some are the numbers of a list that are any.
func some(list []float64) []float64 {
	var known []float64
	for _, x := range list {
		if !math.IsNaN(x) {
			known = append(known, x)
		}
	}
	return known
}

// quantile is that of the numbers that are any, or NaN.
func quantile(list []float64, p float64) float64 {
	q, err := estimate.NewEmpirical(some(list)).Quantile(p)
	if err != nil {
		return math.NaN()
	}
	return q
}

// percent formats a fraction: a dash where there is none, and 0 where only
// rounding is left of it.
func percent(x float64) string {
	switch {
	case math.IsNaN(x):
		return "-"
	case math.Abs(x) < 1e-9:
		x = 0
	}
	return experiment.Percent(x)
}

func median(list []float64) float64 { return quantile(list, 0.5) }
