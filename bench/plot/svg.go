package plot

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The measures of a figure, in pixels.
const (
	width       = 720
	plotHeight  = 330
	lineHeight  = 17
	margin      = 14
	markEvery   = 28 // smallest distance of markers on a line with many points
	swatch      = 30 // width of a series' sample in the legend
	legendSpace = 22 // between its entries
)

// SVG draws a figure as a document that stands alone or inside a page of HTML.
// The id must be unique among the figures of one page. It draws any numbers.
func SVG(f *Figure, id string) []byte {
	c := canvas{figure: f, id: id, looks: looks(f.Series)}
	c.layOut()
	c.open()
	c.axes()
	c.printf(`<g clip-path="url(#%s-clip)">`+"\n", id)
	for i, s := range f.Series {
		c.series(s, c.looks[i])
	}
	c.printf("</g>\n")
	for i, s := range f.Series {
		c.marks(s, c.looks[i])
	}
	c.legend()
	c.printf("</svg>\n")
	return c.out.Bytes()
}

// A canvas is a figure being drawn.
type canvas struct {
	figure *Figure
	id     string
	looks  []look
	out    bytes.Buffer

	x, y    ruler
	entries [][2]float64 // places of the series in the legend
	hidden  int          // points that cannot be drawn
	below   float64      // height of the X axis's labels
	beside  float64      // width of the Y axis's labels

	height float64
}

// layOut decides where everything goes.
func (c *canvas) layOut() {
	f := c.figure
	var xs, ys []float64
	for _, s := range f.Series {
		for k := range s.Y {
			if !c.has(s, k) {
				c.hidden++
				continue
			}
			xs = append(xs, s.X[k])
			if s.Kind != Band {
				ys = append(ys, s.Y[k])
			}
			if s.Low != nil {
				for _, v := range []float64{s.Low[k], s.High[k]} {
					if drawable(v, f.Y.Scale) {
						ys = append(ys, v)
					}
				}
			}
		}
	}
	c.x, c.y = lay(&f.X, xs), lay(&f.Y, ys)
	for _, t := range c.y.ticks {
		c.beside = max(c.beside, textWidth(t.label)+8)
	}
	const top = margin + lineHeight + 6
	c.x.from, c.x.to = margin+c.beside, width-margin-14
	c.y.from, c.y.to = top+plotHeight, top
	if f.Y.Label != "" {
		c.x.from += lineHeight + 2
	}
	c.below = lineHeight + 4
	if len(f.X.Categories) > 0 {
		c.slantLabels()
	}
	bottom := c.y.from + c.below
	if f.X.Label != "" {
		bottom += lineHeight + 2
	}
	c.height = c.layLegend(bottom+6) + margin
}

// slantLabels makes room for the slanted names of categories, below and to the left.
func (c *canvas) slantLabels() {
	room := (c.x.to - c.x.from) / float64(len(c.x.ticks))
	for i, t := range c.x.ticks {
		c.below = max(c.below, 0.5*textWidth(t.label)+lineHeight)
		c.x.from = max(c.x.from, 0.87*textWidth(t.label)-(float64(i)+0.5)*room)
	}
}

// layLegend places the legend's entries below y, as many in a line as fit, and
// returns where they end. A series without a name has no entry.
func (c *canvas) layLegend(y float64) float64 {
	x := c.x.from
	y += lineHeight - 4
	for _, s := range c.figure.Series {
		wide := swatch + 6 + textWidth(s.Name)
		if s.Name != "" && x > c.x.from && x+wide > width-margin {
			x = c.x.from
			y += lineHeight + 2
		}
		c.entries = append(c.entries, [2]float64{x, y})
		if s.Name != "" {
			x += wide + legendSpace
		}
	}
	if c.hidden > 0 {
		y += lineHeight + 2
	}
	return y
}

// has reports whether point k of a series can be drawn.
func (c *canvas) has(s *Series, k int) bool {
	y := c.figure.Y.Scale
	if s.Kind == Band && !(drawable(s.Low[k], y) && drawable(s.High[k], y)) || s.Kind != Band && !drawable(s.Y[k], y) {
		return false
	}
	return drawable(s.X[k], c.figure.X.Scale)
}

