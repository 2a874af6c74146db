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
// if none of its counters holds the same packets at both points and too few of
// its packets were sampled. Its mean is then that of all flows, and its interval
// as wide as flows are apart. Decode allocates. For 455,334 counters and a
// million flows it takes seconds, and ends early with ctx.
//
// It returns [estimate.ErrMismatch] if the Configs or times of the epochs
// differ, and [estimate.ErrNoSamples] if no counter holds the same packets at
// both points.
func Decode(ctx context.Context, up, down *Recorder, flows []joint.FlowRecord, opts joint.Options) (joint.Result, error) {
	if err := made(up, down); err != nil {
		return joint.Result{}, err
	}
	up, down = alike(up, down)
	if err := matched(up, down, up.config.comparable()); err != nil {
		return joint.Result{}, err
	}
	d := newDifferences(up.config, flows, 1)
	for i := range up.words {
		d.table.put(i, up.words[i], down.words[i])
	}
	d.samples.whole(up, false)
	d.samples.whole(down, true)
	d.samples.match(up.span(), min(up.limit, down.limit), up.packets, down.packets, true)
	d.end(up.span(), up.packets, down.packets, true)
	return d.decode(ctx, flows, opts, false)
}

// Decode is [Decode] for the epochs of two stores that overlap the time
// between from and to. It holds the counters of a few epochs, whatever the
// time: 75 MB for those of [DefaultConfig], beside what solving takes. The
// progress in opts begins when all epochs are read.
func (p Path) Decode(ctx context.Context, flows []joint.FlowRecord, from, to int64, opts joint.Options) (joint.Result, Coverage, error) {
	q, err := newQuery(p, from, to)
	defer q.close()
	if err != nil {
		return joint.Result{}, q.coverage, err
	}
	// A quarter of the epochs are seen again with the next ones: as many as packets take.
	size := max(4*(1+q.delay/q.config.Period), int64(differencesRoom/q.config.counters()), 12)
	d := newDifferences(q.config, flows, int(min(size, room)))
	all := make([]uint32, q.config.counters())
	for i := range all {
		all[i] = uint32(i)
	}
	q.samples, d.samples.delay = d.samples, q.delay
	if d.unread, err = q.walk(ctx, all, all, d.table, d.end); err != nil {
		return joint.Result{}, q.coverage, err
	}
	r, err := d.decode(ctx, flows, opts, q.clock != nil)
	return r, q.coverage, err
}

// differences accumulates what all counters say about epochs.
type differences struct {
	config   Config
	table    *cellTable
	samples  *sampling
	counters []difference
	sums     []float64 // of the delays of each counter's packets, as far as it is settled
	packets  []float64 // of each counter
	epochs   int       // compared
	unread   int       // that could not be compared
	scatter  scatter   // of all packets
}

// A difference is what else a counter says about all epochs.
type difference struct {
	over    float32 // the part of the sum above the means of all counters
	filled  float32 // packets in epochs in which it is not settled
	filling float32 // and their assumed delays
	dark    float32 // of them, those in epochs in which no counter is settled
	lost    float32 // packets that it lost
	likely  float32 // and would have lost like others
	narrow  bool    // a sum may have wrapped
}

// differencesRoom is the number of epochs, times counters, that are matched by level
// at a time, in 75 MB.
const differencesRoom = 6 << 20

func newDifferences(c Config, flows []joint.FlowRecord, epochs int) *differences {
	n := c.counters()
	d := &differences{
		config: c, table: newCellTable(c, n, epochs), counters: make([]difference, n),
		sums: make([]float64, n), packets: make([]float64, n),
		samples: &sampling{config: &c, least: max(fewest*float64(c.OneIn)/2, fewest)},
	}
	d.samples.aim(flows)
	return d
}

// end finishes a pair of epochs that was put into the table.
func (d *differences) end(s span, _, _ uint64, counts bool) {
	if counts {
		d.epochs++
	}
	d.table.end(s, counts, d.flush)
}

