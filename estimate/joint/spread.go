package joint

import "math"

// What the cells leave of the flows' variances is the diagonal of the inverse of S⁻¹ + AᵀD⁻¹A. Messages find
// it: the noise that flow f sees in a cell is D, plus a²v for every other flow there, with their v as the rest
// of their cells leaves it. That is a fixed point, belief propagation for a normal model, and right to a per
// cent if few flows meet twice.
const (
	sweeps    = 4 // of messages
	fewSweeps = 1 // enough to see which flows are known well
	// Classes of flows for scaling: by size, in powers of 16, and by how much is known about a flow, in powers of
	// 16 of the part of its variance that is left.
	sizeScales  = 3
	knownScales = 4
	scales      = sizeScales * knownScales
	rounds      = 10   // of scaling
	distant     = 25   // times their variance that squares count at most
	mostNoise   = 1e30 // that an entry brings, as a part of D: more drowns a cell no deeper
	shrink      = 20   // squares as all cells have them that every class has besides its own
)

// A hearing is what a sweep needs of a cell: D⁻¹, the noise that its flows bring to it, as a part of D, and
// that of the next sweep.
type hearing struct {
	trust       float64
	noise, next float32
}

// posterior returns the variance that the cells leave every flow. It also returns the noise that each entry of
// Cells brings to its cell, and what the cells hear in all.
func (s *solver) posterior(rounds int) (v []float64, brought []float32, heard []hearing) {
	v, brought, heard = append([]float64(nil), s.variance...), make([]float32, len(s.Cells)), make([]hearing, len(s.trust))
	for c, trust := range s.trust {
		heard[c].trust = trust
	}
	for round := range rounds + 1 {
		for f := range v {
			if v[f] > 0 {
				s.sweep(f, round > 0, v, brought[f*s.width:][:s.width], heard)
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
		precision := 1 / s.variance[f]
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
		brought[i] = float32(min(most*without(v[f], float64(brought[i])*most), mostNoise))
		h.next += brought[i]
	}
}

// without returns the variance that is left after precision told is removed.
func without(v, told float64) float64 {
	left := 1 - v*told
	if left < 1e-9 {
		left = 1e-9
	}
	return v / left
}

// A scaling finds by which factors variances are wrong, for flows of similar size and for D. Each cell is some
// distance from what the other cells say of its flows, of variance V = D + Σ a²v, with the v that the others
// leave; the square of what the solution leaves of the cell, times V²/D², is that of the distance. Squares are
// shared out among the classes by their parts of V, and every class's factor becomes the mean of what its cells
// say (expectation maximisation for components of variance).
type scaling [scales + 1]float64

// scalingParts are the parts of a cell's V, by class, and last that of D.
type scalingParts [scales + 1]float32

func (s *solver) scale(brought []float32, heard []hearing, sort []uint8) (k scaling) {
	parts, square := s.parts(brought, heard, sort)
	for i := range k {
		k[i] = 1
	}
	for range rounds {
		var squares, weight scaling
		for c := range parts {
			now := 0.0
			for i, part := range parts[c] {
				now += k[i] * float64(part)
			}
			if now == 0 {
				continue
			}
			ratio := min(square[c]/now, distant)
			for i, part := range parts[c] {
				x := k[i] * float64(part) / now
				squares[i] += x * ratio
				weight[i] += x
			}
		}
		var all, of float64
		for i := range k {
			all += squares[i]
			of += weight[i]
		}
		for i := range k {
			k[i] *= max(1e-6, (squares[i]+shrink*all/of)/(weight[i]+shrink))
		}
	}
	return k
}

// parts returns, for each cell, the parts of V, and the square of its distance in units of V.
func (s *solver) parts(brought []float32, heard []hearing, sort []uint8) (parts []scalingParts, square []float64) {
	parts, square = make([]scalingParts, len(heard)), s.cell
	for c, h := range heard {
		square[c] = 0
		if h.trust > 0 {
			square[c] = s.rest[c] * s.rest[c] * h.trust * float64(1+h.noise)
			parts[c][scales] = 1 / (1 + h.noise)
		}
	}
	for f := range sort {
		for i, c := range s.run(f) {
			parts[c][sort[f]] += brought[f*s.width+i] * parts[c][scales]
		}
	}
	return parts, square
}

// sortOf returns the class of flow f for scaling.
func (s *solver) sortOf(f int, v float64) uint8 {
	known := int(math.Log2(s.variance[f]/v+1e-9) / 4)
	return uint8(min(int(s.class[f])/4, sizeScales-1)*knownScales + min(known, knownScales-1))
}

// deviations returns the expected errors of the means.
func (s *solver) deviations(v []float64, brought []float32, heard []hearing, mean []float64, bent []float64) []float64 {
	sort := make([]uint8, len(v))
	for f, left := range v {
		if left > 0 {
			sort[f] = s.sortOf(f, left)
		}
	}
	k := s.scale(brought, heard, sort)
	noise := s.cell // of cells, as the scales have it
	clear(noise)
	for f := range sort {
		for i, c := range s.run(f) {
			noise[c] += k[sort[f]] * float64(brought[f*s.width+i])
		}
	}
	var squares, flows [sizeCount]float64
	for f, x := range s.above {
		squares[s.class[f]] += x * x
		flows[s.class[f]]++
	}
	for f, left := range v {
		if left == 0 {
			v[f] = math.Sqrt(s.square(f))
			continue
		}
		// A flow about which cells say little may be any flow of its size. Where they say more, it may be what they
		// say if that is bent for no reason.
		unknown := left / s.variance[f]
		by, own := bent[f]*(1-unknown), k[sort[f]]
		d := max(own*left, s.scaled(f, left, own, k[scales], brought, heard, noise), s.borne(f, left))
		d += by*by + unknown*unknown*squares[s.class[f]]/flows[s.class[f]]
		if s.Doubt != nil {
			d += s.miscounted(f, mean[f])
		}
		v[f] = math.Sqrt(d)
	}
	return v
}

// scaled returns the variance of the mean of flow f if its own variance and that of D are wrong by some factors, and
// its cells have the given noise: of the estimate as it was weighed.
func (s *solver) scaled(f int, left, own, rest float64, brought []float32, heard []hearing, noise []float64) float64 {
	w, v := s.Packets[f], own/s.variance[f]
	for i, c := range s.run(f) {
		a, by := w*s.of(f*s.width+i), float64(brought[f*s.width+i])
		said := 1 / (1 + max(0, float64(heard[c].noise)-by))
		v += a * a * heard[c].trust * said * said * (rest + max(0, noise[c]-own*by))
	}
	return left * left * v
}

// borne returns the square of how far the errors of sums that the caller knows of move the mean of flow f, of which
// the variance left is left. That other cells agree with each other does not make them smaller. Cells of one flow
// lost the same packets, so their errors have one sign.
func (s *solver) borne(f int, left float64) float64 {
	off := 0.0
	for i, c := range s.run(f) {
		if v := s.Variance[c]; v > 0 {
			off += s.of(f*s.width+i) * s.trust[c] * math.Sqrt(v)
		}
	}
	off *= left * s.Packets[f]
	return off * off
}

// miscounted returns the variance of the mean of flow f from the doubt of its packets: those in its cells that
// are not its own have the mean of the others there, and took time.
func (s *solver) miscounted(f int, mean float64) float64 {
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
