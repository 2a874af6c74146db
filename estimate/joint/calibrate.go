package joint

import (
	"context"
	"math"
)

// A calibration finds the factors by which the variances left by the
// regression are wrong. They are wrong because every flow's own prior comes
// from a guess. It asks each cell how far it is from what the other cells say
// of its flows. Let V be the variance of that distance: the D of the cell,
// plus a² times the v that the other cells leave, for every flow in it. The
// square of the distance should be V. For the solution h the square is
//
//	(y − A h)² / D² × V²
//
// so there is nothing more to solve. Squares are attributed to the sorts of
// flows in a cell, and to D, in proportion to their parts of V. Every sort's
// factor becomes the mean of what its cells say, in rounds: expectation
// maximisation for components of variance. Flows are sorted by size, and by
// how much of a flow is known.
const (
	calibrationRounds = 8
	knownSorts        = 8
	knownWidth        = 2 // powers of two of the fraction of the variance that is left
	sizeWidth         = 2 // powers of two of packets
	sortCount         = sizeCount / sizeWidth * knownSorts
	// Squares above this many times their variance count as this much: a few
	// flows that are far off must not widen all.
	mostDistant = 25
	// Every sort has this many entries with the overall mean besides its own.
	calibrationShrink = 20
	leastFactor       = 1e-4
	// Factors are this many standard errors too large.
	calibrationErrors = 2
)

type calibration struct {
	*system
	sorts  []uint8                // by flow
	parts  []float32              // by entry of Cells: its part of the cell's V, with factors of 1
	own    []float64              // by cell: the part of D
	square []float64              // by cell: of the distance, relative to V with factors of 1
	now    []float64              // by cell: V with the current factors, relative to V with factors of 1
	factor [sortCount + 1]float64 // by sort, then that of D
	told   [sortCount + 1]told
}

// told is what cells say to a sort: the weighted sum of squares relative to V,
// the sum of weights, and the number of flows.
type told struct{ squares, weight, flows float64 }

func (t *told) add(part, square float64) {
	t.squares += part * min(square, mostDistant)
	t.weight += part
	t.flows += part * part
}

// calibrate returns the factor of every flow's variance. v holds the variances
// before they grow by the factors of probes, and told what the messages left
// of them. It overwrites told.
func (s *system) calibrate(ctx context.Context, effect, v, grown []float64, told []float32, work *progress) ([]float64, error) {
	defer work.next()
	c := &calibration{
		system: s, sorts: make([]uint8, len(v)), parts: told,
		own: make([]float64, len(s.trust)), square: s.cell, now: make([]float64, len(s.trust)),
	}
	for k := range c.factor {
		c.factor[k] = 1
	}
	c.begin(effect, v, grown)
	for round := range calibrationRounds {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		c.round()
		work.part(float64(round+1) / calibrationRounds)
	}
	factors := make([]float64, len(v))
	for f, sort := range c.sorts {
		factors[f] = c.factor[sort] * (1 + calibrationErrors*math.Sqrt(2/(c.told[sort].flows+1)))
	}
	return factors, nil
}

// begin computes the parts and the squares.
func (c *calibration) begin(effect, v, grown []float64) {
	total := c.now
	for at, trust := range c.trust {
		if trust > 0 {
			total[at] = 1 / trust
		}
	}
	brings := func(f, i int, cell uint32) float64 {
		a := c.Packets[f] * c.of(i)
		return grown[f] * a * a * c.without(v[f], float64(c.parts[i])*a*a*c.trust[cell])
	}
	for f := range v {
		if v[f] == 0 {
			continue
		}
		known := int(math.Log2(c.variance[f]/(v[f]*grown[f])+1e-9) / knownWidth)
		c.sorts[f] = uint8(int(c.class[f])/sizeWidth*knownSorts + min(max(known, 0), knownSorts-1))
		for i, cell := range c.run(f) {
			total[cell] += brings(f, f*c.width+i, cell)
		}
	}
	for f := range v {
		for i, cell := range c.run(f) {
			at := f*c.width + i
			if v[f] > 0 && c.trust[cell] > 0 {
				c.parts[at] = float32(brings(f, at, cell) / total[cell])
			} else {
				c.parts[at] = 0
			}
		}
	}
	clear(c.square)
	c.scatter(c.square, effect)
	for at, trust := range c.trust {
		off := c.observed[at] - trust*c.square[at]
		c.square[at], c.own[at] = 0, 0
		if trust > 0 {
			c.square[at], c.own[at] = off*off*total[at], 1/trust/total[at]
		}
	}
}

// round sets the factors from the squares.
func (c *calibration) round() {
	for at, own := range c.own {
		c.now[at] = c.factor[sortCount] * own
	}
	for f, sort := range c.sorts {
		for i, cell := range c.run(f) {
			c.now[cell] += c.factor[sort] * float64(c.parts[f*c.width+i])
		}
	}
	clear(c.told[:])
	for at, own := range c.own {
		if now := c.now[at]; now > 0 {
			c.told[sortCount].add(c.factor[sortCount]*own/now, c.square[at]/now)
		}
	}
	for f, sort := range c.sorts {
		for i, cell := range c.run(f) {
			if part := float64(c.parts[f*c.width+i]); part > 0 {
				now := c.now[cell]
				c.told[sort].add(c.factor[sort]*part/now, c.square[cell]/now)
			}
		}
	}
	var all told
	for _, t := range c.told {
		all.squares += t.squares
		all.weight += t.weight
	}
	if all.weight == 0 {
		return
	}
	mean := all.squares / all.weight
	for k, t := range c.told {
		c.factor[k] = max(leastFactor, c.factor[k]*(t.squares+calibrationShrink*mean)/(t.weight+calibrationShrink))
	}
}
