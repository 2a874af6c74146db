package estimate

// spanClasses is the number of classes of spans, by length.
const spanClasses = 5

func spanClass(cuts int) int {
	switch {
	case cuts <= 1:
		return 0
	case cuts == 2:
		return 1
	case cuts <= 5:
		return 2
	case cuts <= 12:
		return 3
	}
	return 4
}

// A share is what cells hold in a cut.
type share struct {
	cells, n, a, nn, na, aa float64
	variance                float64
}

func (s *share) add(n, a float64) {
	s.cells++
	s.n += n
	s.a += a
	s.nn += n * n
	s.na += n * a
	s.aa += a * a
}

func (s *share) merge(o *share) {
	s.cells += o.cells
	s.n += o.n
	s.a += o.a
	s.nn += o.nn
	s.na += o.na
	s.aa += o.aa
	s.variance += o.variance
}

// line returns the least-squares line of areas by packets, and the variance
// about it.
func (s *share) line() (level, slope, variance float64) {
	if spread := s.nn - s.n*s.n/s.cells; spread > 1e-9*s.nn && s.cells > 2 {
		slope = (s.na - s.n*s.a/s.cells) / spread
	} else if s.n > 0 {
		slope = s.a / s.n
	}
	level = (s.a - slope*s.n) / s.cells
	variance = (s.aa - s.a*level - slope*s.na) / max(1, s.cells-2)
	return level, slope, max(variance, 0)
}

// predict returns the area of as many other cells with n packets, by the line
// of these, and its variance.
func (s *share) predict(cells, n float64) (area, variance float64) {
	level, slope, each := s.line()
	far := 0.0
	if spread := s.nn - s.n*s.n/s.cells; spread > 1e-9*s.nn {
		far = sq(n-cells*s.n/s.cells) / spread
	}
	return cells*level + n*slope, each * (cells + cells*cells/s.cells + far)
}

// squares returns the sum of the squared distances from the ratio.
func (s *share) squares() float64 {
	if s.n == 0 {
		return 0
	}
	r := s.a / s.n
	return max(0, s.aa-2*r*s.na+r*r*s.nn)
}
