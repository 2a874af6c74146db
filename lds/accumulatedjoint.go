package lds

import (
	"context"
	"math"

	"github.com/hoplag/hoplag/estimate/joint"
)

// Decode estimates the mean delays of all flows over all intervals together,
// as [Decode] does for one interval. What the runs of a cell leave out is taken
// to have waited like the rest, give or take as long again.
//
// The errors are those of the function [Decode].
func (a *Accumulator) Decode(ctx context.Context, flows []joint.FlowRecord, opts joint.Options) (joint.Result, error) {
	p := joint.Problem{
		Sum:      make([]float64, len(a.cells)),
		Count:    make([]float64, len(a.cells)),
		Variance: make([]float64, len(a.cells)),
		Unusable: make([]bool, len(a.cells)),
	}
	for i := range a.cells {
		sum, packets := a.cells[i].covered()
		sent := float64(a.cells[i].total())
		p.Count[i], p.Unusable[i] = sent, packets < leastShare*sent
		if packets > 0 {
			p.Sum[i] = sum / packets * sent
			left := (sent - packets) * sum / packets
			p.Variance[i] = min(left*left, math.MaxFloat32)
		}
	}
	return a.summary().solve(ctx, &p, flows, opts)
}
