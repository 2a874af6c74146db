package main

import (
	"bytes"
	"fmt"
	"html"
	"math"

	"github.com/hoplag/hoplag/lda/mplane"
)

// The picture's sizes, in pixels.
const (
	wide, high = 900, 640
	margin     = 60
	apart      = 3.5 // between the two directions of a link
)

// shades is the number of colours for delays, from short to long.
const shades = 5

// sheet colours the picture for a light page and for a dark one. The shades
// are C. Brewer's single-hue blues, which also differ in lightness.
const sheet = `
text{font:11px system-ui,'Segoe UI',Helvetica,Arial,sans-serif;fill:#1f2328}
.page{fill:#fff}.router{stroke:#1f2328;stroke-width:1.5}.measures{fill:#1f2328}.other{fill:#fff}
.way{fill:none;stroke-width:2.5}.none{stroke:#d9dde3;stroke-width:1.5}.named{stroke:#d55e00;stroke-width:5}
.ring{fill:none;stroke:#d55e00;stroke-width:5}.true{fill:none;stroke:#1f2328;stroke-width:1.5;stroke-dasharray:3 3}
.d0{stroke:#bdd7e7}.d1{stroke:#8bbadb}.d2{stroke:#5a9bc9}.d3{stroke:#2b78b4}.d4{stroke:#0b4a86}
@media (prefers-color-scheme:dark){
text{fill:#e6e8eb}.page{fill:#16191d}.router{stroke:#e6e8eb}.measures{fill:#e6e8eb}.other{fill:#16191d}
.none{stroke:#3a4048}.true{stroke:#e6e8eb}.named,.ring{stroke:#f58447}
.d0{stroke:#274b6b}.d1{stroke:#2f6a9a}.d2{stroke:#4a8fc4}.d3{stroke:#7fb8e2}.d4{stroke:#cfe6f7}}
`

// A picture draws the map after an interval.
type picture struct {
	bytes.Buffer
	world *world
	at    []place
	named map[mplane.SegmentID]bool
	last  uint64
}

// picture draws the map of the last interval.
func (w *world) picture(last finding) []byte {
	p := &picture{world: w, at: layout(w.network), named: map[mplane.SegmentID]bool{}, last: last.interval}
	for _, s := range last.suspects {
		p.named[s.segment] = true
	}
	fmt.Fprintf(p, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img"><title>%s</title><style>%s</style>`,
		wide, high+60, "Delay of every segment of the network", sheet)
	fmt.Fprintf(p, `<rect class="page" width="%d" height="%d"/>`, wide, high+60)
	p.ways()
	p.routers()
	p.key()
	p.WriteString("</svg>\n")
	return p.Bytes()
}

func (p *picture) xy(r mplane.Router) (x, y float64) {
	return margin + p.at[r].x*(wide-2*margin), margin + p.at[r].y*(high-2*margin)
}

// ways draws each direction of each link, coloured by the delay of its
// segment. It draws named segments on top.
func (p *picture) ways() {
	classes := map[[2]mplane.Router]string{}
	for r := range mplane.Router(p.world.network.Routers()) {
		for _, l := range p.world.network.Links(r) {
			classes[[2]mplane.Router{r, l.To}] = "none"
		}
		for _, s := range p.world.plan.MSet(r) {
			class, ok := p.shade(s)
			for i := range s.Hops[1:] {
				link := [2]mplane.Router{s.Hops[i], s.Hops[i+1]}
				if ok && classes[link] != "named" && (classes[link] == "none" || class == "named" || class > classes[link]) {
					classes[link] = class
				}
			}
		}
	}
	for _, named := range []bool{false, true} {
		for r := range mplane.Router(p.world.network.Routers()) {
			for _, l := range p.world.network.Links(r) {
				if class := classes[[2]mplane.Router{r, l.To}]; (class == "named") == named {
					p.way(r, l.To, class)
				}
			}
		}
	}
}

// way draws one direction of a link, to the right of its middle.
func (p *picture) way(from, to mplane.Router, class string) {
	x1, y1 := p.xy(from)
	x2, y2 := p.xy(to)
	length := max(math.Hypot(x2-x1, y2-y1), 1)
	dx, dy := -(y2-y1)/length*apart, (x2-x1)/length*apart
	fmt.Fprintf(p, `<path class="way %s" d="M%.1f %.1fL%.1f %.1f"/>`, class, x1+dx, y1+dy, x2+dx, y2+dy)
}

// shade returns the colour of a segment, and whether anything passed it.
func (p *picture) shade(s mplane.Segment) (string, bool) {
	m := p.world.meters[s.ID]
	if p.named[s.ID] {
		return "named", true
	}
	if m == nil || m.shown == 0 {
		return "none", false
	}
	return fmt.Sprintf("d%d", shadeOf(m.shown)), true
}

// shadeOf returns the shade of a delay. Each is four times as long as the one
// before, from 100 µs.
func shadeOf(ns float64) int {
	return min(max(int(math.Log2(ns/100e3)/2), 0), shades-1)
}

// routers draws each router: full if it measures inside, with a ring if a way
// through it is named, dashed if it really is slow.
func (p *picture) routers() {
	for r := range mplane.Router(p.world.network.Routers()) {
		x, y := p.xy(r)
		class := "other"
		if p.world.plan.Upgraded(r) {
			class = "measures"
		}
		fmt.Fprintf(p, `<circle class="router %s" cx="%.1f" cy="%.1f" r="6"/>`, class, x, y)
		for _, id := range p.world.plan.Internal(r) {
			if p.named[id] {
				fmt.Fprintf(p, `<circle class="ring" cx="%.1f" cy="%.1f" r="10"/>`, x, y)
				break
			}
		}
		if r == p.world.slow {
			fmt.Fprintf(p, `<circle class="true" cx="%.1f" cy="%.1f" r="16"/>`, x, y)
		}
		if p.world.network.Routers() <= 60 {
			fmt.Fprintf(p, `<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`, x, y-12, html.EscapeString(p.world.network.Name(r)))
		}
	}
}

// key explains the colours.
func (p *picture) key() {
	x := float64(margin) / 2
	entry := func(draw func(x float64), text string) {
		draw(x)
		fmt.Fprintf(p, `<text x="%.1f" y="%d">%s</text>`, x+26, high+34, text)
		x += 36 + 6*float64(len([]rune(text)))
	}
	line := func(class string) func(float64) {
		return func(x float64) { fmt.Fprintf(p, `<path class="way %s" d="M%.1f %dh20"/>`, class, x, high+30) }
	}
	circle := func(class string, r int) func(float64) {
		return func(x float64) {
			fmt.Fprintf(p, `<circle class="%s" cx="%.1f" cy="%d" r="%d"/>`, class, x+10, high+30, r)
		}
	}
	for k, text := range []string{"to 0.4 ms", "to 1.6 ms", "to 6 ms", "to 26 ms", "longer"} {
		entry(line(fmt.Sprintf("d%d", k)), text)
	}
	entry(line("named"), "named")
	entry(circle("router measures", 6), "measures inside")
	entry(circle("router other", 6), "server beside")
	entry(circle("true", 9), "really slow")
}
