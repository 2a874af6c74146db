package joint

import (
	"math"
	"slices"

	"github.com/hoplag/hoplag/estimate"
)

// newGuessedSystem returns the equations whose deviations are in proportion to
// a guess, and their right-hand side.
func newGuessedSystem(p *weighted, prior Prior, expected []float64, g *guesses) (*system, []float64) {
	s := emptySystem(p, prior)
	own := s.believe(g)
	y, reference := s.explained(g, expected)
	s.addNoise(g, own, reference)
	s.observe(expected, y)
	s.invertDiagonal()
	s.observed = y
	return s, s.gathered(y)
}

// believe fills in every flow's mean and variance before the cells are read.
// It returns the variance of a packet about its flow's guess.
func (s *system) believe(g *guesses) (own []float64) {
	typical, logarithm := s.typical(g)
	var packets, squares float64
	for f, w := range s.Packets {
		packets += w
		squares += w * g.above[f] * g.above[f]
	}
	within := max(packetVariance, s.prior.Within*s.prior.Within*packets/squares)
	own = make([]float64, len(s.Packets))
	for f, w := range s.Packets {
		k, x := s.class[f], g.above[f]
		square := x*x + math.Exp(2*typical[k])
		own[f] = within * square
		if w > 0 && g.told[f] > 0 {
			s.before[f] = g.base + x*(1+typical[k]-math.Log(x))
			s.rho[f] = (logarithm[k]+uneven)*square + own[f]/max(w, 1)
		}
	}
	return own
}

// explained returns, for each cell, the sum that the earlier means explain,
// and the mean of the guesses of its packets: 0 if their number is unknown.
func (s *system) explained(g *guesses, expected []float64) (sum, reference []float64) {
	sum, reference = make([]float64, len(s.Sum)), s.cell
	clear(reference)
	for f, w := range s.Packets {
		for i, c := range s.run(f) {
			a := w * s.of(f*s.width+i)
			reference[c] += a * (g.base + g.above[f])
			sum[c] += a * s.before[f]
		}
	}
	for c, n := range expected {
		switch {
		case s.Count == nil:
			reference[c] = 0
		case n > 0:
			reference[c] /= n
		}
	}
	return sum, reference
}

// addNoise adds what the flows contribute to D to trust, and subtracts what is
// saved in a row from their variances.
func (s *system) addNoise(g *guesses, own, reference []float64) {
	spread, noise := s.spread(), s.trust
	for f, w := range s.Packets {
		if w == 0 {
			continue
		}
		total := 0.0
		for i, c := range s.run(f) {
			at := f*s.width + i
			share := s.of(at)
			a := w * share
			apart := g.base + g.above[f] - reference[c]
			v := own[f] + apart*apart
			total += v
			noise[c] += a * v * (1 - (1-spread)*share + s.slack)
			if s.Doubt != nil {
				// Packets that are counted for the wrong flow. A flow's mean is known
				// about as well as its packets are.
				doubt := s.Doubt[f] * share
				off := min(s.Doubt[f]/w, 1)
				noise[c] += doubt * doubt * (off*off*own[f] + apart*apart)
			}
			if s.Parts != nil && s.Parts[at] > 0 {
				// What is left out is mostly one piece.
				noise[c] += a * a * (1/float64(s.Parts[at]) - 1) * apart * apart
			}
		}
		if g.told[f] > 0 {
			saving := total / float64(s.Rows*s.CellsPerRow) / max(w, 1)
			s.variance[f] = max(leastPart*s.rho[f], s.rho[f]-spread*saving/float64(s.Rows))
		}
	}
}

// observe replaces D in trust by D⁻¹, and the explained sums in y by D⁻¹y.
func (s *system) observe(expected, y []float64) {
	packet := s.perPacket(s.prior)
	for c, n := range expected {
		if n == 0 || !s.usable(c) || s.Count != nil && s.Count[c] == 0 {
			s.trust[c], y[c] = 0, 0
			continue
		}
		s.informed = true
		v := s.trust[c] + n*clockNoise
		sum := s.Sum[c]
		if s.Count != nil {
			// Assume as many packets as expected.
			k := s.Count[c]
			sum *= n / k
			switch {
			case s.Parts != nil:
				// Its flows had more or fewer of their packets there than
				// Parts say.
				v += misjudged * packet * (k - n) * (k - n)
			case s.slack == slackExact:
				v += packet * (k - n) * (k - n) // as all counts should be right
			default:
				v += packet * max(0, k-n-enoughPackets*math.Sqrt(k)) // of flows that are not listed
			}
			v *= n / k
		}
		s.trust[c] = 1 / v
		y[c] = (sum - y[c]) / v
		s.square += v * y[c] * y[c]
	}
}

