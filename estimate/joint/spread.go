package joint

import (
	"context"
	"math"
	"slices"
)

// What the cells leave of the flows' variances is the diagonal of the inverse of S⁻¹ + AᵀD⁻¹A. Messages find it: the noise that
// flow f sees in a cell is D, plus a²v for every other flow there, with their v as the rest of their cells leaves it. That is a
// fixed point, belief propagation for a normal model, and right to a per cent if few flows meet twice.
const (
	settled     = 0.1  // powers of two by which the last sweep of messages lowers variances, on average
	nearly      = 0.5  // enough to see which flows are known well
	mostSweeps  = 100  // a few are usual
	sizeScales  = 3    // classes of flows by size, in powers of 16
	rounds      = 50   // of fit, to tell the parts of flows and of packets apart
	fitCells    = 8192 // that fit gets at least, if there are as many: by these, a variance is known to a few per cent
	knownScales = 8    // classes of flows by what cells leave unknown, in powers of 10
	distant     = 25   // times their variance that squares count at most
	mostNoise   = 1e30 // that an entry brings, as a part of D: more drowns a cell no deeper
)

// A hearing is what a sweep needs of a cell: D⁻¹, the noise that its flows bring to it, as a part of D, and that of the next sweep.
type hearing struct {
	trust       float64
	noise, next float32
}

// posterior returns the variance that the cells leave every flow, once sweeps lower it by so many powers of two or
// fewer: where there are nearly as many flows as cells, one flow after the other becomes known. It also returns the
// noise that each entry of Cells brings to its cell, and what each cell hears in all.
func (s *solver) posterior(ctx context.Context, enough float64) (v []float64, brought []float32, heard []hearing) {
	v, brought, heard = append([]float64(nil), s.variance...), make([]float32, len(s.Cells)), make([]hearing, len(s.trust))
	for c, trust := range s.trust {
		heard[c].trust = trust
	}
	for round, moved := 0, 0; ctx.Err() == nil && (round < 2 || round <= mostSweeps && float64(moved) > enough*float64(len(v))); round++ {
		moved = 0
		for f, was := range v {
			if was > 0 {
				s.sweep(f, round > 0, v, brought[f*s.width:][:s.width], heard)
				moved += math.Ilogb(was) - math.Ilogb(v[f])
			}
		}
		for c := range heard {
			h := &heard[c]
			h.noise, h.next = h.next, 0
		}
	}
	return v, brought, heard
}

// sweep lets a flow hear its cells, if they have something to say, and then speak to them.
func (s *solver) sweep(f int, hears bool, v []float64, brought []float32, heard []hearing) {
	run, w := s.run(f), s.Packets[f]
	if hears {
		precision := 1/s.variance[f] + s.sampled[f]
		for i, c := range run {
			a, h, others := w*s.of(f*s.width+i), &heard[c], float32(0)
			if h.noise > brought[i] {
				others = h.noise - brought[i]
			}
			brought[i] = 1 / (1 + others) // of the most that the cell could say, until the flow speaks
			precision += float64(brought[i]) * a * a * h.trust
		}
		v[f] = 1 / precision
	}
	for i, c := range run {
		a, h := w*s.of(f*s.width+i), &heard[c]
		most := a * a * h.trust
		left := v[f] / max(1-v[f]*float64(brought[i])*most, 1e-9) // without what the cell told
		brought[i] = float32(min(most*left, mostNoise))
		h.next += brought[i]
	}
}

// fit returns by which factors the variances of n sorts are wrong, of which each cell has parts. The square that a
// cell shows is shared out among the sorts by these, and every sort's factor becomes the mean of what its cells say
// (expectation maximisation for components of variance). Their covariance is the inverse of Fisher's information.
func fit(parts, square []float64, n int) (k []float64, covariance [][]float64) {
	k = slices.Repeat([]float64{1}, n)
	told := make([][]float64, n)
	for round := range rounds {
		squares, weight := make([]float64, n), make([]float64, n)
		for i := range told { // one square as it should be, for classes that have none
			told[i] = make([]float64, n)
			told[i][i] = 0.5
		}
		for c, x := range square {
			now, of := 0.0, parts[c*n:][:n]
			for i, part := range of {
				now += k[i] * part
			}
			if ratio, by := min(x/now, distant), 1/now; now > 1e-300 {
				for i, part := range of {
					squares[i] += part * by * ratio
					weight[i] += part * by
					for j := 0; j < n && round == rounds-1; j++ {
						told[i][j] += part * by * of[j] * by / 2
					}
				}
			}
		}
		for i, x := range k {
			k[i] *= (1 + x*squares[i]) / (1 + x*weight[i])
		}
	}
	return k, invert(told)
}

