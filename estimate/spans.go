package estimate

import "math"

// A Span is the part within a window of the time between two cuts at which a
// cell was settled, or since the last such cut.
type Span struct {
	Cell           int
	From, To       int // cuts: after From and up to To
	Sent, Received uint32
	Area           float64 // time that packets spent on their way, without the ages of lost ones, as expected
	Variance       float64 // of Area: 0 where nothing was lost, infinite where nothing is known

	// Lost is how many packets the whole span lost, told where it ends. While it is
	// open, as many are outstanding, lost or on their way.
	Lost int
	Open bool // the cell has not settled since
}

// Spans calls visit for the spans of all cells, in order of cell and time,
// after cut number from and up to cut number to. Unlike [Areas.Transit], which you
// call first, it takes nothing of what a span lacks from other cells.
func (a *Areas) Spans(from, to int, visit func(Span)) {
	l := &a.losses
	from, to = from-a.before, to-a.before
	a.walk(from, func(x *span) {
		if x.from >= to {
			return
		}
		begin, end := max(x.from, from), min(x.to, to)
		s := Span{Cell: x.cell, From: begin + a.before, To: end + a.before, Open: x.open || x.to > to && !x.exact}
		s.Variance = l.resolve(x) * l.burst
		for k := begin; k < end; k++ {
			s.Area += x.area[k-x.from]
			s.Sent += x.out[k-x.from]
			s.Received += x.in[k-x.from]
		}
		switch {
		case s.Open:
			s.Lost = int(x.on[end-1-x.from])
		case x.to <= to:
			s.Lost = x.lost
		}
		switch {
		case x.unknown:
			s.Variance = math.Inf(1)
		case x.late > 0 && x.to <= to && l.believed():
			s.Area += x.owed
		case x.late > 0 && x.to <= to:
			s.Variance += sq(x.owed)
		}
		visit(s)
	})
}
