package colate

import (
	"context"
	"fmt"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
)

// Joint decodes the mean delays of all flows of an interval at once, given
// the records of as many of them as possible: it explains every counter by
// the flows that share it, where [Estimate] takes all flows but one for noise.
// Flows that are missing from the records are noise still. up and down are
// the epochs of the interval at the two points, one Config throughout.
//
// Counted packets help it: a counter's delays are then weighed by the packets
// that are in it, not by those that were expected. In captured traffic, where
// most flows wait a microsecond and some tens of milliseconds, that is so where
// opts has no prior; with one prior for all flows, counts do harm, as the
// prior's mean is then taken off the uneven split of a flow that did not wait.
// Without counts, clocks' offset must be far below the delays.
//
// The result's flows are in the order of the records. It allocates; a run
// over 455,334 counters and 300,000 flows takes seconds, and ends early with
// ctx.
//
// It returns [estimate.ErrMismatch] for epochs of different Configs, and
// [estimate.ErrNoSamples] where no vector holds the same packets at both points and
// there are no packet counts to go by instead.
func Joint(ctx context.Context, up, down []*Epoch, flows []joint.FlowRecord, opts joint.Options) (joint.Result, error) {
	p, err := jointProblem(up, down, flows)
	if err != nil {
		return joint.Result{}, err
	}
	r, err := p.Solve(ctx, opts)
	if err != nil {
		return joint.Result{}, fmt.Errorf("colate: %w", err)
	}
	return r, nil
}

// jointProblem adds up the vectors in use, which map flows alike, and the
// epochs: one row of Counters cells.
func jointProblem(up, down []*Epoch, flows []joint.FlowRecord) (*joint.Problem, error) {
	if len(up) == 0 || len(down) == 0 {
		return nil, fmt.Errorf("colate: %w: %d and %d epochs", estimate.ErrNoSamples, len(up), len(down))
	}
	c := up[0].config
	sender, err := addUp(c, up)
	if err != nil {
		return nil, err
	}
	receiver, err := addUp(c, down)
	if err != nil {
		return nil, err
	}
	used, share := 0, 0.0
	for k := range c.Vectors {
		if agree(sender.vectors[k], receiver.vectors[k]) {
			used |= 1 << k
			share += c.Share(k)
		}
	}
	if used == 0 && c.CountBits > 0 {
		used, share = 1<<c.Vectors-1, 1
	}
	if used == 0 {
		return nil, fmt.Errorf("colate: %w: no vector holds the same packets at both points", estimate.ErrNoSamples)
	}
	p := &joint.Problem{
		Sum:         make([]float64, c.Counters),
		Rows:        1,
		CellsPerRow: c.PerFlow,
		Rates:       []float64{share},
		Packets:     make([]float64, len(flows)),
		Doubt:       make([]float64, len(flows)),
		Cells:       make([]uint32, 0, len(flows)*c.PerFlow),
	}
	if c.CountBits > 0 {
		p.Count = make([]float64, c.Counters)
		p.Unusable = make([]bool, c.Counters)
	}
	for k := range c.Vectors {
		if used>>k&1 == 0 {
			continue
		}
		for i := range c.Counters {
			at := c.cellIndex(k, i)
			p.Sum[i] += float64(estimate.Difference(sender.sums[at], receiver.sums[at], c.modulus())) * c.Unit()
			if p.Count != nil {
				p.Count[i] += float64(receiver.counts[at])
				if sender.counts[at] != receiver.counts[at] {
					p.Unusable[i] = true
				}
			}
		}
	}
	for f, record := range flows {
		p.Packets[f], p.Doubt[f] = record.Packets, record.Doubt
		for j := range c.PerFlow {
			p.Cells = append(p.Cells, uint32(position(c.Identity, record.Flow, uint64(j), uint64(c.Counters))))
		}
	}
	return p, nil
}

// totals is the sum of several epochs of one point.
type totals struct {
	sums, counts []uint64 // for each vector, each counter
	vectors      [MaxVectors]Vector
}

func addUp(c Config, epochs []*Epoch) (*totals, error) {
	t := &totals{
		sums:   make([]uint64, c.Vectors*c.Counters),
		counts: make([]uint64, c.Vectors*c.Counters),
	}
	for _, e := range epochs {
		if e.config != c {
			return nil, fmt.Errorf("colate: %w: %+v and %+v", estimate.ErrMismatch, c, e.config)
		}
		for at := range e.cells() {
			cell := e.cell(at)
			t.sums[at] += cell & c.sumMask()
			t.counts[at] += cell >> c.sumBits()
		}
		for k := range t.vectors {
			t.vectors[k].add(e.vectors[k])
		}
	}
	return t, nil
}
