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
// Usable is 0. Where runs leave packets out, the mean of a flow of 30 packets and
// more is between what is decoded and what [Accumulator.Estimate] reads, unless
// MeansOnly leaves it open how sure they are. Of the packets that are in no run,
// MeanInterval supposes what [Accumulator.Estimate] does.
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
			if i%4096 == 0 && ctx.Err() != nil {
				return joint.Result{}, fmt.Errorf("lds: %w", ctx.Err())
			}
			scale := max(math.Abs(r.Mean[i]), math.Abs(s.mean))
			r.StdDev[i] = math.Hypot(r.StdDev[i], scale*math.Sqrt(missed(float64(share), r.Packets[i])))
			a.combine(&r, i, flows[i].Flow)
		}
	}
	return r, nil
}

// Flows of fewer packets than this are decoded better than read.
const leastRead = 30

// combine makes the mean of flow i that of what was decoded and what is read, in
// proportion to how sure they are. Reading knows when a flow's packets passed,
// where decoding has shares of them only: it is the better for large flows that
// lost much. Both may be off by the same, so that deviations add up.
func (a *Accumulator) combine(r *joint.Result, i int, f hashing.Flow) {
	if r.Packets[i] < leastRead {
		return
	}
	read, err := a.Estimate(f)
	if err != nil || math.IsInf(read.MeanError, 1) {
		return
	}
	total := read.MeanError*read.MeanError + r.StdDev[i]*r.StdDev[i]
	if total == 0 {
		return
	}
	weight := read.MeanError * read.MeanError / total // of what is decoded
	r.Mean[i] = weight*r.Mean[i] + (1-weight)*read.Mean
	r.StdDev[i] = weight*r.StdDev[i] + (1-weight)*read.MeanError
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