// open begins the document: its name for readers who cannot see it, its
// styles, and the title.
func (c *canvas) open() {
	title := escape(c.figure.Title)
	c.printf(`<svg xmlns="http://www.w3.org/2000/svg" class="hoplag-plot" role="img" aria-labelledby="%s-title" `+
		`viewBox="0 0 %d %v" width="%d" height="%v">`+"\n", c.id, width, px(c.height), width, px(c.height))
	c.printf(`<title id="%s-title">%s</title>`+"\n", c.id, title)
	c.printf("<style>%s</style>\n", styles)
	c.printf(`<clipPath id="%s-clip"><rect x="%v" y="%v" width="%v" height="%v"/></clipPath>`+"\n",
		c.id, px(c.x.from), px(c.y.to), px(c.x.to-c.x.from), px(c.y.from-c.y.to))
	c.printf(`<rect class="paper" width="%d" height="%v"/>`+"\n", width, px(c.height))
	c.printf(`<text class="title" x="%v" y="%d">%s</text>`+"\n", px(c.x.from), margin+9, title)
}

// axes draws grid, ticks and labels.
func (c *canvas) axes() {
	vertical := func(v float64, class string) {
		c.printf(`<line class="%s" x1="%[2]v" x2="%[2]v" y1="%[3]v" y2="%[4]v"/>`+"\n", class, px(c.x.at(v)), px(c.y.from), px(c.y.to))
	}
	level := func(v float64, class string) {
		c.printf(`<line class="%s" y1="%[2]v" y2="%[2]v" x1="%[3]v" x2="%[4]v"/>`+"\n", class, px(c.y.at(v)), px(c.x.from), px(c.x.to))
	}
	// text draws text that ends or has its middle at a place, turned round it.
	text := func(x, y float64, anchor string, turned int, s string) {
		turn := ""
		if turned != 0 {
			turn = fmt.Sprintf(` transform="rotate(%d %v %v)"`, turned, px(x), px(y))
		}
		c.printf(`<text x="%v" y="%v" text-anchor="%s"%s>%s</text>`+"\n", px(x), px(y), anchor, turn, s)
	}
	for _, v := range c.x.minor {
		vertical(v, "grid fine")
	}
	for _, v := range c.y.minor {
		level(v, "grid fine")
	}
	for _, t := range c.x.ticks {
		if len(c.figure.X.Categories) > 0 {
			text(c.x.at(t.at), c.y.from+lineHeight, "end", -30, escape(t.label))
			continue
		}
		vertical(t.at, "grid")
		text(c.x.at(t.at), c.y.from+lineHeight, "middle", 0, escape(t.label))
	}
	for _, t := range c.y.ticks {
		level(t.at, "grid")
		text(c.x.from-8, c.y.at(t.at)+4, "end", 0, escape(t.label))
	}
	c.printf(`<path class="axis" fill="none" d="M%v %vV%vH%v"/>`+"\n", px(c.x.from), px(c.y.to), px(c.y.from), px(c.x.to))
	if s := c.figure.X.Label; s != "" {
		text((c.x.from+c.x.to)/2, c.y.from+c.below+lineHeight-2, "middle", 0, escape(s))
	}
	if s := c.figure.Y.Label; s != "" {
		text(c.x.from-c.beside-13, (c.y.from+c.y.to)/2, "middle", -90, escape(s))
	}
}

// series draws the parts of a series that belong inside the axes: its line,
// band and error bars. Markers come later, on top of all lines.
func (c *canvas) series(s *Series, l look) {
	if s.Kind == Band {
		c.band(s, l)
		return
	}
	if d := c.path(s); d != "" {
		c.printf(`<path class="line s%d"%s d="%s"/>`+"\n", l.hue, l.dashed(), d)
	}
	for k := range s.Low {
		if c.has(s, k) {
			c.errorBar(c.x.at(s.X[k]), s.Low[k], s.High[k], l)
		}
	}
}

// path returns the line through the points, broken where one cannot be drawn.
func (c *canvas) path(s *Series) string {
	var b strings.Builder
	pen := false
	for k := range s.Y {
		if !c.has(s, k) || s.Kind == Markers {
			pen = false
			continue
		}
		format := "L%v %v"
		if !pen {
			format = "M%v %v"
		} else if s.Kind == Steps {
			format = "H%vV%v"
		}
		fmt.Fprintf(&b, format, px(c.x.at(s.X[k])), px(c.y.at(s.Y[k])))
		pen = true
	}
	return b.String()
}

