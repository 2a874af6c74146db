package joint

import (
	"context"
	"math"
)

// Queues make delays uneven: most flows wait a microsecond, and a few wait
// tens of milliseconds. A small error for the second kind is a thousand times
// the delay of the first. So one deviation for all flows, and one for all
// packets, is far from the truth for most. Without a given prior, the
// deviations are therefore in proportion to a first guess of each flow's delay
// x above the smallest:
//
//	Guess   every flow begins with the overall mean. In turn, every cell sends
//	        its flows the ratio of its mean delay to what they guess, and every
//	        flow takes the mean of these ratios, weighted by the packets it
//	        should have there, with half a packet of the typical delay of flows
//	        of its size. Guesses stay above 0, and a flow with one idle cell is
//	        soon idle in all.
//	Solve   log x varies as much as the guesses of flows of its size do, and
//	        x varies by x times that; a packet varies by x about x. With
//	        counts, a cell's packets are split as its count says, about the
//	        mean of the cell's own flows instead of the overall mean.
//	Scale   a flow whose cells say little may be as far off as flows are
//	        apart, and its deviation says so. Then the deviations of all are
//	        scaled to how far cells are from what the others say of their
//	        flows: see calibrate.go.
//	Check   if flows are spread, the guesses from even and from odd cells
//	        alone are two of equal worth. If they are farther apart than
//	        deviations allow, the deviations of all flows of similar size grow
//	        by one factor: the one at which intervals for 95 %, times √2 for
//	        the difference of two, contain 95 % of the distances.
//
// The guesses are the multiplicative ones that maximise the likelihood of sums
// whose variance is proportional to their mean, stopped early. The delay above
// the smallest is relative to the smallest mean delay of a cell, so a clock
// offset does not matter. Without counts there is no such delay, and it is
// relative to 0 unless a sum is negative.
const (
	guessRounds    = 20  // of guessing; more fit noise
	typicalPackets = 0.5 // packets of typical delay that every flow has besides its own
	// The variance of the logarithms of delays beyond that of the guesses,
	// which are too even if cells say little.
	uneven = 1.0
	// The smallest relative variance of a packet's delay: that of exponential
	// ones.
	packetVariance = 1.0
	// In one round a flow's guess falls at most by e to this power, and at
	// most doubles. Farther off, proportion to the guess means nothing.
	mostFall = 1.5
	// No variance is believed below this fraction of the one before the cells
	// were read. No deviation of one packet is believed below this fraction of
	// the typical delay of flows of its size. The factor of calibration comes
	// on top.
	surest            = 1e-4
	leastTypical      = 0.01
	sizeCount         = 64 // classes of flow sizes, by powers of two
	sizeShrink        = 20 // flows of all sizes that every class has besides its own
	fewestFlows       = 20 // flows that the check of a class needs
	checkedConfidence = 0.95
	// If the cells leave a flow less than this fraction of the variance, it is
	// what the equations say.
	determinedLeft = 0.05
	clockNoise     = 0.01 // ns² for each packet
	misjudged      = 0.1  // fraction of packets by which Parts misjudge, if delays are apart
	enoughPackets  = 3    // root counts by which a cell may exceed its expected packets
)

// A guesses holds a delay above base for each flow.
type guesses struct {
	base, unit float64
	above      []float64 // ns, not below unit
	told       []float64 // per flow: fraction of its packets in its cells, 0: none
}

// least returns the delay that guesses are above, and the smallest guess.
func (p *weighted) least(mean float64, expected []float64) (base, unit float64) {
	if p.Count != nil {
		base = math.Inf(1)
	}
	for c, n := range expected {
		if n > 0 && p.usable(c) {
			if p.Count != nil {
				n = p.Count[c]
			}
			if n > 0 {
				base = min(base, p.Sum[c]/n)
			}
		}
	}
	base = min(base, mean)
	unit = max(1e-6*(mean-base), 1e-3)
	return base - unit, unit
}

// guess runs the rounds on the cells whose number has the given parity, or on
// all cells if parity is below 0.
func (p *weighted) guess(ctx context.Context, mean float64, expected []float64, parity int, work *progress) (*guesses, error) {
	defer work.next()
	g := &guesses{above: make([]float64, len(p.Packets)), told: make([]float64, len(p.Packets))}
	g.base, g.unit = p.least(mean, expected)
	// held is a cell's packets for each expected one; sum is the sum of their
	// delays above base.
	held, sum := make([]float64, len(p.Sum)), make([]float64, len(p.Sum))
	for c, n := range expected {
		if n > 0 && p.usable(c) && (parity < 0 || c&1 == parity) {
			held[c] = 1
			if p.Count != nil {
				held[c] = p.Count[c] / n
			}
			sum[c] = max(0, p.Sum[c]-g.base*held[c]*n)
		}
	}
	for f := range g.above {
		g.above[f] = max(mean-g.base, g.unit)
		g.told[f] = p.gather(f, held)
	}
	factor := make([]float64, len(p.Sum))
	for round := range guessRounds {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		p.agree(g, factor, sum)
		work.part(float64(round+1) / guessRounds)
	}
	return g, nil
}

// agree does one round of guessing. factor is scratch.
func (p *weighted) agree(g *guesses, factor, sum []float64) {
	clear(factor)
	p.scatter(factor, g.above)
	for c, x := range factor {
		if x > 0 {
			factor[c] = sum[c] / x // relative to held, as the guess of the sum is x × held
		}
	}
	typical, _ := p.typical(g)
	for k, x := range typical {
		typical[k] = typicalPackets * math.Exp(x)
	}
	for f, w := range p.Packets {
		if g.told[f] == 0 || w == 0 {
			continue
		}
		total := w*g.above[f]*p.gather(f, factor) + typical[p.class[f]]
		g.above[f] = max(g.unit, total/(w*g.told[f]+typicalPackets))
	}
}

// logarithms sums up the logarithms of guesses and their squares.
type logarithms struct{ n, sum, squares float64 }

func (l *logarithms) mean() float64 { return l.sum / max(l.n, 1) }

func (l *logarithms) variance() float64 {
	return max(0, l.squares-l.sum*l.mean()) / max(l.n-1, 1)
}

// typical returns, for each class of sizes, the mean and the variance of the
// logarithms of the guesses.
func (p *weighted) typical(g *guesses) (mean, variance [sizeCount]float64) {
	var classes [sizeCount]logarithms
	for f, k := range p.class {
		if p.Packets[f] > 0 && g.told[f] > 0 {
			x, class := math.Log(g.above[f]), &classes[k]
			class.n++
			class.sum += x
			class.squares += x * x
		}
	}
	var all logarithms
	for _, class := range classes {
		all.n += class.n
		all.sum += class.sum
		all.squares += class.squares
	}
	for k := range classes {
		class := &classes[k]
		own, apart := class.n/(class.n+sizeShrink), 0.0
		if class.n > 0 {
			apart = class.mean() - all.mean()
		}
		mean[k] = all.mean() + own*apart
		away := mean[k] - all.mean()
		variance[k] = own*class.variance() + (1-own)*(all.variance()+away*away)
	}
	return mean, variance
}
