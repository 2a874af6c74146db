package colate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
)

// Decode estimates the mean delays of all flows of an epoch at once, from the records of as many of them as possible. It explains every
// counter by the flows that share it, where [Estimate] treats all flows but one as noise. For stored epochs see [Path.Decode].
//
// The result's flows are in the order of the records. A flow has a Usable of 0 if neither counters nor samples
// tell of it. Its mean is then that of all flows, and its interval as wide as flows are apart. Decode
// allocates, takes seconds for a million flows, and stops early when ctx is done.
//
// It returns [estimate.ErrMismatch] if the Configs or times of the epochs differ, and [estimate.ErrNoSamples]
// if no counter holds the same packets at both points.
func Decode(ctx context.Context, up, down *Recorder, flows []joint.FlowRecord, opts joint.Options) (joint.Result, error) {
	up, down, s, err := pair(up, down)
	if err != nil {
		return joint.Result{}, err
	}
	d := newDifferences(up.config, flows, 1)
	d.add(up, down, s)
	return d.decode(ctx, flows, opts, false)
}

// Decode is [Decode] for the epochs of two stores that overlap the time between from and to. It holds the
// counters of a few epochs, whatever the time: 75 MB for those of [DefaultConfig], beside what solving takes.
func (p Path) Decode(ctx context.Context, flows []joint.FlowRecord, from, to int64, opts joint.Options) (joint.Result, Coverage, error) {
	q, err := newQuery(p, from, to)
	defer q.close()
	if err != nil {
		return joint.Result{}, q.coverage, err
	}
	// A quarter of the epochs are seen again with the next ones: as many as packets take.
	size := max(4*(1+q.delay/q.config.Period), int64(6<<20/q.config.counters()), 12)
	d := newDifferences(q.config, flows, int(min(size, room)))
	if err = q.walk(ctx, &d.comparison); err != nil {
		return joint.Result{}, q.coverage, err
	}
	r, err := d.decode(ctx, flows, opts, q.clock != nil)
	q.coverage.Unseen = d.unseen()
	return r, q.coverage, err
}

// differences accumulates what all counters say about epochs.
type differences struct {
	comparison
	counters []difference
	sums     []float64   // of the delays of each counter's packets, as far as it is settled
	packets  []float64   // of each counter
	gaps     [][4]gap    // of each counter, of epochs with packets as in a typical one, and of those with more
	late     []crossings // of the counters that have any, after the first, which are none
}

// A difference holds the rest of what a counter says about all epochs.
type difference struct {
	filled, dark   float32 // packets in epochs in which it is not settled, and in which no counter is
	filling        float32 // the assumed delays of those filled
	lost, likely   float32 // packets that it lost, and would have lost like others
	settled, large float32 // packets in epochs in which it is settled, and in which the sum may have wrapped
	late           crossed
}

// newDifferences returns differences of all counters, for a number of epochs in a table.
func newDifferences(c Config, flows []joint.FlowRecord, epochs int) *differences {
	n := c.counters()
	d := &differences{
		comparison: newComparison(c, n, epochs),
		counters:   make([]difference, n), sums: make([]float64, n), packets: make([]float64, n), gaps: make([][4]gap, n),
	}
	d.comparison.take, d.samples.least = d.take, math.Ln2*float64(c.OneIn)
	d.samples.aim(flows)
	return d
}

// typical is how many counters tell of all.
const typical = 10_000

// take adds the table's epochs that count. Where a counter is not settled, the mean delay of others in that epoch
// fills the gap, and what the counter has above it in epochs that are as full.
func (d *differences) take() {
	t := d.table
	common := &d.common
	common.learn(t, 0, 1+len(d.counters)/typical)
	var s sight
	for i := range d.counters {
		c := &d.counters[i]
		t.read(i, &s)
		c.late.add(t, i, &s, common)
		common.late.latest = max(common.late.latest, c.late.latest)
		for e := range t.counting() {
			n := t.packets(i, e)
			if c.lost += float32(t.gone(i, e)); n == 0 {
				continue
			}
			g, x := &d.gaps[i][0], n
			if usual := common.cell[e]; n > usual+margin(usual) {
				x = n - usual
				g = &d.gaps[i][min((bits.Len(uint(x/margin(usual)))+1)/2, 3)]
			}
			d.packets[i] += n
			c.likely += float32(n * common.gone[e])
			if s.has(e) {
				d.sums[i] += s.areas[e]
				y := s.areas[e] - n*common.mean[e]
				g.known += float32(x * x / n)
				g.slope += float32(x * y / n)
				g.squares += float32(y * y / n)
				g.settled++
				c.settled += float32(n)
				c.large += float32(n * s.large[e])
				continue
			}
			if !common.known[e] {
				c.dark += float32(n)
			}
			c.filling += float32(n * common.mean[e])
			c.filled += float32(n)
			g.packets += float32(n)
			g.extra += float32(x)
		}
	}
}