// flush adds the table's epochs that count. Where a counter is not settled, the
// mean delay of others in that epoch fills the gap: see accumulator.
func (d *differences) flush() {
	t := d.table
	if t.live == 0 {
		return
	}
	const typical = 10_000 // counters tell of all
	largest := largestSum(&d.config)
	common := t.learn(0, 1+len(d.counters)/typical)
	d.scatter.add(&common.scatter)
	var areas [room]float64
	for i := range d.counters {
		c, s := &d.counters[i], t.read(i, areas[:])
		for e := range t.epochs {
			if t.live>>e&1 == 0 {
				continue
			}
			n := t.packets(i, e)
			d.packets[i] += n
			c.likely += float32(n * common.gone(e))
			c.lost += float32(t.gone(i, e, e+1))
			if s.settled>>e&1 != 0 {
				d.sums[i] += areas[e]
				c.narrow = c.narrow || math.Abs(areas[e]) > largest
				c.over += float32(areas[e] - n*common.mean[e])
				continue
			}
			if !common.known[e] {
				c.dark += float32(n)
			}
			c.filling += float32(n * common.mean[e])
			c.filled += float32(n)
		}
	}
	t.live = 0
}

const (
	// mostFilled is the largest fraction of a counter's packets that may be
	// filled in.
	mostFilled = 0.8
	// darkest is that of epochs in which no counter is settled.
	darkest = 0.05
)

// problem returns what all epochs say together.
func (d *differences) problem(flows []joint.FlowRecord) *joint.Problem {
	d.flush()
	c := &d.config
	p := &joint.Problem{
		Sum: d.sums, Count: d.packets, Unusable: make([]bool, c.counters()),
		Rows: 1, CellsPerRow: c.PerFlow,
		Packets: make([]float64, len(flows)), Cells: make([]uint32, 0, len(flows)*c.PerFlow),
	}
	for i := range d.counters {
		// Packets in epochs in which this counter is not settled waited longer
		// than others by as much as those of the rest.
		k, n := &d.counters[i], p.Count[i]
		p.Sum[i] += float64(k.filling) + float64(k.filled)*float64(k.over)/max(n-float64(k.filled), 1)
		p.Unusable[i] = float64(k.filled) > mostFilled*n || float64(k.dark) > darkest*n
	}
	read := d.read()
	for i, f := range flows {
		p.Packets[i] = f.Packets * read
		// How many packets were in the epochs that could not be read is unknown.
		if doubt := math.Hypot(f.Doubt*read, f.Packets*(1-read)/2); doubt > 0 {
			if p.Doubt == nil {
				p.Doubt = make([]float64, len(flows))
			}
			p.Doubt[i] = doubt
		}
		narrow := 0
		for j := range c.PerFlow {
			at := c.place(f.Flow, j)
			p.Cells = append(p.Cells, at)
			if d.counters[at].narrow {
				narrow++
			}
		}
		if 8*narrow > c.PerFlow { // and others of its counters may have wrapped as well
			for _, at := range p.Cells[i*c.PerFlow:] {
				p.Unusable[at] = true
			}
		}
	}
	return p
}

// enough is the smallest number of sampled packets that are combined with what
// counters say: the variance of fewer goes with their mean.
const enough = 30

// read returns the fraction of the epochs that were compared.
func (d *differences) read() float64 { return float64(d.epochs) / float64(max(d.epochs+d.unread, 1)) }

// decode solves for all flows. The samples may be corrected by clocks.
func (d *differences) decode(ctx context.Context, flows []joint.FlowRecord, opts joint.Options, clocks bool) (joint.Result, error) {
	p := d.problem(flows)
	d.table = nil
	r, err := p.Solve(ctx, opts)
	if err != nil {
		return joint.Result{}, fmt.Errorf("colate: %w", err)
	}
	sum, packets := 0.0, 0.0
	for i, n := range p.Count {
		sum += p.Sum[i]
		packets += n
	}
	mean := sum / max(packets, 1)
	d.doubt(p, &r, mean)
	d.check(p, &r, mean)
	read := max(d.read(), 1e-9)
	for i := range r.Packets {
		r.Packets[i] /= read
	}
	for i := range flows {
		gone := 0.0
		for _, at := range p.Cells[i*p.CellsPerRow:][:p.CellsPerRow] {
			gone += float64(d.counters[at].lost)
		}
		if f := d.samples.of(flows[i], gone); f != nil && (f.packets >= enough || r.Usable[i] == 0) {
			f.finish(flows[i].Packets, clocks, d.samples.pool.hidden(&d.scatter, f.packets))
			combine(&r, i, &f.sampled)
		}
		if r.Mean[i] < 0 && mean > 0 && (r.StdDev == nil || r.Mean[i]+3*r.StdDev[i] > 0) {
			r.Mean[i] = 0 // noise: the second clock is not behind
		}
	}
	return r, nil
}

