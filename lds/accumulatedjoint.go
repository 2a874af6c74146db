package lds

import (
	"context"
	"fmt"
	"math"

	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
)

// Decode estimates the mean delays of all flows over all intervals together,
// as [Decode] does for one. Of each flow it takes a cell to hold the part that
// the cell's runs have of the flow's packets; Result.Share is the largest of
// these. Flows of which the runs hold less than a tenth are marked: their
// Usable is 0. Of the packets that are in no run, MeanInterval supposes what
// [Accumulator.Estimate] does.
//
// The errors are those of the function [Decode].
func (a *Accumulator) Decode(ctx context.Context, flows []joint.FlowRecord, opts joint.Options) (joint.Result, error) {
	p := joint.Problem{
		Sum:      make([]float64, len(a.cells)),
		Count:    make([]float64, len(a.cells)),
		Unusable: make([]bool, len(a.cells)),
	}
	held, whole := a.heldParts(&p)
	if !whole {
		p.Parts = make([]float32, 0, len(flows)*a.config.Rows*a.config.Spread)
		for i, f := range flows {
			if i%4096 == 0 && ctx.Err() != nil {
				return joint.Result{}, fmt.Errorf("lds: %w", ctx.Err())
			}
			p.Parts = a.appendParts(p.Parts, f.Flow, held)
		}
	}
	s := a.summary()
	r, err := s.solve(ctx, &p, flows, opts)
	if err != nil || whole {
		return r, err
	}
	for i, share := range r.Share {
		switch {
		case share < leastShare:
			r.Usable[i] = 0
		case r.StdDev != nil:
			scale := max(math.Abs(r.Mean[i]), math.Abs(s.mean))
			r.StdDev[i] = math.Hypot(r.StdDev[i], scale*math.Sqrt(missed(float64(share), r.Packets[i])))
		}
	}
	return r, nil
}

// heldParts fills in the cells of a problem, and returns what part of each span
// of time the runs of each cell hold; whole, if all that was sent is in runs.
func (a *Accumulator) heldParts(p *joint.Problem) (held [][spans]float32, whole bool) {
	held, whole = make([][spans]float32, len(a.cells)), true
	for i := range a.cells {
		h := &a.cells[i]
		p.Sum[i], p.Count[i] = h.covered()
		sent := float64(h.total())
		p.Unusable[i] = p.Count[i] == 0 && sent > 0
		whole = whole && (p.Count[i] == sent || p.Unusable[i])
		for j := range h.runs[:h.used] {
			for k := range held[i] {
				held[i][k] += float32(a.part(&h.runs[j], k))
			}
		}
	}
	return held, whole
}

// appendParts appends what part of flow f's packets each of its cells holds.
func (a *Accumulator) appendParts(parts []float32, f hashing.Flow, held [][spans]float32) []float32 {
	profile := a.profile(f)
	for r := range a.config.Rows {
		for offset := range a.config.Spread {
			part := 0.0
			for k, packets := range profile.packets {
				part += packets * float64(held[a.config.at(r, f, offset)][k])
			}
			parts = append(parts, float32(min(1, part/max(profile.total, 1))))
		}
	}
	return parts
}