// scales returns by which factors variances are wrong, for flows of which cells leave similar parts unknown. What a cell tells a flow is
// off its mean by (y − A h)·V/D, where V = D + Σ a²v of the other flows is the variance that it should have. The squares of a flow, in
// units of V, should add up to its cells' number less one, plus what is unknown. So should y − a h, what cells have beyond the flow,
// times D⁻¹(y − A h). Squares are far too large if iterations have not ended where V is many times D, and products are too small
// where guesses explain y. So squares say that variances are too small only if products do, unless the equations are solved to the end.
func (s *solver) scales(v, mean, bent []float64, brought []float32, heard []hearing) (k [knownScales]float64) {
	var degrees, products [knownScales]float64
	for f, left := range v {
		if left == 0 {
			continue
		}
		i := knownScale(left / s.variance[f])
		degrees[i] += left/s.variance[f] + left*s.sampled[f] - 1
		h := s.Packets[f] * (mean[f] - bent[f] - s.base - s.above[f])
		for e, c := range s.run(f) {
			if told := s.rest[c] * s.trust[c]; s.trust[c] > 0 {
				k[i] += s.rest[c] * told * (1 + max(0, float64(heard[c].noise-brought[f*s.width+e])))
				products[i] += (s.rest[c] + s.cell[c] - h*s.of(f*s.width+e)) * told
				degrees[i]++
			}
		}
	}
	for i, before := 0, 1.0; i < knownScales; i, before = i+1, k[i] { // and one square as in the class before
		k[i] = (k[i] + before) / (degrees[i] + 1)
		if s.slack == slack {
			k[i] = min(k[i], max(1, (products[i]+1)/(degrees[i]+1)))
		}
	}
	return k
}

// knownScale returns the class of flows of whose variance cells leave this part.
func knownScale(unknown float64) int { return min(int(-math.Log10(unknown)), knownScales-1) }

// sizeScale returns the class of flow f's size.
func (s *solver) sizeScale(f int) int { return min(int(s.class[f])/4, sizeScales-1) }

// deviations returns the expected errors of the means, and their degrees of freedom.
func (s *solver) deviations(v []float64, brought []float32, heard []hearing, mean, bent []float64) ([]float64, []uint8) {
	degrees := make([]uint8, len(v))
	k := s.scales(v, mean, bent, brought, heard)
	// A flow about which cells say little may be any flow of its size. Otherwise they say how far it is from its guess.
	scale := func(f int) (own, unknown, guess float64) {
		unknown = v[f] / s.variance[f]
		told := max(1-unknown, 1e-9)
		off := (mean[f] - bent[f] - s.base - s.above[f]) / told
		guess = min(s.usual(f), off*off+v[f]/told) / s.variance[f]
		return max(k[knownScale(unknown)], unknown*guess), unknown, guess
	}
	others, parts := make([]company, len(heard)), make([]float32, len(heard))
	low := func(f int, unknown float64) float64 { // the part left open: less where hardly any flow leaves any
		if s.slack < slack {
			unknown *= unknown
		}
		return s.Packets[f] * unknown * (s.base + s.means[s.class[f]] - mean[f])
	}
	for f, left := range v {
		if left > 0 {
			own, unknown, _ := scale(f)
			short := low(f, unknown)
			for i, c := range s.run(f) {
				by := own * float64(brought[f*s.width+i])
				others[c].variance += by
				others[c].short += short * s.of(f*s.width+i)
				parts[c] += float32(by * by)
			}
		}
	}
	beyond := s.beyond()
	for f, left := range v {
		if left == 0 {
			v[f] = math.Sqrt(s.square(f))
			continue
		}
		own, unknown, guess := scale(f)
		by := bent[f] * (1 - unknown)
		d, squares, off := s.scaled(f, left, own, guess, k[knownScale(unknown)], low(f, unknown), brought, heard, others, parts)
		if more := own * left / d; more > 1 {
			d, squares = own*left, more*more*squares
		}
		off = min(off, mean[f]-s.base) // the true mean is not below base
		for _, x := range [...]float64{by * by, off * off, s.miscounted(f, mean[f]), s.mixed(f, beyond)} {
			d, squares = d+x, squares+x*x
		}
		v[f], degrees[f] = math.Sqrt(d), degreesOf(d, squares)
	}
	return v, degrees
}

