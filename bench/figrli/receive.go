package figrli

import (
	"math/bits"
	"slices"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/perflow"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/rli"
)

// How numbers are written in claims and tables.
var percent, number, duration = experiment.Percent, experiment.Number, experiment.Duration

// A method is one of a receiver's.
type method struct {
	name string
	kind rli.Method
}

var (
	byLeft   = method{"RLI-L", rli.Left}
	byLine   = method{"RLI", rli.Linear}
	byPeriod = method{"busy-aware", rli.Auto}
	methods  = []method{byLeft, byLine, byPeriod}
)

// config returns a receiver's Config, with room for the flows of a passage.
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

// unnamed returns the passage with references that do not say which packet
// they were sent behind.
func (p *passage) unnamed() *passage {
	q := *p
	q.stamps = slices.Clone(p.stamps)
	for i := range q.stamps {
		q.stamps[i].Behind = 0
	}
	return &q
}

// receive returns the result of a receiver on the departures. born, if not
// nil, holds for each flow the number of the packet from which on it is
// measured, negative for never; all other packets are of a flow beside it.
func (p *passage) receive(c rli.Config, born []int32) *rli.Receiver {
	if born != nil {
		c.Flows *= 2 // whose packets are shed where there is no room hangs on a secret
	}
	r := experiment.Try(rli.NewReceiver(c))
	for i := range p.events {
		d := &p.events[i]
		switch {
		case d.stamp < 0:
			r.Pass(int(d.bytes), d.out)
		case !d.regular():
			r.Reference(p.stamps[d.stamp], d.out)
		case born != nil && (born[d.flow] < 0 || d.number < born[d.flow]):
			r.Update(^p.flows[d.flow].key, int(d.bytes), d.out) // it passed the injector, too
		default:
			r.Update(p.flows[d.flow].key, int(d.bytes), d.out)
		}
	}
	r.Flush()
	return r
}

// answers holds the flows' relative errors, by flow. NaN means no answer, or
// no truth to compare it with.
type answers struct{ mean, deviation []float64 }

// judge compares a receiver with the truth about flows.
func (p *passage) judge(r *rli.Receiver, truth []flow) answers {
	a := answers{perflow.Unanswered(len(truth)), perflow.Unanswered(len(truth))}
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

// measure returns the errors of a method for all flows.
func (p *passage) measure(m method) (answers, *rli.Receiver) {
	r := p.receive(p.config(m), nil)
	return p.judge(r, p.flows), r
}

func quantile(list []float64, p float64) float64 { return perflow.Quantile(list, p) }
func median(list []float64) float64              { return perflow.Quantile(list, 0.5) }

// spread returns a table cell: the median and the 75th percentile of errors.
func spread(list []float64) string {
	return percent(median(list)) + " / " + percent(quantile(list, 0.75))
}
