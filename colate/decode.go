package colate

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
)

// Decode estimates the mean delays of all flows of an epoch at once, from the
// records of as many of them as possible. It explains every counter by the
// flows that share it, where [Estimate] treats all flows but one as noise.
// Flows missing from the records remain noise. For more than one epoch see
// [Path.Decode].
//
// The result's flows are in the order of the records. A flow has a Usable of 0
// if none of its counters holds the same packets at both points. Its mean is
// then that of all flows, and its interval as wide as flows are apart. Decode
// allocates. For 455,334 counters and 300,000 flows it takes seconds, and ends
// early with ctx.
//
// It returns [estimate.ErrMismatch] if the Configs or times of the epochs
// differ, and [estimate.ErrNoSamples] if no counter holds the same packets at
// both points.
func Decode(ctx context.Context, up, down *Recorder, flows []joint.FlowRecord, opts joint.Options) (joint.Result, error) {
	d := newDifferences(up.config)
	if up.config.comparable() != down.config.comparable() || up.start != down.start {
		return joint.Result{}, fmt.Errorf("colate: %w: %+v from %d on and %+v from %d on", estimate.ErrMismatch,
			up.config, up.start, down.config, down.start)
	}
	for i := range up.words {
		d.table.put(i, up.words[i], down.words[i])
	}
	d.end()
	return d.decode(ctx, flows, opts)
}

// Decode is [Decode] for the epochs of two stores that overlap the time
// between from and to. It holds the counters of a few epochs, whatever the
// time: 75 MB for those of [DefaultConfig], beside what solving takes. The
// progress in opts begins when all epochs are read.
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
		_, _, err := q.cells(s, all, all, d.table)
		if err == nil {
			d.end()
		}
		return err
	}, func() { d.unread++ })
	if err != nil {
		return joint.Result{}, q.coverage, err
	}
	r, err := d.decode(ctx, flows, opts)
	return r, q.coverage, err
}

// differences accumulates what all counters say about epochs.
type differences struct {
	config   Config
	period   int64
	table    *cellTable
	counters []difference
	epochs   float64 // epochs compared
	unread   float64 // epochs that could not be compared
}

// A difference is what a counter says about all epochs.
type difference struct {
	sum, packets float64 // of the delays in its groups, and of all epochs
	over         float64 // the part of sum above the means of all counters
	filled       float64 // packets in epochs without a group
	filling      float64 // and their assumed delays
	dark         float64 // of them, those in epochs in which no counter has a group
	lost, likely float64 // packets that it lost, and would have lost like others
}

// all returns the sum of all delays. Packets in epochs without a group of this
// counter waited longer than others by as much as those of its groups.
func (d *difference) all() float64 {
	return d.sum + d.filling + d.filled*d.over/max(d.packets-d.filled, 1)
}

// differencesRoom is the number of epochs that are matched by level at a time.
const differencesRoom = 8

func newDifferences(c Config) *differences {
	return &differences{
		config: c, period: c.Period, table: newCellTable(c, c.Counters, differencesRoom), counters: make([]difference, c.Counters),
	}
}

// end finishes a pair of epochs that was put into the table.
func (d *differences) end() {
	d.epochs++
	if d.table.epochs++; d.table.epochs == d.table.room {
		d.flush()
	}
}

// flush adds the table's groups. Where a counter has no group for an epoch,
// because it lost a packet, the mean delay of others in that epoch fills the
// gap: see [Accumulator].
func (d *differences) flush() {
	t := d.table
	likely := d.likely()
	common := d.common(likely)
	var groups []group
	for i := range d.counters {
		c, told := &d.counters[i], uint64(0)
		groups = likely.groups(groups, t, i)
		for k := range groups {
			told |= groups[k].mask
			c.sum += groups[k].sum
			c.over += groups[k].sum
		}
		for e := range t.epochs {
			n, of := t.packets(i, e), &common.epochs[e]
			c.packets += n
			c.likely += n * of.lost
			c.lost += t.gone(i, e)
			switch {
			case told>>e&1 != 0:
				c.over -= n * of.mean
				continue
			case of.known:
				c.filling += n * of.mean
			default:
				c.dark += n
				c.filling += n * common.usual
			}
			c.filled += n
		}
	}
	t.clear()
}

// common returns what all counters say about the table's epochs.
func (d *differences) common(likely likelihood) *common {
	t, limit := d.table, d.limit()
	var v view
	var groups []group
	each := func(f func(i int, g *group)) {
		for i := range d.counters {
			if t.total(i) > limit {
				continue
			}
			groups = likely.groups(groups, t, i)
			for k := range groups {
				f(i, &groups[k])
			}
		}
	}
	k, cells := new(common), 0.0
	for i := range d.counters {
		if t.total(i) <= limit {
			k.see(t, i)
			cells++
		}
	}
	each(func(_ int, g *group) { v.cover(g.mask) })
	v.open(cells, 0)
	each(func(i int, g *group) { v.count(g, t, i) })
	v.stands = v.grouped
	each(func(i int, g *group) { v.add(g, t, i, 0) })
	k.learn(&v, t.epochs, cells)
	return k
}

// limit returns the largest number of packets that a typical counter has in
// the table. A fuller one has an elephant.
func (d *differences) limit() float64 {
	var totals []float64
	for i := 0; i < len(d.counters); i += 1 + len(d.counters)/sampled {
		totals = append(totals, d.table.total(i))
	}
	slices.Sort(totals)
	middle := totals[len(totals)/2]
	_, limit := limits(middle, middle)
	return limit
}