// A gap is what some epochs of a counter say about others in which it is not settled. By regression, its delays above those of all, y, are
// in proportion to x: its packets, or those beyond a typical counter's, which are of flows that have as many more in other epochs.
type gap struct {
	known, slope, squares, settled float32 // of settled epochs, Σ x²/n, Σ xy/n, Σ y²/n, and their number
	packets, extra                 float32 // of others, Σ n and Σ x
}

// fill returns how much each of x adds to y where it is not settled, the variance of one packet, given that of one packet of all, and
// how many packets are equally uncertain. The prior says how much it adds in emptier epochs, and weighs as much as so many packets.
func (g *gap) fill(variance, prior, usual float64) (slope, own, packets float64) {
	known, extra := float64(g.known), float64(g.extra)
	squares, degrees := g.rest(prior)
	slope = usual + (float64(g.slope)-usual*known)/(known+prior)
	return slope, (squares + variance) / (degrees + 1), float64(g.packets) + extra*extra/(known+prior)
}

// rest returns the squares that the regression does not explain, and of how many.
func (g *gap) rest(prior float64) (squares, degrees float64) {
	part := float64(g.known) / (float64(g.known) + prior)
	slope := float64(g.slope) / (float64(g.known) + prior)
	squares = float64(g.squares) - 2*slope*float64(g.slope) + slope*slope*float64(g.known)
	return max(squares, 0), float64(g.settled) - part*(2-part)
}

// variance returns that of a packet of all beside others of its counter, where packets of flows that wait alike do not make it larger.
func (d *differences) variance() float64 {
	squares, degrees := 0.0, 1.0
	for i := 0; i < len(d.gaps); i += 1 + len(d.gaps)/typical {
		for g := range d.gaps[i] {
			x, n := d.gaps[i][g].rest(1)
			squares += x
			degrees += n
		}
	}
	return squares / degrees
}

// prior returns how many packets of a gap tell as much as that flows differ little: the variance of packets, as a part of
// that between flows, give or take a standard error.
func (d *differences) prior(variance float64) float64 {
	sum, squares, known := 0.0, 0.0, 0.0
	for i := range d.gaps {
		for _, of := range d.gaps[i] {
			usual := variance * float64(of.known)
			x := float64(of.slope)*float64(of.slope) - usual
			sum += x
			squares += max(x*x, 2*usual*usual)
			known += float64(of.known) * usual
		}
	}
	return max(known/max(sum+math.Sqrt(squares), math.SmallestNonzeroFloat64), 1)
}

// problem returns what all epochs say together.
func (d *differences) problem(flows []joint.FlowRecord) *joint.Problem {
	d.flush()
	c := &d.config
	p := &joint.Problem{
		Sum: d.sums, Count: d.packets, Unusable: make([]bool, c.counters()), Rows: 1, CellsPerRow: c.PerFlow,
		Variance: make([]float64, c.counters()),
		Packets:  make([]float64, len(flows)), Doubt: make([]float64, len(flows)), Cells: make([]uint32, 0, len(flows)*c.PerFlow),
	}
	variance := d.variance()
	prior, weights := d.prior(variance), slices.Clone(p.Count)
	for i := range d.counters {
		k, n := &d.counters[i], p.Count[i]
		p.Sum[i] += float64(k.filling)
		slope, own, packets := 0.0, 0.0, 0.0
		for g := range d.gaps[i] {
			slope, own, packets = d.gaps[i][g].fill(variance, prior, slope)
			p.Sum[i] += slope * float64(d.gaps[i][g].extra)
			p.Variance[i] += own * packets
			weights[i] += packets
		}
		p.Unusable[i] = c.forSamples() || float64(k.filled) > 0.8*n || float64(k.dark) > 0.05*n
	}
	read, wrapped := d.read(), slices.ContainsFunc(d.counters, func(k difference) bool { return k.large > someLarge*k.settled })
	for i, f := range flows {
		// How many packets were in the epochs that could not be read is unknown.
		p.Packets[i], p.Doubt[i] = f.Packets*read, math.Hypot(f.Doubt*read, f.Packets*(1-read)/2)
		settled, large := float32(0), float32(0)
		for j := range c.PerFlow {
			at := c.place(f.Flow, j)
			if p.Cells = append(p.Cells, at); wrapped {
				settled += d.counters[at].settled
				large += d.counters[at].large
			}
		}
		if large > someLarge*settled { // and others of its counters may have wrapped as well
			for _, at := range p.Cells[i*c.PerFlow:] {
				p.Unusable[at] = true
			}
		}
	}
	if share(p, weights); !slices.ContainsFunc(p.Doubt, func(doubt float64) bool { return doubt > 0 }) {
		p.Doubt = nil
	}
	return p
}