// combine adds what samples say of flow i, weighed by its variance, unless they
// contradict the counters.
func combine(r *joint.Result, i int, f *sampled) {
	share := 1.0
	if r.Usable[i] > 0 && r.StdDev == nil {
		return
	}
	if r.StdDev != nil {
		low, high := f.off(0.95)
		own, other := (low+high)/2/studentQuantile, r.StdDev[i]
		if off := other * estimate.StudentQuantile((1+sure)/2, 5); r.Usable[i] > 0 {
			share = f.share(own, other, r.Mean[i], off, off)
		}
		r.StdDev[i] = math.Hypot(share*own, (1-share)*other)
	}
	r.Mean[i] = share*f.mean + (1-share)*r.Mean[i]
	r.Usable[i] = max(r.Usable[i], 1)
}

// studentQuantile is that of 97.5 % with five degrees of freedom, as in
// [joint.Result.MeanInterval].
var studentQuantile = estimate.StudentQuantile(0.975, 5)

// check widens the intervals of flows whose counters hold more packets than the
// records of all flows say, or fewer, and refuses an answer where that is no chance.
// What was sent is right as well as what came. Packets of flows without a record are
// in all counters alike.
func (d *differences) check(p *joint.Problem, r *joint.Result, mean float64) {
	m, rest := float64(p.CellsPerRow), slices.Clone(p.Count)
	for f, n := range p.Packets {
		for _, at := range p.Cells[f*p.CellsPerRow:][:p.CellsPerRow] {
			rest[at] -= n / m
		}
	}
	rests := slices.Sorted(slices.Values(rest))
	// The deviation that a normal distribution of the same middle would have.
	usual, spread := rests[len(rests)/2], (rests[len(rests)*84/100]-rests[len(rests)*16/100])/2
	for f, n := range p.Packets {
		var more, lost, variance float64
		for _, at := range p.Cells[f*p.CellsPerRow:][:p.CellsPerRow] {
			own := max(p.Count[at]-rest[at], spread*spread, 1)
			most := n/m + 4*math.Sqrt(own) // another flow's record is wrong
			more += min(max(rest[at]-usual, -most), most)
			lost += max(float64(d.counters[at].lost), 0)
			variance += own
		}
		if p.Doubt != nil {
			variance += p.Doubt[f] * p.Doubt[f]
		}
		if more < 0 {
			more = max(-more-lost, 0)
		}
		if more > 4*math.Sqrt(variance) {
			r.Usable[f], r.Mean[f] = 0, mean
		} else if r.StdDev != nil && more > 2*math.Sqrt(variance) {
			r.StdDev[f] = math.Hypot(r.StdDev[f], math.Abs(r.Mean[f]-mean)*more/n)
		}
	}
}

// doubt widens the intervals of flows by what was filled in for their
// counters: a flow may not have waited longer when others did, or may have
// waited twice as much longer. A flow that lost far more than others is not
// like them, and gets no answer.
func (d *differences) doubt(p *joint.Problem, r *joint.Result, mean float64) {
	for f := range r.Mean {
		var lost, likely, filled, all, off, n float64
		for _, at := range p.Cells[f*p.CellsPerRow:][:p.CellsPerRow] {
			k := &d.counters[at]
			lost += float64(k.lost)
			likely += float64(k.likely)
			filled += float64(k.filled)
			all += p.Count[at]
			if !p.Unusable[at] && p.Count[at] > 0 {
				off += math.Abs(float64(k.filling)-float64(k.filled)*mean) / p.Count[at]
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
			scattered := math.Sqrt(part * d.scatter.variance() / max(p.Packets[f], 1))
			r.StdDev[f] = math.Hypot(r.StdDev[f], max(off/n/2, own, scattered))
		}
	}
}
