package lds

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/hoplag/hoplag/estimate"
)

// Flows fall at random, so others bring to a flow's cell what the cells next to it hold: each of these is a candidate. If others
// brought u packets with the sum s to a cell of n packets and the mean m, the mean of the flow is off by (s − u·m) ÷ (n − u). A
// candidate is the likelier, the better the n − u packets that it leaves explain the flow's cells in all rows: there, others
// brought what is left of packets and of time (METHODS, section 8).
const lengths = 33 // classes of packet counts, by their binary length

// A candidate is an error of a mean, with its likelihood. One that is rare may be outside intervalOf.
type candidate struct {
	off, weight float64
	rare        bool
}

// A typical is the median of the means of cells next to the flow's, how far two thirds are from it, and of how many packets they are.
type typical struct{ middle, away, packets float64 }

type others struct {
	*view
	row     int                       // of the cell that was read
	least   [MaxRows]content          // the flow's least loaded cell in each row
	density [MaxRows][lengths]float64 // relative likelihood that a cell holds a number of packets

	typical [lengths]typical // by packets: cells of many have larger flows, which may be slower
	most    float64          // how far cells are from the flow's at most
	small   float64          // packets of the smallest flow
	doubt   float64          // variance of how many packets the cell that was read stands for

	list [2*nearCells*MaxRows + 128]candidate
	used int
}

// meanError returns the scale of the error of the mean of the cell that was read, for Student's distribution of intervalDegrees,
// and how far the mean is off with a confidence of farConfidence. They are +Inf if there is no candidate.
func (o *others) meanError(own *content) (scale, far float64) {
	c, n, mean := o.config, own.packets, own.beyond/own.packets
	part, off, sampled := c.Rates[o.row]/float64(c.Spread), 0.0, 0.0
	o.doubt = n * (1 - part) / (part * part)
	if !o.alone(own) {
		o.look(n, mean)
		for r := range c.Rows {
			for _, near := range o.near(r) {
				if c.Rates[r] == c.Rates[o.row] {
					o.add(&near, n, part, mean)
				}
			}
		}
		o.unlike(n, part, mean)
		off, far = o.quantiles()
	}
	// Which of the flow's packets are in the cell is chance, and so is how long the unknown ones took.
	if part < 1 {
		sampled = o.single * (1 - part) / n
	}
	rest := sampled + own.variance/(n*n)
	return math.Sqrt(off*off+rest) + rounding*math.Abs(mean), math.Sqrt(far*far + sq(studentFar)*rest)
}

// alone reports whether the flow is alone in the cell that was read, because rows that see every packet have the same packets in its
// cells. If so, another flow is in all of them as well, or none is in any, which is as likely once other cells are free of those: the odds
// are the flows there are times the chance that one falls into all of these cells, at most what intervals of 99.9 % leave out.
func (o *others) alone(own *content) bool {
	const most = 1e-3
	columns := float64(o.config.Columns)
	chance, cells, empty := columns, 0.0, 0.0
	for r, rate := range o.config.Rates[:o.config.Rows] {
		if rate < 1 || o.config.Spread > 1 || o.own(r)[0] != *own {
			continue
		}
		chance /= columns
		for _, near := range o.near(r) {
			cells++
			if near.packets == 0 {
				empty++
			}
		}
	}
	flows := -math.Log(empty / (cells + 1)) // of a cell, on average, at most
	return cells > 0 && chance*flows <= most
}