// finishGuessed turns the regression's effects h into means and its variances
// v into deviations, in place.
func (s *system) finishGuessed(g *guesses, mean, deviation []float64) {
	typical, _ := s.typical(g)
	expected := s.expected()
	var squares [sizeCount]estimate.Moments
	for f := range s.Packets {
		squares[s.class[f]].Add(g.above[f] * g.above[f])
	}
	for f, w := range s.Packets {
		rho, v, x := s.rho[f], s.variance[f], g.above[f]
		if v == 0 {
			mean[f], deviation[f] = s.prior.Mean, math.Sqrt(s.prior.ofMean(w))
			continue
		}
		scale := rho / v
		solved := s.before[f] + scale*mean[f]
		square := rho - scale*scale*(v-deviation[f])
		factor := 1.0
		if s.factor != nil {
			factor = s.factor[f]
		}
		// Flows that are not listed are in all its cells alike, and as far off
		// as flows are apart.
		others := s.unlisted(f, expected) * s.prior.Between
		doubt := 0.0
		if s.Doubt != nil {
			doubt = s.Doubt[f] / w
		}
		determined := s.determined(f, deviation[f])
		if determined && s.slack == slackExact {
			mean[f], deviation[f] = solved, math.Sqrt(factor*max(square, s.slack*surest*rho))
			continue
		}
		step := (solved-g.base)/x - 1
		if !determined {
			if step < 0 {
				step = math.Expm1(max(step, -mostFall))
			}
			step = min(step, 1)
		}
		x *= 1 + step
		mean[f] = g.base + x
		square = max(surest*rho, square)
		// A flow about which cells say little may be any flow, of its size or
		// of all.
		unknown := square / rho * max(s.prior.Between, math.Sqrt(squares[s.class[f]].Mean()))
		least := leastTypical * math.Exp(typical[s.class[f]]) / math.Sqrt(max(w, 1))
		deviation[f] = math.Sqrt(factor*(square+unknown*unknown+least*least) + doubt*doubt*x*x + others*others)
	}
}

// unlisted returns the fraction of the packets in flow f's cells, beyond
// chance, that belong to no listed flow. If Parts leave packets out, that is
// unknown.
func (s *system) unlisted(f int, expected []float64) float64 {
	if s.Count == nil || s.Parts != nil {
		return 0
	}
	var held, listed float64
	for _, c := range s.run(f) {
		if s.usable(int(c)) {
			held += s.Count[c]
			listed += expected[c]
		}
	}
	return max(0, held-listed-enoughPackets*math.Sqrt(held)) / max(held, 1)
}

// determined reports whether the cells leave flow f so little of its earlier
// variance that the guess no longer matters.
func (s *system) determined(f int, left float64) bool { return left < determinedLeft*s.variance[f] }

// check widens the deviations of flows of similar size according to the
// guesses from two halves of the cells.
func (p *weighted) check(even, odd *guesses, deviation []float64) {
	var apart [sizeCount][]float64
	for f, w := range p.Packets {
		if w > 0 && even.told[f] > 0 && odd.told[f] > 0 {
			distance := math.Abs(even.base + even.above[f] - odd.base - odd.above[f])
			apart[p.class[f]] = append(apart[p.class[f]], distance/math.Sqrt2/deviation[f])
		}
	}
	nominal := estimate.StudentQuantile((1+checkedConfidence)/2, degrees)
	factor := 1.0 // classes of few flows use that of smaller ones
	var factors [sizeCount]float64
	for k, list := range apart {
		if len(list) >= fewestFlows {
			slices.Sort(list)
			factor = max(1, list[int(checkedConfidence*float64(len(list)))]/nominal)
		}
		factors[k] = factor
	}
	for f := range p.Packets {
		if even.told[f] > 0 || odd.told[f] > 0 {
			deviation[f] *= factors[p.class[f]]
		}
	}
}