// share gives all packets of a flow the variance of those that were filled in. Judged by its own alone, a counter in
// which none was would outweigh the others, and so would one without a slow packet those that have one by chance.
func share(p *joint.Problem, weights []float64) {
	if !slices.ContainsFunc(p.Variance, func(v float64) bool { return v > 0 }) {
		return
	}
	of, all := make([]float64, len(p.Count)), make([]float64, len(p.Count))
	for f, n := range p.Packets {
		variance, packets := 0.0, math.SmallestNonzeroFloat64
		for _, at := range cellsOf(p, f) {
			variance += p.Variance[at]
			packets += weights[at]
		}
		for _, at := range cellsOf(p, f) {
			of[at] += n * variance / packets
			all[at] += n
		}
	}
	for at, n := range all {
		if n > 0 {
			p.Variance[at] = weights[at] * of[at] / n
		}
	}
}

// decode solves for all flows. The samples may be corrected by clocks.
func (d *differences) decode(ctx context.Context, flows []joint.FlowRecord, opts joint.Options, clocks bool) (joint.Result, error) {
	if !slices.ContainsFunc(flows, func(f joint.FlowRecord) bool { return f.Packets > 0 }) {
		return joint.Result{}, fmt.Errorf("colate: %w: no record says how many packets its flow has", estimate.ErrNoSamples)
	}
	p := d.problem(flows)
	p.Sampled = d.samples.means(flows, d.variance())
	counters := d.left(p)
	d.table, d.gaps, d.counters = nil, nil, nil
	r, err := p.Solve(ctx, opts)
	if errors.Is(err, estimate.ErrNoSamples) && slices.ContainsFunc(p.Sampled, func(x joint.Sample) bool { return x.Packets >= fewest }) {
		r, err = joint.Result{Mean: make([]float64, len(flows)), Usable: make([]uint16, len(flows)), Packets: p.Packets}, nil
		if !opts.MeansOnly {
			r.StdDev = make([]float64, len(flows))
		}
	}
	if err != nil {
		return joint.Result{}, fmt.Errorf("colate: %w", err)
	}
	r.Degrees = nil // the usual ones: what is added below has its own tails
	sum, packets := 0.0, 0.0
	for i, n := range p.Count {
		sum += p.Sum[i]
		packets += n
	}
	mean := sum / max(packets, 1)
	slow := d.common.late.missed(&d.common.late)
	for i := range flows {
		beyond := d.doubt(p, &r, i, counters, mean, slow)
		r.Packets[i] /= max(d.read(), 1e-9)
		if r.StdDev != nil && studentQuantile*r.StdDev[i] > d.common.lasted { // which tells nothing
			r.Usable[i] = 0
		}
		if f, ok := d.samples.of(flows[i], clocks, &d.common, &tally{}, beyond); ok {
			switch { // a mean has samples in it, so it only must not contradict them; or they are all that tells of the flow
			case r.Usable[i] == 0:
				r.Mean[i], r.Usable[i] = f.mean, 1
				if high, low := f.off(0.95); f.plain > 0 && r.StdDev != nil { // it lacks slow ones
					r.StdDev[i] = low / studentQuantile
				} else if r.StdDev != nil {
					r.StdDev[i] = (high + low) / 2 / studentQuantile
				}
			case r.StdDev != nil:
				off := r.StdDev[i] * estimate.StudentQuantile((1+sure)/2, 5)
				if _, ok := f.share(r.StdDev[i], r.Mean[i], off, off); !ok {
					r.Usable[i] = 0
				}
			}
		}
		if r.Mean[i] < 0 && mean > 0 && (r.StdDev == nil || r.Mean[i]+3*r.StdDev[i] > 0) {
			r.Mean[i] = 0 // noise: the second clock is not behind
		}
	}
	return r, nil
}

