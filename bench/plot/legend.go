package plot

import "fmt"

const (
	swatch      = 30 // width of a series' sample
	legendSpace = 22 // between entries
)

// layLegend places the legend's entries below y, as many in a line as fit, and
// returns where they end. A figure with one nameless series has no legend.
func (c *canvas) layLegend(y float64) float64 {
	x := c.x.from
	y += lineHeight - 4
	begun := false
	for i, s := range c.figure.Series {
		if s.Name == "" {
			continue
		}
		wide := swatch + 6 + textWidth(s.Name)
		if begun && x+wide > width-margin {
			x = c.x.from
			y += lineHeight + 2
		}
		c.entries = append(c.entries, entry{series: i, x: x, y: y})
		x += wide + legendSpace
		begun = true
	}
	if c.hidden > 0 {
		y += lineHeight + 2
	}
	return y
}

// legend draws a sample and the name of each series, and below them how many
// points are not shown.
func (c *canvas) legend() {
	for _, e := range c.entries {
		s, l := &c.figure.Series[e.series], c.looks[e.series]
		x0, x1, y := e.x, e.x+swatch, e.y-4
		switch s.Kind {
		case Bars:
			class := fmt.Sprintf("bar s%d f%d", l.hue, l.hue)
			if l.paper {
				class += " faint"
			}
			c.printf(`<rect class="%s"%s x="%s" y="%s" width="%d" height="10"/>`+"\n", class, dashed(l.dash), px(x0+8), px(y-5), swatch-14)
		case Band:
			c.printf(`<rect class="band f%d" x="%s" y="%s" width="%d" height="12"/>`+"\n", l.hue, px(x0), px(y-6), swatch)
		case Lines, Line, Steps:
			c.printf(`<path class="line s%d"%s d="M%s %sH%s"/>`+"\n", l.hue, dashed(l.dash), px(x0), px(y), px(x1))
		}
		if s.Kind == Lines || s.Kind == Markers {
			c.mark((x0+x1)/2, y, l)
		}
		c.printf(`<text x="%s" y="%s">%s</text>`+"\n", px(x1+6), px(e.y), escape(s.Name))
	}
	if c.hidden > 0 {
		points := "points are"
		if c.hidden == 1 {
			points = "point is"
		}
		c.printf(`<text class="note" x="%s" y="%s">%d %s not shown: not a number%s</text>`+"\n", px(c.x.from), px(c.height-margin+2),
			c.hidden, points, c.orNotPositive())
	}
}

func (c *canvas) orNotPositive() string {
	if c.x.scale == Log || c.y.scale == Log {
		return ", or not above 0 on a logarithmic axis"
	}
	return ""
}
