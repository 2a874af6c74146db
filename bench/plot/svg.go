package plot

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The measures of a figure, in pixels.
const (
	width      = 720
	plotHeight = 330
	lineHeight = 17
	margin     = 14
	markEvery  = 28 // smallest distance of markers on a line with many points
)

// SVG draws a figure as a document that stands alone or inside a page of HTML.
// The id must be unique among the figures of one page. It returns an error if
// the figure contradicts itself; it draws any numbers.
func SVG(f *Figure, id string) ([]byte, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	c := canvas{figure: f, id: id, looks: looks(f.Series)}
	c.layOut()
	c.open()
	c.axes()
	for i := range f.Series {
		c.series(i)
	}
	c.out.WriteString("</g>\n")
	c.marks()
	c.legend()
	c.out.WriteString("</svg>\n")
	return c.out.Bytes(), nil
}

// check reports contradictions that no numbers could resolve.
func (f *Figure) check() error {
	for i, a := range []*Axis{&f.X, &f.Y} {
		name := "XY"[i : i+1]
		switch {
		case !(a.Min <= a.Max) || math.IsInf(a.Max-a.Min, 0):
			return fmt.Errorf("plot: %q: axis %s from %v to %v", f.Title, name, a.Min, a.Max)
		case a.Scale == Log && a.Min != a.Max && a.Min <= 0:
			return fmt.Errorf("plot: %q: logarithmic axis %s from %v, want over 0", f.Title, name, a.Min)
		case a.Scale == Log && len(a.Categories) > 0, name == "Y" && len(a.Categories) > 0:
			return fmt.Errorf("plot: %q: categories belong on a linear X axis", f.Title)
		}
	}
	for i := range f.Series {
		s := &f.Series[i]
		switch {
		case s.X == nil && s.Kind != Bars && len(s.Y) > 0:
			return fmt.Errorf("plot: %q: series %q has no X", f.Title, s.Name)
		case s.X != nil && len(s.X) != len(s.Y):
			return fmt.Errorf("plot: %q: series %q has %d X and %d Y", f.Title, s.Name, len(s.X), len(s.Y))
		case len(s.Low) != len(s.High), s.Low != nil && len(s.Low) != len(s.Y):
			return fmt.Errorf("plot: %q: series %q has %d Low, %d High and %d Y", f.Title, s.Name, len(s.Low), len(s.High), len(s.Y))
		case s.Kind == Band && s.Low == nil && len(s.Y) > 0:
			return fmt.Errorf("plot: %q: band %q has no Low and High", f.Title, s.Name)
		}
	}
	return nil
}

// A canvas is a figure being drawn.
type canvas struct {
	figure *Figure
	id     string
	looks  []look
	out    bytes.Buffer

	x, y    ruler
	title   []string
	entries []entry // of the legend
	hidden  int     // points that cannot be drawn
	shown   int
	barsAt  map[int]int // the place of a series among bars side by side
	slot    float64     // width of all bars of one X together, in units of X
	slanted bool        // labels of the X axis are too long to be level
	below   float64     // height of the X axis's labels
	beside  float64     // width of the Y axis's labels

	height float64
}

// An entry is the place of a series in the legend.
type entry struct {
	series int
	x, y   float64
}

