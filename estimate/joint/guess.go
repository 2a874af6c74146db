package joint

import (
	"math"
	"slices"

	"github.com/hoplag/hoplag/estimate"
)

// Delays are uneven: in a queue most flows wait a microsecond, and a few wait tens of milliseconds. A small error for the second
// kind is a thousand times the delay of the first. So one variance for all flows is far from the truth for most, and a variance in
// proportion to a first guess x of each flow's delay above the smallest is what a solve starts from:
//
// Every flow begins with the mean of all. In turn, every cell tells its flows the ratio of its delays to what they guess, and every
// flow takes the mean of these ratios, weighted by the packets that it should have there, with half a packet of the typical delay
// of flows of its size. Guesses stay above 0, and a flow with one idle cell is soon idle in all. These are the multiplicative steps
// that raise the likelihood of sums whose variance is in proportion to their mean.
//
// The smallest is told by the cells' means, so a clock offset does not matter. Without counts it is 0 unless a sum is negative.
const (
	guessRounds    = 12    // more gain little
	typifyEach     = 4     // rounds
	typicalPackets = 0.5   // packets of typical delay that every flow has besides its own
	sizeCount      = 64    // classes of flow sizes, by powers of two
	floorCells     = 32    // one in so many cells undercuts the one that is compared with the fastest: a choice
	surely         = 1.645 // deviations: a variance is with 95 % at most so far above what cells show
)

// least returns the delay that all guesses exceed, and the smallest guess above it. A cell mixes its flows, so some may be
// faster than any cell. Say that delays are exponential above the floor, which is what guesses are taken for. Then the mean
// of a cell above the floor is that of all times a Gamma variable, whose shape is how many equal flows would scatter as much.
// So two cells in the order of their means tell the floor: the fastest, and the one that one in floorCells undercuts.
func (p *weighted) least(mean float64, expected []float64) (base, unit float64) {
	means, shapes, squares, surest := []float64{mean}, []float64(nil), make([]float64, len(expected)), math.Inf(1)
	for f, w := range p.Packets {
		for i, c := range p.run(f) {
			n := w * p.of(f*p.width+i)
			squares[c] += n*n + n
		}
	}
	for c, n := range expected {
		if n > 0 {
			shapes = append(shapes, n*n/squares[c])
		}
		if p.Count != nil && n > 0 {
			n = p.Count[c]
		}
		if n > 0 && p.usable(c) {
			off := math.Sqrt(p.Variance[c]) / n
			means, surest = append(means, p.Sum[c]/n+off), min(surest, off)
		}
	}
	slices.Sort(means)
	slices.Sort(shapes)
	rank := min(1+len(means)/floorCells, len(means)-1)
	part := func(rank int) float64 { // of the mean above the floor, by the median of this rank (Benard; Wilson and Hilferty)
		ninth := 1 / (9 * shapes[len(shapes)/2])
		z := estimate.NormalQuantile((float64(rank) + 0.7) / (float64(len(means)) + 0.4))
		return math.Pow(max(0, 1-ninth+z*math.Sqrt(ninth)), 3)
	}
	if base = means[0]; p.Count == nil {
		base = min(0, base)
	} else if first, other := part(0), part(rank); first < other {
		base -= (means[rank] - base) * first / (other - first)
	}
	base = min(base, mean) - surest // no cell tells it better
	unit = max(1e-6*(mean-base), 1e-3)
	return base - unit, unit
}

// guess fills in base, the guesses above it and, as a variance above 0, which flows have a usable cell.
func (s *solver) guess() {
	unit := 0.0
	s.base, unit = s.least(s.mean, s.expected)
	// held is a cell's packets for each expected one; sum is the sum of their delays above base.
	cells := func() []float64 { return make([]float64, len(s.Sum)) }
	held, sum, noise, factor := cells(), cells(), cells(), s.cell
	for c, n := range s.expected {
		if n > 0 && s.usable(c) {
			held[c] = 1
			if s.Count != nil {
				held[c] = s.Count[c] / n
			}
			sum[c] = max(0, s.Sum[c]-s.base*held[c]*n)
			if v := s.Variance[c]; v > 0 { // a cell that knows less than what is usual says next to nothing
				usual := held[c] * n * (s.mean - s.base)
				trust := usual * usual / (usual*usual + v)
				held[c], sum[c], noise[c] = held[c]*trust, sum[c]*trust, v*trust*trust
			}
		}
	}
	s.bySize(sum, held, unit)
	s.differ(sum, held, noise)
	told := s.variance // by flow: the fraction of its packets in usable cells
	for f, w := range s.Packets {
		s.above[f] = s.means[s.class[f]]
		if w > 0 {
			told[f] = s.gather(f, held)
		}
	}
	for round := range guessRounds {
		clear(factor)
		s.scatter(factor, s.above)
		for c, x := range factor {
			if x > 0 {
				factor[c] = sum[c] / x
			}
		}
		if round%typifyEach == 0 {
			s.typify()
		}
		for f, w := range s.Packets {
			if told[f] > 0 {
				total := w*s.above[f]*s.gather(f, factor) + typicalPackets*s.typical[s.class[f]]
				s.above[f] = max(unit, total/(w*told[f]+typicalPackets))
			}
		}
	}
	s.typify()
}