// A company is what flows bring to a cell: the variance of their errors, as a part of D, and how far all are below the mean of their
// sizes, where cells leave that open. Guesses tend to what is typical, which is less, and a large flow gets what small ones do not.
type company struct{ variance, short float64 }

// scaled returns the variance of flow f's mean in the estimate as weighed, if the variances of f, of D, of others in its cells and of its
// guess are off by factors, and the squares of its parts. It also tells how far the mean is off if others have those of their sizes.
func (s *solver) scaled(
	f int, left, own, guess, rest, low float64, brought []float32, heard []hearing, others []company, parts []float32,
) (v, squares, off float64) {
	w, common, row := s.Packets[f], 0.0, 0.0
	first, sample := left*left*max(own, guess)/s.variance[f], left*left*s.sampled[f]*rest
	v, squares = first+sample, first*first+sample*sample
	for i, c := range s.run(f) {
		part, by, x := s.of(f*s.width+i), float64(brought[f*s.width+i]), &others[c]
		most := 1 / (1 + max(0, float64(heard[c].noise)-by))
		said := left * w * part * heard[c].trust * most
		unit := said * most * left * w * part
		by *= own
		v += unit * (rest + max(0, x.variance-by))
		squares += unit * unit * (rest*rest + max(0, float64(parts[c])-by*by))
		row += said * said * s.Variance[c]
		if (i+1)%s.CellsPerRow == 0 { // rows lost the same packets, but those of a row lost others
			common, row = common+math.Sqrt(row), 0
		}
		off += said * (x.short - low*part)
	}
	common *= common
	return v + common, squares + common*common, off
}

// miscounted returns the variance of the mean of flow f from the doubt of its packets: those in its cells that
// are not its own have the mean of the others there, and took time.
func (s *solver) miscounted(f int, mean float64) float64 {
	if s.Doubt == nil {
		return 0
	}
	w, doubt, squares, cells := s.Packets[f], s.Doubt[f], 0.0, 0.0
	for i, c := range s.run(f) {
		if part := s.of(f*s.width + i); s.trust[c] > 0 && s.Count != nil {
			others := (s.Sum[c] - s.Count[c]*mean) / max(s.Count[c]-w*part, doubt*part, 1)
			squares += others * others
			cells++
		}
	}
	own := mean - s.base
	return doubt / w * doubt / w * (own*own + squares/max(cells, 1))
}

// beyond returns by how much squares of what is left of cells' sums exceed D, as where rare packets are far off. What is within a
// standard error of all together may be chance, and is taken off: of m equal squares 1 - 1/√m counts, and nothing of a single one.
func (s *solver) beyond() []float64 {
	beyond, all, above, squares := make([]float64, len(s.trust)), 0.0, math.SmallestNonzeroFloat64, 0.0
	for c, trust := range s.trust {
		if trust > 0 {
			x := s.rest[c]*s.rest[c] - 1/trust
			beyond[c] = max(x, 0)
			all, above, squares = all+x, above+beyond[c], squares+x*x
		}
	}
	for c := range beyond {
		beyond[c] *= max(all-math.Sqrt(squares), 0) / above
	}
	return beyond
}

// mixed returns the variance of flow f's mean if packets that are far off may be given to the wrong flow of their cell, even to
// one that is fast in its other cells. A flow with the part p of a cell's packets had them with the probability p, and is given
// them with the same, so it has only one of the two with 2·p·(1 - p). All packets in cells that tell anything count alike.
func (s *solver) mixed(f int, beyond []float64) (v float64) {
	packets := 0.0
	for i, c := range s.run(f) {
		if s.trust[c] > 0 {
			a := s.Packets[f] * s.of(f*s.width+i)
			p := a / s.expected[c]
			packets, v = packets+a, v+2*p*(1-p)*beyond[c]
		}
	}
	return v / (packets * packets)
}
