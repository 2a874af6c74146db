package plot

import (
	"fmt"
	"strings"
)

// colours is the palette of M. Okabe and K. Ito, Color Universal Design, 2008,
// which colour-blind readers can distinguish. It leaves out their yellow,
// which is too pale for white. Each colour is for a light page, and lightened
// for a dark one.
var colours = [...]struct{ light, dark string }{
	{"#0072b2", "#4aa8e8"}, // blue
	{"#d55e00", "#f58447"}, // vermilion
	{"#009e73", "#2ec79c"}, // bluish green
	{"#cc79a7", "#e3a3c6"}, // reddish purple
	{"#e69f00", "#f2bd4b"}, // orange
	{"#56b4e9", "#9ad6f7"}, // sky blue
	{"#000000", "#ffffff"},
}

// dashes distinguishes lines without markers in black and white.
var dashes = [...]string{"", "9 3", "2 3", "9 3 2 3", "14 4", "5 2 1 2 1 2", "1 2"}

const paperDash = "6 4"

// styles is the style sheet of every figure. It is the same in all of them, so
// that several can be in one page. It uses plain rules instead of variables,
// because not every program that draws SVG knows those.
var styles = func() string {
	var light, dark strings.Builder
	sheet := func(b *strings.Builder, ink, faint, paper string, dark bool) {
		fmt.Fprintf(b, ".hoplag-plot{color:%s;background:%s}", ink, paper)
		fmt.Fprintf(b, ".hoplag-plot text{fill:%s}.hoplag-plot .axis{stroke:%s}", ink, ink)
		fmt.Fprintf(b, ".hoplag-plot .grid{stroke:%s}.hoplag-plot .paper,.hoplag-plot .hollow{fill:%s}", faint, paper)
		for i, c := range colours {
			hue := c.light
			if dark {
				hue = c.dark
			}
			fmt.Fprintf(b, ".hoplag-plot .s%d{stroke:%s}.hoplag-plot .f%d{fill:%s}", i, hue, i, hue)
		}
	}
	sheet(&light, "#1f2328", "#d9dde3", "#ffffff", false)
	sheet(&dark, "#e6e8eb", "#3a4048", "#16191d", true)
	return ".hoplag-plot{font:12px system-ui,'Segoe UI',Helvetica,Arial,sans-serif}" +
		".hoplag-plot .title{font-size:14px;font-weight:600}.hoplag-plot .note{font-size:11px;font-style:italic}" +
		".hoplag-plot .grid{stroke-width:1}.hoplag-plot .fine{stroke-width:.5}" +
		".hoplag-plot .line{fill:none;stroke-width:2;stroke-linejoin:round}" +
		".hoplag-plot .range{stroke-width:1.2;opacity:.8}.hoplag-plot .mark{stroke-width:1.6}" +
		".hoplag-plot .band{fill-opacity:.2;stroke:none}" +
		light.String() +
		"@media screen and (prefers-color-scheme:dark){" + dark.String() + "}"
}()

// markers are what follows the place of a marker in its path; the first is a
// circle.
var markers = [len(colours)]string{
	1: "m-3.5-3.5h7v7h-7z", 2: "m0-4.4l4.4 7.6h-8.8z", 3: "m0-4.8l4.8 4.8-4.8 4.8-4.8-4.8z", 4: "m0 4.4l4.4-7.6h-8.8z",
	5: "m-4-4l8 8m-8 0l8-8", 6: "m-4.6 0h9.2m-4.6-4.6v9.2",
}

// A look distinguishes a series from the others.
type look struct {
	hue   int
	paper bool
	dash  string // of its line
}

// dashed returns the attribute of a line.
func (l look) dashed() string {
	if l.dash == "" {
		return ""
	}
	return ` stroke-dasharray="` + l.dash + `"`
}

// looks gives each series its look: a hue and marker of its own or its pair's.
func looks(series []*Series) []look {
	out := make([]look, len(series))
	pairs := map[int]int{}
	next := 0
	for i, s := range series {
		hue, known := pairs[s.Pair]
		if s.Pair == 0 || !known {
			hue = next
			next++
			pairs[s.Pair] = hue
		}
		l := look{hue: hue % len(colours), paper: s.Paper}
		switch {
		case s.Paper:
			l.dash = paperDash
		case s.Kind == Line || s.Kind == Steps || hue >= len(colours):
			l.dash = dashes[(hue+hue/len(colours))%len(dashes)]
		}
		out[i] = l
	}
	return out
}