func (o *others) look(n, mean float64) {
	c := o.config
	var list [2 * nearCells * MaxRows]took
	cells, least, empty := list[:0], n, false
	for r := range c.Rows {
		o.least[r] = slices.MinFunc(o.own(r), func(a, b content) int { return cmp.Compare(a.packets, b.packets) })
		for _, near := range o.near(r) {
			if o.density[r][classOf(near.packets)]++; c.Rates[r] == 1 {
				empty, least = empty || near.packets == 0, min(least, cmp.Or(near.packets, least))
			}
			if near.usable && near.packets > 0 {
				cells = append(cells, near.took)
			}
		}
		for b := range lengths { // one cell more may be in any class (W. Perks, 1947)
			o.density[r][b] = (o.density[r][b] + 1.0/lengths) / math.Ldexp(1, max(0, b-1))
		}
	}
	if o.small = 1; empty { // others have one flow
		o.small = max(1, least)
	}
	if o.most = o.apart; len(cells) == 0 {
		return
	}
	for _, x := range cells {
		o.most = max(o.most, o.apart+math.Abs(x.beyond/x.packets-mean))
	}
	slices.SortFunc(cells, func(a, b took) int { return cmp.Compare(a.packets, b.packets) })
	for b, first, last := 0, 0, 0; b < lengths; b, first = b+1, last {
		for last < len(cells) && classOf(cells[last].packets) <= b {
			last++
		}
		o.typical[b] = typicalOf(cells, first, last, o.apart)
	}
}

// typicalOf is that of the cells from first to last, sorted by their packets, and of more if they are few.
func typicalOf(cells []took, first, last int, apart float64) typical {
	const enough = 12 // so that two are beyond each sixth
	for last-first < min(enough, len(cells)) {
		first, last = max(0, first-1), min(len(cells), last+1)
	}
	var list [2 * nearCells * MaxRows]float64
	means := list[:0]
	for _, x := range cells[first:last] {
		means = append(means, x.beyond/x.packets)
	}
	slices.Sort(means)
	n := len(means)
	return typical{means[n/2], cmp.Or((means[n*5/6]-means[n/6])/2, apart), cells[(first+last)/2].packets}
}

func classOf(packets float64) int { return bits.Len32(uint32(packets + 0.5)) }

// likely returns how likely others are to bring n packets to a cell of row r, if n is uncertain by a variance.
func (o *others) likely(r int, n, variance float64) float64 {
	miss := 1.0
	if n < 0 {
		miss = math.Exp(-n * n / (2 * variance)) // 0 where it is certain
	}
	return miss * o.density[r][classOf(max(n, math.Sqrt(variance)))]
}

// explains returns how likely it is that the flow has this many packets, which took so long together, by the
// rows other than its own. All powers of two of sizes are alike: if small flows counted for as many as there
// are, intervals of large ones would be too wide. Flows are farther apart than cells.
func (o *others) explains(packets, sum float64) float64 {
	likely := o.usual(sum, packets, sq(packets*o.typical[classOf(packets)].away)) / packets
	for r, rate := range o.config.Rates[:o.config.Rows] {
		if r == o.row {
			continue
		}
		x, part := &o.least[r], rate/float64(o.config.Spread)
		left, chance := x.packets-part*packets, part*(1-part)*packets
		likely *= o.likely(r, left, chance+part*part*o.doubt)
		if x.usable && !math.IsInf(o.single, 1) {
			likely *= o.usual(x.beyond-part*sum, left, x.variance+chance*o.single)
		}
	}
	return likely
}

// usual returns how likely packets are to take so long together, give or take a variance: their mean is distributed as
// those of nearby cells of as many packets are, with the tails of Student's distribution of three degrees.
func (o *others) usual(sum, packets, variance float64) float64 {
	packets = max(packets, 1)
	t := &o.typical[classOf(packets)]
	scale := packets*max(packets, t.packets)*sq(t.away) + variance // fewer packets are farther apart
	if scale == 0 {
		return 1
	}
	return math.Sqrt(scale) * scale / sq(sq(sum-packets*t.middle)+3*scale)
}

// add adds a cell next to the flow's, which samples alike. No flow is farther from its cell than the farthest
// of the cells is, by more than these are apart.
func (o *others) add(near *content, n, part, mean float64) {
	u, sum, off := near.packets, near.beyond, 0.0
	if u > 0 {
		if u >= n || !near.usable {
			return
		}
		off = min(math.Abs(sum-u*mean)/(n-u), o.farthest((n-u)/part))
	}
	o.list[o.used] = candidate{off, o.explains((n-u)/part, (n*mean-sum)/part), false}
	o.used++
}