// band draws the area of each run of points that can be drawn.
func (c *canvas) band(s *Series, l look) {
	for from := 0; from < len(s.Y); from++ {
		to := from
		var there, back strings.Builder
		for ; to < len(s.Y) && c.has(s, to); to++ {
			fmt.Fprintf(&there, "L%v %v", px(c.x.at(s.X[to])), px(c.y.at(s.High[to])))
		}
		for k := to - 1; k >= from; k-- {
			fmt.Fprintf(&back, "L%v %v", px(c.x.at(s.X[k])), px(c.y.at(s.Low[k])))
		}
		if to > from {
			c.printf(`<path class="band f%d" d="M%s%sZ"/>`+"\n", l.hue, there.String()[1:], back.String())
		}
		from = to
	}
}

// errorBar draws a bar from low to high. An end without a place on the axis
// goes to the edge, and has no cap.
func (c *canvas) errorBar(x, low, high float64, l look) {
	if math.IsNaN(low) || math.IsNaN(high) {
		return
	}
	end := func(v, edge float64) (y px, cap string) {
		if !drawable(v, c.y.scale) {
			return px(edge), ""
		}
		y = px(c.y.at(v))
		return y, fmt.Sprintf("M%v %vh8", px(x-4), y)
	}
	y0, cap0 := end(low, c.y.from)
	y1, cap1 := end(high, c.y.to)
	c.printf(`<path class="range s%d" fill="none" d="M%v %vV%v%s%s"/>`+"\n", l.hue, px(x), y0, y1, cap0, cap1)
}

// marks draws the markers of a series. On a line with very many points only
// some have one.
func (c *canvas) marks(s *Series, l look) {
	if s.Kind != Lines && s.Kind != Markers {
		return
	}
	last := math.Inf(-1)
	for k := range s.Y {
		if !c.has(s, k) || !c.x.inside(s.X[k]) || !c.y.inside(s.Y[k]) {
			continue
		}
		x := c.x.at(s.X[k])
		if s.Kind == Lines && len(s.Y) > 40 && math.Abs(x-last) < markEvery {
			continue
		}
		last = x
		c.mark(x, c.y.at(s.Y[k]), l)
	}
}

// mark draws one marker: solid, or hollow for the paper's.
func (c *canvas) mark(x, y float64, l look) {
	class := fmt.Sprintf("mark s%d f%d", l.hue, l.hue)
	if l.paper {
		class = fmt.Sprintf("mark s%d hollow", l.hue)
	}
	if l.hue == 0 {
		c.printf(`<circle class="%s" cx="%v" cy="%v" r="3.6"/>`+"\n", class, px(x), px(y))
		return
	}
	c.printf(`<path class="%s" d="M%v %v%s"/>`+"\n", class, px(x), px(y), markers[l.hue])
}

// legend draws a sample and the name of each series, and below them how many
// points are not shown.
func (c *canvas) legend() {
	for i, s := range c.figure.Series {
		l := c.looks[i]
		if s.Name == "" {
			continue
		}
		x, y := c.entries[i][0], c.entries[i][1]
		switch s.Kind {
		case Band:
			c.printf(`<rect class="band f%d" x="%v" y="%v" width="%d" height="12"/>`+"\n", l.hue, px(x), px(y-10), swatch)
		case Lines, Line, Steps:
			c.printf(`<path class="line s%d"%s d="M%v %vH%v"/>`+"\n", l.hue, l.dashed(), px(x), px(y-4), px(x+swatch))
		}
		if s.Kind == Lines || s.Kind == Markers {
			c.mark(x+swatch/2, y-4, l)
		}
		c.printf(`<text x="%v" y="%v">%s</text>`+"\n", px(x+swatch+6), px(y), escape(s.Name))
	}
	if c.hidden == 0 {
		return
	}
	c.printf(`<text class="note" x="%v" y="%v">%d points are not shown: not numbers, or not above 0 on a logarithmic axis</text>`+"\n",
		px(c.x.from), px(c.height-margin+2), c.hidden)
}

func (c *canvas) printf(format string, args ...any) { fmt.Fprintf(&c.out, format, args...) }

// A px is a place in pixels, shown to a tenth.
type px float64

// String formats the place.
func (p px) String() string {
	v := math.Round(10*min(max(float64(p), -1e5), 1e5)) / 10
	if v == 0 {
		v = 0 // not -0
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

func escape(s string) string {
	var b strings.Builder
	if err := xml.EscapeText(&b, []byte(s)); err != nil {
		panic(err) // a builder takes everything
	}
	return b.String()
}

// textWidth returns the approximate width of text. Fonts differ; it errs on
// the wide side.
func textWidth(s string) float64 { return 6.6 * float64(utf8.RuneCountInString(s)) }
