package plot

import (
	"fmt"
	"math"
	"strings"
)

// series draws the parts of a series that belong inside the axes: its line,
// band, bars and error bars. Markers come later, on top of all lines.
func (c *canvas) series(i int) {
	s, l := &c.figure.Series[i], c.looks[i]
	switch s.Kind {
	case Band:
		c.band(s, l)
		return
	case Bars:
		c.bars(i)
	case Lines, Line, Steps:
		if d := c.path(s); d != "" {
			c.printf(`<path class="line s%d"%s d="%s"/>`+"\n", l.hue, dashed(l.dash), d)
		}
	}
	if s.Low == nil {
		return
	}
	for k := range s.Y {
		if c.has(s, k) {
			class := fmt.Sprintf("range s%d", l.hue)
			if s.Kind == Bars {
				class = "range axis" // on a bar its own colour would not show
			}
			c.errorBar(c.pointX(i, k), s.Low[k], s.High[k], class)
		}
	}
}

// pointX returns the horizontal position of point k of series i. For bars side
// by side, it is the middle of the point's own bar.
func (c *canvas) pointX(i, k int) float64 {
	s := &c.figure.Series[i]
	if s.Kind != Bars {
		return c.x.at(s.x(k))
	}
	from, to := c.barEnds(i, k)
	return (from + to) / 2
}

// barEnds returns where bar k of series i begins and ends.
func (c *canvas) barEnds(i, k int) (from, to float64) {
	x := c.figure.Series[i].x(k)
	if c.x.scale == Log {
		// Equally wide everywhere, on a scale where nothing else is.
		wide := 14.0
		from = c.x.at(x) + wide*(float64(c.barsAt[i])-float64(len(c.barsAt))/2)
		return from, from + wide
	}
	one := c.slot / float64(len(c.barsAt))
	from = x - c.slot/2 + one*float64(c.barsAt[i])
	return c.x.at(from), c.x.at(from + one)
}

// path returns the line through the points, broken where one cannot be drawn.
func (c *canvas) path(s *Series) string {
	var b strings.Builder
	pen := false
	for k := range s.Y {
		if !c.has(s, k) {
			pen = false
			continue
		}
		x, y := px(c.x.at(s.x(k))), px(c.y.at(s.Y[k]))
		switch {
		case !pen:
			fmt.Fprintf(&b, "M%s %s", x, y)
		case s.Kind == Steps:
			fmt.Fprintf(&b, "H%sV%s", x, y)
		default:
			fmt.Fprintf(&b, "L%s %s", x, y)
		}
		pen = true
	}
	return b.String()
}

func (c *canvas) band(s *Series, l look) {
	for from := 0; from < len(s.Y); from++ {
		to := from
		var there, back strings.Builder
		for ; to < len(s.Y) && c.has(s, to); to++ {
			x := px(c.x.at(s.x(to)))
			fmt.Fprintf(&there, "L%s %s", x, px(c.y.at(s.High[to])))
		}
		for k := to - 1; k >= from; k-- {
			fmt.Fprintf(&back, "L%s %s", px(c.x.at(s.x(k))), px(c.y.at(s.Low[k])))
		}
		if to > from {
			c.printf(`<path class="band f%d" d="M%s%sZ"/>`+"\n", l.hue, there.String()[1:], back.String())
		}
		from = to
	}
}

func (c *canvas) bars(i int) {
	s, l := &c.figure.Series[i], c.looks[i]
	foot := c.y.from
	if c.y.scale == Linear {
		foot = c.y.at(0)
	}
	for k := range s.Y {
		if !c.has(s, k) {
			continue
		}
		from, to := c.barEnds(i, k)
		y := c.y.at(s.Y[k])
		class := fmt.Sprintf("bar s%d f%d", l.hue, l.hue)
		if l.paper {
			class += " faint"
		}
		c.printf(`<rect class="%s"%s x="%s" y="%s" width="%s" height="%s"/>`+"\n",
			class, dashed(l.dash), px(from+1), px(min(y, foot)), px(max(to-from-2, 1)), px(math.Abs(foot-y)))
	}
}

// errorBar draws a bar from low to high. An end without a place on the axis
// goes to the edge, and has no cap.
func (c *canvas) errorBar(x, low, high float64, class string) {
	if math.IsNaN(low) || math.IsNaN(high) {
		return
	}
	end := func(v, edge float64) (y float64, cap string) {
		if !drawable(v, c.y.scale) {
			return edge, ""
		}
		y = c.y.at(v)
		return y, fmt.Sprintf("M%s %sh8", px(x-4), px(y))
	}
	y0, cap0 := end(low, c.y.from)
	y1, cap1 := end(high, c.y.to)
	c.printf(`<path class="%s" fill="none" d="M%s %sV%s%s%s"/>`+"\n", class, px(x), px(y0), px(y1), cap0, cap1)
}

// marks draws the markers of all series. On a line with very many points only
// some have one; series with points at equal places do not hide each other.
func (c *canvas) marks() {
	for i := range c.figure.Series {
		s, l := &c.figure.Series[i], c.looks[i]
		if s.Kind != Lines && s.Kind != Markers {
			continue
		}
		last := math.Inf(-1)
		for k := range s.Y {
			if !c.has(s, k) || !c.x.inside(s.x(k)) || !c.y.inside(s.Y[k]) {
				continue
			}
			x := c.x.at(s.x(k))
			if s.Kind == Lines && len(s.Y) > 40 && math.Abs(x-last) < markEvery {
				continue
			}
			last = x
			c.mark(x, c.y.at(s.Y[k]), l)
		}
	}
}

// mark draws one marker: solid, or hollow for the paper's.
func (c *canvas) mark(x, y float64, l look) {
	fill := fmt.Sprintf("f%d", l.hue)
	if l.paper {
		fill = "hollow"
	}
	class := fmt.Sprintf("mark s%d %s", l.hue, fill)
	at := px(x) + " " + px(y)
	path := ""
	switch l.hue {
	case 0:
		c.printf(`<circle class="%s" cx="%s" cy="%s" r="3.6"/>`+"\n", class, px(x), px(y))
		return
	case 1:
		path = "m-3.5-3.5h7v7h-7z"
	case 2:
		path = "m0-4.4l4.4 7.6h-8.8z"
	case 3:
		path = "m0-4.8l4.8 4.8-4.8 4.8-4.8-4.8z"
	case 4:
		path = "m0 4.4l4.4-7.6h-8.8z"
	case 5:
		path = "m-4-4l8 8m-8 0l8-8"
	default:
		path = "m-4.6 0h9.2m-4.6-4.6v9.2"
	}
	c.printf(`<path class="%s" d="M%s%s"/>`+"\n", class, at, path)
}

func dashed(dash string) string {
	if dash == "" {
		return ""
	}
	return ` stroke-dasharray="` + dash + `"`
}