// bySize finds the mean delay above base of the flows of each class of sizes: the least squares that explain the sums by how many
// packets of each class are in a cell, which is uncertain by the squares of its flows' packets. No class is taken to be faster than
// its standard error. Where cells show little of a class, it is taken to be like all, by the prior's part in its mean.
func (s *solver) bySize(sum, held []float64, unit float64) {
	var index [sizeCount]int
	used := 0
	for _, k := range s.class {
		if index[k] == 0 {
			used++
			index[k] = used
		}
	}
	rows, noise := make([]float32, used*len(sum)), make([]float64, len(sum))
	for f, w := range s.Packets {
		for i, c := range s.run(f) {
			n := w * s.of(f*s.width+i) * held[c]
			rows[int(c)*used+index[s.class[f]]-1] += float32(n)
			noise[c] += n*n + n
		}
	}
	// Squares of what is left of the sums, and of the prior, by which any class may have the mean of all.
	mean := max(s.mean-s.base, unit)
	m, told, squares, cells, all := make([][]float64, used), make([]float64, used), float64(used)*mean*mean, 0.0, mean
	for i := range m {
		m[i], told[i] = make([]float64, used), mean
		m[i][i] = 1
	}
	for c, y := range sum {
		if noise[c] > 0 {
			row := rows[c*used:][:used]
			for i, x := range row {
				w := float64(x) / noise[c]
				for j, z := range row {
					m[i][j] += w * float64(z)
				}
				told[i] += w * y
			}
			squares += y * y / noise[c]
			all += y
			cells++
		}
	}
	inverse := invert(m)
	var x [sizeCount]float64
	for i := range m {
		for j, y := range told {
			x[i] += inverse[i][j] * y
		}
		squares -= x[i] * told[i]
	}
	for k, i := range index {
		if s.means[k] = mean; i > 0 {
			x, prior := x[i-1], inverse[i-1][i-1]
			deviation := math.Sqrt(max(0, squares) / cells * prior)
			s.doubt[k] = math.Hypot(deviation, (x-mean)*prior/max(1-prior, 1e-9))
			if x = max(unit, x, deviation); x <= all { // a number
				s.means[k] = x
			}
		}
	}
}

// differ sets how much the flows of a class of sizes differ, and the packets of a flow: in proportion to the
// square of the class's mean, by factors that fit the squares of what these means leave of some cells' sums.
func (s *solver) differ(sum, held, noise []float64) {
	const parts = sizeScales + 2
	each := uint32(max(1, len(sum)/fitCells))
	squares := make([]float64, (len(sum)-1)/int(each)+1)
	of := make([]float64, parts*len(squares))
	for k := range squares {
		c := k * int(each)
		squares[k], of[k*parts+parts-1] = sum[c], noise[c]
	}
	for f, w := range s.Packets {
		mean := s.means[s.class[f]]
		for i, c := range s.run(f) {
			k := c / each
			if k*each != c {
				continue
			}
			n, part := w*s.of(f*s.width+i)*held[c], of[int(k)*parts:][:parts]
			squares[k] -= n * mean
			part[s.sizeScale(f)] += n * n * mean * mean
			part[sizeScales] += n * mean * mean
		}
	}
	for k, x := range squares {
		squares[k] = x * x
	}
	s.differs, s.unsure = fit(of, squares, parts)
}

// usual returns the expected square of how far flow f is from its guess, if only its number of packets is known. What fits
// the cells is raised to its upper end of 95 %: few cells may show nothing of what there is.
func (s *solver) usual(f int) float64 {
	k, size, part := s.class[f], s.sizeScale(f), 1/max(1, s.Packets[f])
	off, doubt := s.means[k]-s.above[f], s.doubt[k]
	unsure := s.unsure[size][size] + part*(2*s.unsure[size][sizeScales]+part*s.unsure[sizeScales][sizeScales])
	by := s.differs[size] + part*s.differs[sizeScales] + surely*math.Sqrt(max(0, unsure))
	if usual := by*s.means[k]*s.means[k] + (1+by)*doubt*doubt + off*off; usual > 0 {
		return usual
	}
	return math.Inf(1) // squares out of range
}

// invert returns the inverse of a positive definite matrix, which it spends (Gauss and Jordan).
func invert(m [][]float64) (inverse [][]float64) {
	for i := range m {
		inverse = append(inverse, make([]float64, len(m)))
		inverse[i][i] = 1
	}
	for i := range m {
		by := 1 / m[i][i]
		for k := range m {
			m[i][k] *= by
			inverse[i][k] *= by
		}
		for j := range m {
			if by := m[j][i]; j != i {
				for k := range m {
					m[j][k] -= by * m[i][k]
					inverse[j][k] -= by * inverse[i][k]
				}
			}
		}
	}
	return inverse
}

// typify sets the typical guess of each class of sizes, a geometric mean: of its flows, and of one that is like all.
func (s *solver) typify() {
	var n, sum [sizeCount]float64
	var all, total float64
	for f, k := range s.class {
		if s.variance[f] > 0 {
			n[k]++
			sum[k] += math.Log(s.above[f])
		}
	}
	for k := range n {
		all += n[k]
		total += sum[k]
	}
	usual := total / max(all, 1)
	for k := range n {
		s.typical[k] = math.Exp((sum[k] + usual) / (n[k] + 1))
	}
}
