package colate

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
)

// Decode estimates the mean delays of all flows of an epoch at once, given the
// records of as many of them as possible: it explains every counter by the
// flows that share it, where [Estimate] takes all flows but one for noise.
// Flows that are missing from the records are noise still. For more than one
// epoch see [Path.Decode].
//
// The result's flows are in the order of the records. Of a flow none of whose
// counters holds the same packets at both points it says so (Usable is 0): its
// mean is then that of all, and its interval as wide as flows are apart. Decode
// allocates; over
// 455,334 counters and 300,000 flows it takes seconds, and ends early with ctx.
//
// It returns [estimate.ErrMismatch] for epochs of different Configs or times,
// and [estimate.ErrNoSamples] where no counter holds the same packets at both
// points.
func Decode(ctx context.Context, up, down *Recorder, flows []joint.FlowRecord, opts joint.Options) (joint.Result, error) {
	d := newDifferences(up.config)
	if up.config.comparable() != down.config.comparable() || up.start != down.start {
		return joint.Result{}, fmt.Errorf("colate: %w: %+v from %d on and %+v from %d on", estimate.ErrMismatch,
			up.config, up.start, down.config, down.start)
	}
	for i := range up.words {
		d.table.put(i, up.words[i], down.words[i])
	}
	d.end(down.packets)
	return d.decode(ctx, flows, opts)
}

// Decode is [Decode] for the epochs of two stores that overlap the time from
// from to to. It holds the counters of a few epochs, whatever the time: 60 MB
// for those of [DefaultConfig], beside what solving takes. Progress in opts
// begins when all are read.
func (p Path) Decode(ctx context.Context, flows []joint.FlowRecord, from, to int64, opts joint.Options) (joint.Result, Coverage, error) {
	q := newQuery(p, from, to)
	defer q.close()
	var d *differences
	var all []uint32
	err := q.run(ctx, func(c Config) error {
		d = newDifferences(c)
		all = make([]uint32, c.Counters)
		for i := range all {
			all[i] = uint32(i)
		}
		return nil
	}, func(s *step) error {
		_, packets, err := q.cells(s, all, all, d.table)
		if err == nil {
			d.end(packets)
		}
		return err
	}, func() {})
	if err != nil {
		return joint.Result{}, q.coverage, err
	}
	r, err := d.decode(ctx, flows, opts)
	return r, q.coverage, err
}

// differences accumulates what all counters say about epochs.
type differences struct {
	config  Config
	period  int64
	table   *cellTable
	sums    []float64
	counts  []float64
	covered []float64 // packets of the epochs in which a counter had a group
	packets float64   // of all epochs
	lost    float64   // of these, in counters without a group
	epoch   []float64 // packets of each epoch in the table
}

// differencesRoom is how many epochs are matched by level at a time.
const differencesRoom = 8

func newDifferences(c Config) *differences {
	return &differences{
		config: c, period: c.Period, table: newCellTable(c, c.Counters, differencesRoom),
		sums: make([]float64, c.Counters), counts: make([]float64, c.Counters), covered: make([]float64, c.Counters),
	}
}

// end ends a pair of epochs that was put into the table.
func (d *differences) end(packets uint64) {
	d.packets += float64(packets)
	d.epoch = append(d.epoch, float64(packets))
	if d.table.epochs++; d.table.epochs == d.table.room {
		d.flush()
	}
}

// flush adds the table's groups, each for as many as it stands for: of the
// packets of an epoch, which had few counters left or many.
func (d *differences) flush() {
	var groups []group
	var all, in [differencesRoom]float64
	for i := range d.sums {
		groups = d.table.groups(groups[:0], i)
		mask := cover(groups)
		for e := range d.table.epochs {
			n := d.table.packets(i, e)
			if all[e] += n; mask>>e&1 != 0 {
				in[e] += n
			}
		}
	}
	for e := range d.table.epochs {
		d.lost += all[e] - in[e]
	}
	likely := d.likely()
	for i := range d.sums {
		groups = d.table.groups(groups[:0], i)
		for k := range groups {
			g := &groups[k]
			if !likely.is(g) {
				continue
			}
			weight := 0.0
			epochs := float64(bits.OnesCount64(g.mask))
			for mask := g.mask; mask != 0; mask &= mask - 1 {
				e := bits.TrailingZeros64(mask)
				w := all[e] / max(in[e], 1)
				weight += w / epochs
				d.covered[i] += w * d.epoch[e]
			}
			d.sums[i] += weight * g.sum
			d.counts[i] += weight * float64(g.count)
		}
	}
	d.epoch = d.epoch[:0]
	d.table.clear()
}

// A likelihood tells groups from levels that were equal by chance. Of those, the
// times of different packets are subtracted, which are some part of a Period
// apart, where most groups' delays are alike within far less.
type likelihood struct{ mean, spread, apart float64 }

func (l likelihood) is(g *group) bool {
	off := math.Abs(g.sum - float64(g.count)*l.mean)
	return off <= l.apart || off <= float64(g.count)*l.spread
}

// likely learns from the first group of each counter.
func (d *differences) likely() likelihood {
	var means, off []float64
	var groups []group
	for i := range d.sums {
		groups = d.table.groups(groups[:0], i)
		if len(groups) > 0 && groups[0].count > 0 {
			means = append(means, groups[0].sum/float64(groups[0].count))
		}
	}
	if len(means) == 0 {
		return likelihood{apart: math.Inf(1)}
	}
	slices.Sort(means)
	l := likelihood{mean: means[len(means)/2], apart: float64(d.period) / 100}
	for _, x := range means {
		off = append(off, math.Abs(x-l.mean))
	}
	slices.Sort(off)
	l.spread = 300 * max(off[len(off)/2], d.config.Unit())
	return l
}

// leastCovered is the part of all packets that the epochs of a counter's
// groups must have for the counter to stand for all.
const leastCovered = 0.5

// problem scales each counter's groups to all epochs.
func (d *differences) problem(flows []joint.FlowRecord) *joint.Problem {
	d.flush()
	c := &d.config
	p := &joint.Problem{
		Sum: make([]float64, c.Counters), Count: make([]float64, c.Counters), Unusable: make([]bool, c.Counters),
		Rows: 1, CellsPerRow: c.PerFlow,
		Packets: make([]float64, len(flows)), Doubt: make([]float64, len(flows)),
		Cells: make([]uint32, 0, len(flows)*c.PerFlow),
	}
	for i := range d.sums {
		part := d.covered[i] / max(d.packets, 1)
		if part < leastCovered {
			p.Unusable[i] = true
			continue
		}
		p.Sum[i], p.Count[i] = d.sums[i]/part, d.counts[i]/part
	}
	// A flow that was there for one epoch has only so many counters in it: how
	// many of its packets are in them is chance.
	usable := 1 - d.lost/max(d.packets, 1)
	chance := math.Sqrt((1 - usable) / (max(usable, 1e-3) * float64(c.PerFlow)))
	for i, f := range flows {
		p.Packets[i], p.Doubt[i] = f.Packets, math.Hypot(f.Doubt, chance*f.Packets)
		for j := range c.PerFlow {
			p.Cells = append(p.Cells, uint32(position(c.Identity, f.Flow, uint64(j), uint64(c.Counters))))
		}
	}
	return p
}

func (d *differences) decode(ctx context.Context, flows []joint.FlowRecord, opts joint.Options) (joint.Result, error) {
	r, err := d.problem(flows).Solve(ctx, opts)
	if err != nil {
		return joint.Result{}, fmt.Errorf("colate: %w", err)
	}
	return r, nil
}
