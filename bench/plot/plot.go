// Package plot draws the figures of the experiments as SVG: lines, markers,
// steps and bands on linear or logarithmic axes, with a legend below the data.
// A figure is legible on a light and on a dark page, in black and white, and
// for colour-blind readers: series differ by marker and dash as well as
// colour.
//
// It leaves out what cannot be drawn, and never moves it: NaN and infinities,
// and numbers of 0 or less on a logarithmic axis. A line breaks there. The
// figure then says how many points are not shown. An error bar whose end
// cannot be drawn goes to the edge and has no cap there.
package plot

import (
	"cmp"
	"slices"
)

// A Figure is one picture.
type Figure struct {
	Name    string // within the experiment, for file names: "4a"; "" for its only figure
	Title   string
	Caption string // a sentence or two for the report
	X, Y    Axis
	Series  []*Series
}

// Add adds series.
func (f *Figure) Add(series ...Series) {
	for _, s := range series {
		f.Line(s)
	}
}

// Line adds a series and returns it, to add points to it.
func (f *Figure) Line(s Series) *Series {
	f.Series = append(f.Series, &s)
	return &s
}

// A Scale is how an axis maps numbers.
type Scale uint8

// The scales.
const (
	Linear Scale = iota
	Log
)

// An Axis describes one axis. The zero value is linear and covers the data.
type Axis struct {
	Label string // with the unit: "loss rate (%)"
	Scale Scale

	// Min and Max are the axis's ends, if they differ; otherwise the data
	// decide. What lies beyond is cut off silently.
	Min, Max float64

	// Categories, on an X axis, are names for the whole numbers from 0 on.
	Categories []string
}

// LinearAxis returns a linear axis that covers the data.
func LinearAxis(label string) Axis { return Axis{Label: label} }

// LogAxis returns a logarithmic axis that covers the data.
func LogAxis(label string) Axis { return Axis{Label: label, Scale: Log} }

// A Kind says how to draw a series.
type Kind uint8

// The kinds.
const (
	Lines   Kind = iota // a line with a marker at each point
	Line                // a line alone: theory, the truth, many points
	Markers             // markers alone
	Steps               // a staircase that changes at each point: a CDF
	Band                // the area between Low and High; Y is not drawn
)

// A Series is a named sequence of points.
type Series struct {
	Name string
	Kind Kind
	X, Y []float64 // of equal length

	// Low and High, if not nil, are the ends of each point's error bar.
	Low, High []float64

	// Paper marks results of the paper's method, or from its authors: dashed
	// and hollow, while everything else is solid.
	Paper bool

	// Pair, if not 0, gives the series the colour and marker of all others
	// with the same Pair, such as the paper's method and ours on one input.
	Pair int
}

// Add appends a point.
func (s *Series) Add(x, y float64) {
	s.X = append(s.X, x)
	s.Y = append(s.Y, y)
}

// AddRange appends a point with an error bar, or a piece of a Band.
func (s *Series) AddRange(x, y, low, high float64) {
	s.Add(x, y)
	s.Low = append(s.Low, low)
	s.High = append(s.High, high)
}

// CDF returns the empirical distribution of samples, thinned to at most points
// steps at evenly spaced probabilities (0 means 200) so that the picture stays
// small. It does not change the samples, and drops those that are not numbers.
func CDF(name string, samples []float64, points int) Series {
	sorted := slices.DeleteFunc(slices.Clone(samples), func(x float64) bool { return x != x })
	slices.Sort(sorted)
	s := Series{Name: name, Kind: Steps}
	n := len(sorted)
	if n == 0 {
		return s
	}
	s.Add(sorted[0], 0)
	steps := min(n, cmp.Or(points, 200))
	for i := range steps {
		rank := int(int64(i+1) * int64(n) / int64(steps))
		s.Add(sorted[rank-1], float64(rank)/float64(n))
	}
	return s
}
