package joint

import "math"

// sweep solves equations with 1 + L and 1 + Lᵀ. L itself, which says which flows
// meet, is never stored: a solve visits one flow after another, takes off what
// earlier flows added to its cells, and adds its own.
type sweep struct {
	*weighted
	// Per flow: its packets ÷ √diagonal, times the weight of its entries if all
	// have the same.
	entry []float64
	cells []cellSum
}

// cellSum is what flows have added to a cell in this solve, and its D⁻¹.
type cellSum struct{ sum, trust float64 }

func (s *system) newSweep() *sweep {
	w := &sweep{weighted: s.weighted, entry: make([]float64, len(s.inverse)), cells: make([]cellSum, len(s.trust))}
	for f, inverse := range s.inverse {
		w.entry[f] = math.Sqrt(inverse) * s.Packets[f]
		if s.part == nil {
			w.entry[f] *= s.uniform
		}
	}
	for c, trust := range s.trust {
		w.cells[c].trust = trust
	}
	return w
}

// empty clears the cells for the next solve.
func (w *sweep) empty() {
	for c := range w.cells {
		w.cells[c].sum = 0
	}
}

// next returns the solution of flow f, given its right-hand side and the flows
// visited before it.
func (w *sweep) next(f int, right float64) float64 {
	run, total := w.run(f), 0.0
	if w.part == nil {
		for _, c := range run {
			total += w.cells[c].sum * w.cells[c].trust
		}
		value := right - w.entry[f]*total
		for _, c := range run {
			w.cells[c].sum += w.entry[f] * value
		}
		return value
	}
	part := w.part[f*w.width:][:len(run)]
	for i, c := range run {
		total += float64(part[i]) * w.cells[c].sum * w.cells[c].trust
	}
	value := right - w.entry[f]*total
	for i, c := range run {
		w.cells[c].sum += float64(part[i]) * w.entry[f] * value
	}
	return value
}
