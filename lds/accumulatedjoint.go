package lds

import (
	"context"
	"fmt"
	"math"

	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
)

// Decode estimates the mean delays of all flows over all intervals together,
// as [Decode] does for one interval. It takes the share of a flow's packets
// that a cell holds from the cell's runs; Result.Share is the largest of these
// shares. A flow of which the runs hold less than a tenth is marked with a
// Usable of 0.
//
// If runs leave packets out, the mean of a flow of 30 packets or more combines
// the decoded mean with that of [Accumulator.Estimate], unless MeansOnly
// leaves their precision unknown. MeanInterval treats packets in no run as
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
			if i%4096 == 0 && ctx.Err() != nil {
				return joint.Result{}, fmt.Errorf("lds: %w", ctx.Err())
			}
			scale := max(math.Abs(r.Mean[i]), math.Abs(s.mean))
			bias, chance := missed(float64(share), r.Packets[i])
			r.StdDev[i] = math.Hypot(r.StdDev[i], scale*math.Sqrt(bias+chance))
			a.combine(&r, i, flows[i].Flow)
		}
	}
	return r, nil
}

// Flows of fewer packets than this are decoded better than they are read.
const leastRead = 30

// usualError is the part of MeanError that the mean of an Accumulator is usually
// off by. It is made for intervals that hold under any law of delays.
const usualError = 1.0 / 3

// combine sets the mean of flow i to a mixture of what was decoded and what is
// read, weighted by precision. Reading knows when a flow's packets passed,
// while decoding knows only their shares, so reading is better for large flows
// that lost much. Both may share an error, so their deviations add up.
func (a *Accumulator) combine(r *joint.Result, i int, f hashing.Flow) {
	if r.Packets[i] < leastRead {
		return
	}
	read, err := a.Estimate(f)
	if err != nil || math.IsInf(read.MeanError, 1) {
		return
	}
	usual := usualError * read.MeanError
	total := usual*usual + r.StdDev[i]*r.StdDev[i]
	if total == 0 {
		return
	}
	weight := usual * usual / total // of the decoded mean
	r.Mean[i] = weight*r.Mean[i] + (1-weight)*read.Mean
	r.StdDev[i] = weight*r.StdDev[i] + (1-weight)*read.MeanError
}

// heldParts fills in the cells of a problem. It returns the fraction of each
// span of time that the runs of each cell hold, and whether the runs hold
// everything that was sent.
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

// appendParts appends the share of flow f's packets that each of its cells
// holds.
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
