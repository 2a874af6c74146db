package figrli

import (
	"math"
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

// receive returns the result of a receiver on the departures.
func (p *passage) receive(c rli.Config) *rli.Receiver {
	r := experiment.Try(rli.NewReceiver(c))
	for i := range p.events {
		d := &p.events[i]
		switch {
		case d.stamp < 0:
			r.Pass(int(d.bytes), d.out)
		case !d.regular():
			r.Reference(p.stamps[d.stamp], d.out)
		default:
			r.Update(p.flows[d.flow].key, int(d.bytes), d.out)
		}
	}
	r.Flush()
	return r
}

// answers holds the flows' relative errors, by flow. NaN means no answer, or no truth to compare it with.
type answers struct{ mean, deviation []float64 }

// judge compares a receiver with the truth.
func (p *passage) judge(r *rli.Receiver) answers {
	none := slices.Repeat([]float64{math.NaN()}, len(p.flows))
	a := answers{none, slices.Clone(none)}
	for i := range p.flows {
		f := &p.flows[i]
		got, err := r.Estimate(f.key)
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
	r := p.receive(p.config(m))
	return p.judge(r), r
}

func quantile(list []float64, p float64) float64 { return perflow.Quantile(list, p) }
func median(list []float64) float64              { return perflow.Quantile(list, 0.5) }

// spread returns a table cell: the median and the 75th percentile of errors.
func spread(list []float64) string {
	return percent(median(list)) + " / " + percent(quantile(list, 0.75))
}
