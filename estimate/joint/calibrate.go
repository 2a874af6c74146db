package joint

import (
	"context"
	"math"
)

// A calibration finds by what factors the variances that the regression leaves
// are off, as a prior that every flow has for itself, from a guess, is wide. It
// asks each cell how far it is from what the other cells say of its flows. With
// V the variance of that distance, the D of the cell and of every flow in it a²
// times the v that the other cells leave, the square of the distance should be V.
// For the solution h it is
//
//	(y − A h)² / D² × V²
//
// so that there is nothing more to solve. Squares are put down to the sorts of
// flows that are in a cell, and to D, in proportion to their parts of V, and
// every sort's factor becomes the mean of what it is told, in rounds: expectation
// maximisation for components of variance. Sorts are of size, and of how much of
// a flow is known.
const (
	calibrationRounds = 8
	knownSorts        = 8
	knownWidth        = 2 // powers of two of what is left of the variance
	sizeWidth         = 2 // powers of two of packets
	sortCount         = sizeCount / sizeWidth * knownSorts
	// Squares of more than this times their variance count as this: a few flows
	// that are far off must not widen all.
	mostDistant = 25
	// Every sort has this many entries of the mean of all besides its own.
	calibrationShrink = 20
	leastFactor       = 1e-4
	// Factors are as many standard errors too large.
	calibrationErrors = 2
)

type calibration struct {
	*system
	sorts  []uint8                // by flow
	parts  []float32              // by entry of Cells, of its cell's V with factors of 1
	own    []float64              // by cell: the part of D
	square []float64              // by cell: of the distance, for each V with factors of 1
	now    []float64              // by cell: V with the factors now, for each with factors of 1
	factor [sortCount + 1]float64 // by sort, and then that of D
	told   [sortCount + 1]told
}

// told is what cells tell a sort: the mean of squares for each V, times its
// weight, and that; and how many flows that is.
type told struct{ squares, weight, flows float64 }

func (t *told) add(part, square float64) {
	t.squares += part * min(square, mostDistant)
	t.weight += part
	t.flows += part * part
}

// calibrate returns for every flow the factor of its variance. v are the
// variances, before they grow by the factors of probes, and told what messages
// are left of them; told is used up.
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

// begin finds the parts and the squares.
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

// round makes the factors those of the squares.
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