func cellsOf(p *joint.Problem, flow int) []uint32 {
	return p.Cells[flow*p.CellsPerRow:][:p.CellsPerRow]
}

// studentQuantile is as in [joint.Result.MeanInterval].
var studentQuantile = estimate.StudentQuantile(0.975, 5)

// A left is what is not known of a counter once flows are, or of all of a flow's. Reading it takes most time, so it is small.
type left struct {
	beyond, gone    float32 // packets lost, beyond what others lose, and at all
	more, deviation float32 // packets that no record explains more than in most counters, and their deviation
	clean, missing  float32 // as in a crossed
	late            int32   // in differences
}

// left returns what is left of each counter. Packets of flows without a record are in all counters alike.
func (d *differences) left(p *joint.Problem) []left {
	packets := slices.Clone(p.Count)
	for f, n := range p.Packets {
		for _, at := range cellsOf(p, f) {
			packets[at] -= n / float64(p.CellsPerRow)
		}
	}
	rests := slices.Clone(packets)
	slices.Sort(rests)
	// The deviation of a normal distribution with the same median distance.
	usual, spread := rests[len(rests)/2], (rests[len(rests)*84/100]-rests[len(rests)*16/100])/2
	all := make([]left, len(d.counters))
	d.late = make([]crossings, 1)
	for at, n := range p.Count {
		k := &d.counters[at]
		all[at] = left{k.lost - 3*k.likely - 0.02*k.filled, max(k.lost, 0),
			float32(packets[at] - usual), float32(math.Sqrt(max(n-packets[at], spread*spread, 1))),
			float32(k.late.clean), float32(k.late.missing), 0}
		if k.late.crossings != d.late[0] {
			all[at].late = int32(len(d.late))
			d.late = append(d.late, k.late.crossings)
		}
	}
	return all
}

// doubt widens the interval of a flow by what is not known of its counters, and refuses
// one of which too little is. It returns by how much packets from before the tables may raise its mean.
//   - A flow that lost far more than others is not like them: its gaps cannot be filled.
//   - Packets that were sent before the tables in which they came, long ago.
//   - Packets more or fewer than the records of all flows say, beyond chance. What was
//     sent is right as well as what came.
func (d *differences) doubt(p *joint.Problem, r *joint.Result, f int, counters []left, mean, slow float64) (beyond float64) {
	all, m, n := &d.common, float32(p.CellsPerRow), p.Packets[f]
	var k left
	variance := float32(0)
	if p.Doubt != nil {
		variance = float32(p.Doubt[f] * p.Doubt[f])
	}
	var own crossed
	for _, at := range cellsOf(p, f) {
		c := &counters[at]
		k.beyond += c.beyond
		k.gone += c.gone
		own.missing += float64(c.missing)
		own.clean += float64(c.clean)
		own.packets += p.Count[at]
		variance += c.deviation * c.deviation
		most := float32(n)/m + 4*c.deviation // another flow's record is wrong
		k.more += min(max(c.more, -most), most)
		if late := &d.late[c.late]; c.late > 0 {
			own.far.merge(&late.far)
			own.hidden.merge(&late.hidden)
			own.shown.merge(&late.shown)
		}
	}
	if k.beyond > 10 {
		r.Usable[f] = 0
	}
	if k.more < 0 {
		k.more = max(-k.more-k.gone, 0)
	}
	if k.more > 0 && k.more*k.more > 16*variance {
		r.Usable[f], r.Mean[f] = 0, mean
	}
	beyond = own.farther(&all.late)
	if !all.settles() { // nothing tells of any flow
		r.Usable[f] = 0
	}
	if r.StdDev == nil {
		return beyond
	}
	n = max(n, 1)
	slow = max(slow, own.missed(&all.late)) / studentQuantile
	r.StdDev[f] = math.Sqrt(r.StdDev[f]*r.StdDev[f] + slow*slow + rounding(d.config.unit())/n)
	return beyond
}
