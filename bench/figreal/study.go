package figreal

import (
	"math"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/perflow"
	"github.com/hoplag/hoplag/estimate"
)

// How numbers are written in claims and tables.
var percent, number, duration = experiment.Percent, experiment.Number, experiment.Duration

// large is the number of packets from which on a flow counts if one figure
// stands for many flows.
const large = 30

// floor is the smallest relative error that is drawn: exact answers are
// common, and a logarithmic axis has no place for them.
const floor = 1e-5

// A study compares answers about flows with the truth. Answers are a mean
// delay in ns for each flow; NaN stands for none, which counts as an answer
// of 0, an error of 100 %.
type study struct {
	truth []float64 // NaN if nothing arrived: the flow does not count
	size  []int     // packets sent
	least int       // fewest flows that make a point of a figure
	large []int     // numbers of the flows that count if one figure stands for many
}

// study returns the study of the captured delays.
func (c *capture) study() *study {
	delays := make([]estimate.Moments, len(c.flows))
	for i := range c.flows {
		delays[i] = c.flows[i].delays
	}
	return c.studyOf(delays)
}

// studyOf returns a study of other delays of the same flows.
func (c *capture) studyOf(delays []estimate.Moments) *study {
	s := &study{least: 3}
	for i := range c.flows {
		truth := math.NaN()
		if delays[i].N() > 0 {
			truth = delays[i].Mean()
		}
		s.truth = append(s.truth, truth)
		s.size = append(s.size, c.flows[i].sent)
	}
	s.large = s.flows(large, math.MaxInt)
	return s
}

// thin keeps at most a number of large flows, for answers that take long.
func (s *study) thin(most int) { s.large = perflow.Spread(s.large, most) }

// flows returns the numbers of flows of least to most packets that count.
func (s *study) flows(least, most int) []int {
	var list []int
	for i, truth := range s.truth {
		if !math.IsNaN(truth) && s.size[i] >= least && s.size[i] <= most {
			list = append(list, i)
		}
	}
	return list
}

// relative returns the errors of answers about flows.
func (s *study) relative(answers []float64, flows []int) []float64 {
	list := make([]float64, len(flows))
	for k, i := range flows {
		list[k] = perflow.Whole
		if !math.IsNaN(answers[i]) {
			list[k] = estimate.RelativeError(answers[i], s.truth[i])
		}
	}
	return list
}

// median returns the median error of the large flows; NaN without any.
func (s *study) median(answers []float64) float64 {
	return perflow.Quantile(s.relative(answers, s.large), 0.5)
}

// rms returns the root mean square error of the large flows, relative to that
// of their delays. Flows that waited long decide it.
func (s *study) rms(answers []float64) float64 {
	var off, delays float64
	for _, i := range s.large {
		got := answers[i]
		if math.IsNaN(got) {
			got = 0
		}
		off += (got - s.truth[i]) * (got - s.truth[i])
		delays += s.truth[i] * s.truth[i]
	}
	return math.Sqrt(off / delays)
}

// answered returns the fraction of the large flows with an answer.
func (s *study) answered(answers []float64) float64 {
	var of perflow.Coverage
	for _, i := range s.large {
		of.Count(!math.IsNaN(answers[i]))
	}
	return of.Share()
}

// kilobytes formats a size.
func kilobytes(bytes float64) string { return number(bytes/1000) + " kB" }
