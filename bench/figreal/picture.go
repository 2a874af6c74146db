package figreal

import (
	"bytes"
	"fmt"
	"math"
)

// A curve is what is exact, drawn as a line, and what was measured, as marks with bars.
type curve struct {
	name     string
	exact    [][2]float64 // x and y
	measured [][4]float64 // x, y and the ends of the bar
}

// hues are of a light page and of a dark one; the marks differ by shape, too.
var hues = [2][2]string{{"#0072b2", "#4aa8e8"}, {"#d55e00", "#f58447"}}

// The places of a picture's axes, in pixels.
const (
	left, right = 54.0, 692.0
	top, bottom = 37.0, 367.0
)

// drawing returns two curves over time as an SVG, legible on a light and a dark page.
func drawing(title, x, y string, curves [2]curve) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 720 440" width="720" height="440">
<title>%s</title>
<style>svg{font:12px system-ui,'Segoe UI',Helvetica,Arial,sans-serif}.title{font-size:14px;font-weight:600}
.line{fill:none;stroke-width:2}.bar{fill:none;stroke-width:1.2;opacity:.8}%s
@media screen and (prefers-color-scheme:dark){%s}</style>
<rect class="page" width="720" height="440"/>
<text class="title" x="%g" y="23">%s</text>
`, title, sheet(0, "#1f2328", "#d9dde3", "#ffffff"), sheet(1, "#e6e8eb", "#3a4048", "#16191d"), left, title)
	var ends [2]float64
	for _, c := range curves {
		for _, p := range c.exact {
			ends = [2]float64{max(ends[0], p[0]), max(ends[1], p[1])}
		}
		for _, p := range c.measured {
			ends = [2]float64{max(ends[0], p[0]), max(ends[1], p[3])}
		}
	}
	across := func(v float64) float64 { return left + (right-left)*v/ends[0]/1.04 }
	up := func(v float64) float64 { return bottom - (bottom-top)*v/ends[1]/1.04 }
	for _, v := range ticks(ends[0]) {
		fmt.Fprintf(&out, `<path class="grid" d="M%.1[1]f %[2]gV%[3]g"/><text x="%.1[1]f" y="384" text-anchor="middle">%[4]g</text>`+"\n",
			across(v), bottom, top, v)
	}
	for _, v := range ticks(ends[1]) {
		fmt.Fprintf(&out, `<path class="grid" d="M%[2]g %.1[1]fH%[3]g"/><text x="46" y="%.1[1]f" dy="4" text-anchor="end">%[4]g</text>`+"\n",
			up(v), left, right, v)
	}
	fmt.Fprintf(&out, `<text x="%g" y="402" text-anchor="middle">%s</text>`+"\n", (left+right)/2, x)
	fmt.Fprintf(&out, `<text x="20" y="%[1]g" text-anchor="middle" transform="rotate(-90 20 %[1]g)">%[2]s</text>`+"\n", (top+bottom)/2, y)
	for i, c := range curves {
		for k, p := range c.exact {
			begin := "L"
			if k == 0 {
				begin = fmt.Sprintf(`<path class="line s%d" d="M`, i)
			}
			fmt.Fprintf(&out, "%s%.1f %.1f", begin, across(p[0]), up(p[1]))
		}
		fmt.Fprintln(&out, `"/>`)
		for _, p := range c.measured {
			fmt.Fprintf(&out, `<path class="bar s%d" d="M%.1f %.1fV%.1f"/>`+"\n", i, across(p[0]), up(p[2]), up(p[3]))
			mark(&out, i, across(p[0]), up(p[1]))
		}
		at := left + 330*float64(i)
		fmt.Fprintf(&out, `<path class="line s%d" d="M%g 422h30"/><text x="%g" y="426">%s, exact</text>`+"\n", i, at, at+36, c.name)
		mark(&out, i, at+170, 422)
		fmt.Fprintf(&out, `<text x="%g" y="426">%s, LDA</text>`+"\n", at+182, c.name)
	}
	fmt.Fprintln(&out, "</svg>")
	return out.Bytes()
}

func mark(out *bytes.Buffer, i int, x, y float64) {
	shape := [2]string{"m-3.6 0a3.6 3.6 0 1 0 7.2 0a3.6 3.6 0 1 0-7.2 0", "m-3.5-3.5h7v7h-7z"}[i]
	fmt.Fprintf(out, `<path class="f%d" d="M%.1f %.1f%s"/>`+"\n", i, x, y, shape)
}

// sheet returns the colours of a light page, 0, or a dark one, 1.
func sheet(dark int, ink, faint, page string) string {
	css := fmt.Sprintf("text{fill:%s}.grid{stroke:%s}.page{fill:%s}", ink, faint, page)
	for i, hue := range hues {
		css += fmt.Sprintf(".s%d{stroke:%s}.f%d{fill:%s}", i, hue[dark], i, hue[dark])
	}
	return css
}

// ticks returns round numbers from 0 to an end, four to ten of them.
func ticks(end float64) (all []float64) {
	step := math.Pow(10, math.Floor(math.Log10(end)))
	for _, part := range []float64{0.1, 0.2, 0.5} {
		if 8*part*step >= end {
			step *= part
			break
		}
	}
	for v := 0.0; v <= end*1.04; v += step {
		all = append(all, v)
	}
	return all
}
