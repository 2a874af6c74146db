package estimate

// A share is what cells hold in a cut: packets n and areas a.
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

// squares returns the sum of the squared distances from the ratio a/n.
func (s *share) squares() float64 {
	if s.n == 0 {
		return 0
	}
	r := s.a / s.n
	return max(0, s.aa-2*r*s.na+r*r*s.nn)
}

// predict returns the area of as many other cells with n packets, by the ratio of
// these, and its variance.
func (s *share) predict(cells, n float64) (area, variance float64) {
	if s.n == 0 {
		return cells * s.a / s.cells, cells * s.aa
	}
	return n * s.a / s.n, s.squares() / max(1, s.cells-1) * cells * (1 + n/s.n)
}

// like reports whether other cells may hold as many packets as these. Cells that
// lost one of many copies hold more, and are no match.
func (s *share) like(o *share) bool {
	mean := s.n / s.cells
	apart := o.n - o.cells*mean
	return apart*apart <= 16*max(s.nn/s.cells-mean*mean, mean)*o.cells*(1+o.cells/s.cells)
}

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
