package areas

// A share is what cells hold: packets n and areas a.
type share struct{ n, a, nn, na, aa float64 }

func (s *share) add(n, a float64) { s.weigh(1, n, a) }

// weigh adds a cell with a weight.
func (s *share) weigh(weight, n, a float64) {
	s.n += weight * n
	s.a += weight * a
	s.nn += weight * n * n
	s.na += weight * n * a
	s.aa += weight * a * a
}

// about returns the sum of the squared distances from a ratio.
func (s *share) about(r float64) float64 { return max(0, s.aa-2*r*s.na+r*r*s.nn) }