// farthest returns how far the mean of a number of packets is from that of the flow's cell at most: as far as cells
// are, and fewer packets than are in these are farther apart.
func (o *others) farthest(packets float64) float64 {
	packets = max(packets, o.small)
	return o.most * math.Sqrt(max(1, o.typical[classOf(packets)].packets/packets))
}

// unlike adds that others are like none of the cells next to the flow's, so that it may be as far from its cell
// as any is. That is one candidate, of all sizes alike, but as likely as others are to bring that much or more.
func (o *others) unlike(n, part, mean float64) {
	near := o.near(o.row)
	for own := n; own >= part*o.small; own /= 2 { // of the cell, the flow's packets
		as, packets := 1.0, own/part
		for i := range near {
			if near[i].packets >= n-own {
				as++
			}
		}
		likely := as / float64(len(near)+1)
		weight := likely / float64(2*max(1, classOf(n/part)))
		for _, off := range [2]float64{o.farthest(packets), -o.farthest(packets)} {
			o.list[o.used] = candidate{math.Abs(off), weight * o.explains(packets, packets*(mean+off)), likely < 1-intervalOf}
			o.used++
		}
	}
}

// quantiles returns the candidates' quantile at intervalOf, divided by Student's, and the one at farConfidence.
func (o *others) quantiles() (scale, far float64) {
	list, total, squares, mean, rare := o.list[:o.used], 0.0, 0.0, 0.0, 0.0
	for _, c := range list {
		if c.rare {
			rare += c.weight
			continue
		}
		total += c.weight
		squares += c.weight * c.weight
		mean += c.weight * sq(c.off)
	}
	if total == 0 || len(o.near(o.row)) < nearCells { // fewer in a row know too little of what others may bring
		return math.Inf(1), math.Inf(1)
	}
	slices.SortFunc(list, func(a, b candidate) int { return cmp.Compare(a.off, b.off) })
	within := func(left float64, rare bool) (off float64) {
		for _, c := range list {
			if rare || !c.rare {
				if off, left = c.off, left-c.weight; left <= 0 {
					break
				}
			}
		}
		return off
	}
	// Where the candidates are worth m, one more is beyond them all with probability 1/(m + 1).
	worth := total * total / squares
	far = within(farConfidence*(total+rare), true)
	if off := within(min(1, intervalOf*(worth+1)/worth)*total, false); off > 0 {
		return off / studentAt, far
	}
	// Nearly all are right: what the others are off by, and the next one.
	return math.Sqrt((worth*mean/total + sq(o.most)) / (worth + 1)), far
}

// intervalDegrees are those of MeanInterval's Student distribution: its tails are as heavy as those of sizes.
const intervalDegrees = 4

const (
	intervalOf    = 0.95 // of the candidates, within studentAt times MeanError
	farConfidence = 0.999
)

var (
	studentAt  = estimate.StudentQuantile((1+intervalOf)/2, intervalDegrees)
	studentFar = estimate.StudentQuantile((1+farConfidence)/2, intervalDegrees)
)

// MeanInterval returns the interval of the flow's mean at the given confidence, between 0 and 1: Student's, from MeanError, and
// Late above it. Beyond 95 % it is wider if few neighbours tell what others may be like. That of an [Accumulator] also allows for
// packets that cross the ends of the report. It is unbounded if MeanError is infinite.
func (r *Result) MeanInterval(confidence float64) estimate.Interval {
	if r.N == 0 || math.IsInf(r.MeanError, 1) {
		return estimate.Interval{Low: math.Inf(-1), High: math.Inf(1), Confidence: confidence}
	}
	i := estimate.StudentInterval(estimate.Delay{Mean: r.Mean, StdDev: r.MeanError, N: 1}, intervalDegrees, confidence)
	if usual := studentAt * r.MeanError; confidence > intervalOf && r.far > usual {
		// A power of what is outside, as of sizes.
		power := math.Log((1-intervalOf)/(1-confidence)) / math.Log((1-intervalOf)/(1-farConfidence))
		half := usual * math.Pow(r.far/usual, power)
		i.Low, i.High = min(i.Low, r.Mean-half), max(i.High, r.Mean+half)
	}
	i.Low -= r.less
	i.High += r.Late + r.more
	return i
}