// A likelihood tells groups from levels that were equal by chance. Those
// subtract the times of different packets, which are some fraction of a Period
// apart, while the delays of most groups are alike within far less.
type likelihood struct{ mean, spread, apart float64 }

func (l likelihood) is(g *group) bool {
	off := math.Abs(g.sum - float64(g.count)*l.mean)
	return off <= l.apart || off <= float64(g.count)*l.spread
}

// groups returns the groups of a counter that are not there by chance.
func (l likelihood) groups(dst []group, t *cellTable, i int) []group {
	return slices.DeleteFunc(t.groups(dst[:0], i), func(g group) bool { return !l.is(&g) })
}

// sampled is the number of counters from which likely learns.
const sampled = 20_000

// likely learns from the table's groups. It sets the limit beyond 300 times
// the typical distance, and beyond ten times what one group in many is off,
// which is more than chance makes.
func (d *differences) likely() likelihood {
	var means, off []float64
	var groups []group
	for i := 0; i < len(d.counters); i += 1 + len(d.counters)/sampled {
		groups = d.table.groups(groups[:0], i)
		for k := range groups {
			if g := &groups[k]; g.count > 0 {
				means = append(means, g.sum/float64(g.count))
			}
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
	chance := min(math.Ldexp(1, 4-int(d.config.DigestBits)), 0.2)
	l.spread = max(300*max(off[len(off)/2], d.config.Unit()), 10*off[int(float64(len(off))*(1-chance))])
	return l
}

// mostFilled is the largest fraction of a counter's packets that may be filled
// in.
const mostFilled = 0.8

// problem returns what all epochs say together.
func (d *differences) problem(flows []joint.FlowRecord) *joint.Problem {
	d.flush()
	c := &d.config
	p := &joint.Problem{
		Sum: make([]float64, c.Counters), Count: make([]float64, c.Counters), Unusable: make([]bool, c.Counters),
		Rows: 1, CellsPerRow: c.full(),
		Packets: make([]float64, len(flows)), Doubt: make([]float64, len(flows)),
		Cells: make([]uint32, 0, len(flows)*c.full()),
	}
	for i := range d.counters {
		k := &d.counters[i]
		p.Sum[i], p.Count[i] = k.all(), k.packets
		p.Unusable[i] = k.filled > mostFilled*k.packets || k.dark > darkest*k.packets
	}
	read := d.read()
	for i, f := range flows {
		// How many packets were in the epochs that could not be read is
		// unknown.
		p.Packets[i], p.Doubt[i] = f.Packets*read, math.Hypot(f.Doubt*read, f.Packets*(1-read)/2)
		for j := range c.full() {
			p.Cells = append(p.Cells, uint32(position(c.Identity, f.Flow, uint64(j), uint64(c.Counters))))
		}
	}
	d.thin(p, flows)
	return p
}

// read returns the fraction of the epochs that were compared.
func (d *differences) read() float64 { return d.epochs / max(d.epochs+d.unread, 1) }

// thin leaves thin counters out of a problem: those of the flows that own them
// and, if they hold more than a few packets of such flows, those of other
// flows too.
func (d *differences) thin(p *joint.Problem, flows []joint.FlowRecord) {
	c := &d.config
	if c.Thin == 0 {
		return
	}
	p.Rates = []float64{c.part(0) * float64(c.full())}
	packets := make([]float64, c.Counters)
	for _, f := range flows {
		for j := c.full(); j < c.PerFlow; j++ {
			packets[position(c.Identity, f.Flow, uint64(j), uint64(c.Counters))] += f.Packets * c.part(j)
		}
	}
	for i, n := range packets {
		p.Unusable[i] = p.Unusable[i] || n > 0.1*p.Count[i]
	}
}

func (d *differences) decode(ctx context.Context, flows []joint.FlowRecord, opts joint.Options) (joint.Result, error) {
	p := d.problem(flows)
	r, err := p.Solve(ctx, opts)
	if err != nil {
		return joint.Result{}, fmt.Errorf("colate: %w", err)
	}
	d.doubt(p, &r)
	read := d.read()
	for i := range r.Packets {
		r.Packets[i] /= max(read, 1e-9)
	}
	return r, nil
}

// doubt widens the intervals of flows by what was filled in for their
// counters: a flow may not have waited longer when others did, or may have
// waited twice as much longer. A flow that lost far more than others is not
// like them, and gets no answer.
func (d *differences) doubt(p *joint.Problem, r *joint.Result) {
	sum, packets := 0.0, 0.0
	for i := range d.counters {
		sum += d.counters[i].all()
		packets += d.counters[i].packets
	}
	mean := sum / max(packets, 1)
	for f := range r.Mean {
		var lost, likely, filled, all, off, n float64
		for _, at := range p.Cells[f*p.CellsPerRow:][:p.CellsPerRow] {
			k := &d.counters[at]
			lost += k.lost
			likely += k.likely
			filled += k.filled
			all += k.packets
			if !p.Unusable[at] && k.packets > 0 {
				off += math.Abs(k.filling-k.filled*mean) / k.packets
				n++
			}
		}
		if lost > 3*likely+0.02*filled+10 && filled > darkest*p.Packets[f] {
			r.Usable[f] = 0
		}
		if r.StdDev != nil && n > 0 {
			// How many of the flow's own packets were in what was filled in is
			// chance; the shorter the flow was present, the more so.
			part := filled / max(all, 1)
			chance := math.Sqrt(part / max(1-part, 0.01) / float64(p.CellsPerRow))
			own := max(chance, part) * math.Abs(r.Mean[f]-mean)
			r.StdDev[f] = math.Hypot(r.StdDev[f], max(off/n/2, own))
		}
	}
}