// layOut decides where everything goes.
func (c *canvas) layOut() {
	f := c.figure
	c.title = wrap(f.Title, 90)
	c.barsAt = map[int]int{}
	var xs, ys []float64
	for i := range f.Series {
		s := &f.Series[i]
		if s.Kind == Bars {
			c.barsAt[i] = len(c.barsAt)
		}
		for k := range s.Y {
			if !c.has(s, k) {
				c.hidden++
				continue
			}
			c.shown++
			xs = append(xs, s.x(k))
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
	c.slot = 0.8 * spacing(f, xs)
	if len(c.barsAt) > 0 && len(f.X.Categories) == 0 && len(xs) > 0 && f.X.Scale == Linear {
		xs = append(xs, slices.Min(xs)-c.slot/2, slices.Max(xs)+c.slot/2)
	}
	c.x = lay(&f.X, xs, false)
	c.y = lay(&f.Y, ys, len(c.barsAt) > 0)

	for _, t := range c.y.ticks {
		c.beside = max(c.beside, tickWidth(t)+8)
	}
	left := margin + c.beside
	if f.Y.Label != "" {
		left += lineHeight + 2
	}
	top := margin + lineHeight*float64(len(c.title)) + 6
	c.x.from, c.x.to = left, width-margin-14
	c.y.from, c.y.to = top+plotHeight, top

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

// slantLabels slants the names of categories if they are too long to be level,
// and makes room for them below and to the left.
func (c *canvas) slantLabels() {
	room := (c.x.to - c.x.from) / float64(len(c.x.ticks))
	for _, t := range c.x.ticks {
		if tickWidth(t) > room-6 {
			c.slanted = true
		}
	}
	if !c.slanted {
		return
	}
	for i, t := range c.x.ticks {
		c.below = max(c.below, 0.5*tickWidth(t)+lineHeight)
		c.x.from = max(c.x.from, 0.87*tickWidth(t)-(float64(i)+0.5)*room)
	}
}

// has reports whether point k of a series can be drawn.
func (c *canvas) has(s *Series, k int) bool {
	if !drawable(s.x(k), c.figure.X.Scale) {
		return false
	}
	if s.Kind == Band {
		return drawable(s.Low[k], c.figure.Y.Scale) && drawable(s.High[k], c.figure.Y.Scale)
	}
	return drawable(s.Y[k], c.figure.Y.Scale)
}

// spacing returns the smallest distance of two different X of bars.
func spacing(f *Figure, xs []float64) float64 {
	if len(f.X.Categories) > 0 {
		return 1
	}
	sorted := slices.Compact(slices.Sorted(slices.Values(xs)))
	if len(sorted) < 2 {
		return 1
	}
	least := math.Inf(1)
	for i, x := range sorted[1:] {
		least = min(least, x-sorted[i])
	}
	return least
}

// open begins the document: its name for readers who cannot see it, its
// styles, and the title.
func (c *canvas) open() {
	c.printf(`<svg xmlns="http://www.w3.org/2000/svg" class="hoplag-plot" role="img" aria-labelledby="%s-title" `+
		`viewBox="0 0 %d %s" width="%d" height="%s">`+"\n",
		c.id, width, px(c.height), width, px(c.height))
	c.printf(`<title id="%s-title">%s</title>`+"\n", c.id, escape(c.figure.Title))
	c.printf("<style>%s</style>\n", styles)
	c.printf(`<clipPath id="%s-clip"><rect x="%s" y="%s" width="%s" height="%s"/></clipPath>`+"\n",
		c.id, px(c.x.from), px(c.y.to), px(c.x.to-c.x.from), px(c.y.from-c.y.to))
	c.printf(`<rect class="paper" width="%d" height="%s"/>`+"\n", width, px(c.height))
	for i, line := range c.title {
		c.printf(`<text class="title" x="%s" y="%s">%s</text>`+"\n", px(c.x.from), px(margin+lineHeight*float64(i)+9), escape(line))
	}
}

// axes draws grid, ticks and labels, and opens the group that is clipped to
// the axes.
func (c *canvas) axes() {
	vertical := func(v float64, class string) {
		c.printf(`<line class="%s" x1="%[2]s" x2="%[2]s" y1="%[3]s" y2="%[4]s"/>`+"\n", class, px(c.x.at(v)), px(c.y.from), px(c.y.to))
	}
	level := func(v float64, class string) {
		c.printf(`<line class="%s" y1="%[2]s" y2="%[2]s" x1="%[3]s" x2="%[4]s"/>`+"\n", class, px(c.y.at(v)), px(c.x.from), px(c.x.to))
	}
	for _, v := range c.x.minor {
		vertical(v, "grid fine")
	}
	for _, v := range c.y.minor {
		level(v, "grid fine")
	}
	for _, t := range c.x.ticks {
		at, y := px(c.x.at(t.at)), c.y.from+lineHeight
		if len(c.figure.X.Categories) == 0 {
			vertical(t.at, "grid")
		}
		if c.slanted {
			c.printf(`<text x="%[1]s" y="%[2]s" text-anchor="end" transform="rotate(-30 %[1]s %[2]s)">%[3]s</text>`+"\n", at, px(y), tickText(t))
			continue
		}
		c.printf(`<text x="%s" y="%s" text-anchor="middle">%s</text>`+"\n", at, px(y), tickText(t))
	}
	for _, t := range c.y.ticks {
		level(t.at, "grid")
		c.printf(`<text x="%s" y="%s" text-anchor="end">%s</text>`+"\n", px(c.x.from-8), px(c.y.at(t.at)+4), tickText(t))
	}
	c.printf(`<path class="axis" fill="none" d="M%s %sV%sH%s"/>`+"\n", px(c.x.from), px(c.y.to), px(c.y.from), px(c.x.to))
	if s := c.figure.X.Label; s != "" {
		c.printf(`<text x="%s" y="%s" text-anchor="middle">%s</text>`+"\n", px((c.x.from+c.x.to)/2), px(c.y.from+c.below+lineHeight-2), escape(s))
	}
	if s := c.figure.Y.Label; s != "" {
		x, y := px(c.x.from-c.beside-13), px((c.y.from+c.y.to)/2)
		c.printf(`<text x="%[1]s" y="%[2]s" text-anchor="middle" transform="rotate(-90 %[1]s %[2]s)">%[3]s</text>`+"\n", x, y, escape(s))
	}
	if c.shown == 0 {
		c.printf(`<text class="title" x="%s" y="%s" text-anchor="middle">no data</text>`+"\n", px((c.x.from+c.x.to)/2), px((c.y.from+c.y.to)/2))
	}
	c.printf(`<g clip-path="url(#%s-clip)">`+"\n", c.id)
}

func (c *canvas) printf(format string, args ...any) { fmt.Fprintf(&c.out, format, args...) }

// px formats a place in pixels, to a tenth.
func px(v float64) string {
	v = math.Round(10*min(max(v, -1e5), 1e5)) / 10
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

func tickWidth(t tick) float64 {
	if t.label == "" {
		return 30
	}
	return textWidth(t.label)
}

func tickText(t tick) string {
	if t.label != "" {
		return escape(t.label)
	}
	return fmt.Sprintf(`10<tspan class="power" dy="-5">%s</tspan>`, strings.ReplaceAll(strconv.Itoa(t.power), "-", "−"))
}

// wrap breaks text into lines of about the given number of letters.
func wrap(s string, letters int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(s) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > letters:
			lines = append(lines, line)
			line = word
		default:
			line += " " + word
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}
