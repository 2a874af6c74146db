package main

import (
	"math"
	"math/rand/v2"

	"github.com/hoplag/hoplag/lda/mplane"
)

// A place is where a router is drawn; x and y are from 0 to 1.
type place struct{ x, y float64 }

// layout places linked routers close to each other and others apart, with T.
// Fruchterman and E. Reingold's springs.
func layout(n *mplane.Network) []place {
	r := rand.New(rand.NewPCG(4, 0))
	at := make([]place, n.Routers())
	for i := range at {
		at[i] = place{r.Float64(), r.Float64()}
	}
	ideal := 0.75 / math.Sqrt(float64(len(at)))
	const steps = 400
	for step := range steps {
		force := make([]place, len(at))
		push := func(i, j int, strength func(distance float64) float64) {
			dx, dy := at[i].x-at[j].x, at[i].y-at[j].y
			d := max(math.Hypot(dx, dy), 1e-4)
			f := strength(d) / d
			force[i].x += dx * f
			force[i].y += dy * f
		}
		for i := range at {
			for j := range at {
				if i != j {
					push(i, j, func(d float64) float64 { return ideal * ideal / d })
				}
			}
			for _, l := range n.Links(mplane.Router(i)) {
				push(i, int(l.To), func(d float64) float64 { return -d * d / ideal })
			}
		}
		cool := 0.1 * (1 - float64(step)/steps)
		for i, f := range force {
			if size := math.Hypot(f.x, f.y); size > 0 {
				move := min(size, cool) / size
				at[i].x += f.x * move
				at[i].y += f.y * move
			}
		}
	}
	return fit(at)
}

// fit stretches places to fill the square.
func fit(at []place) []place {
	low, high := place{math.Inf(1), math.Inf(1)}, place{math.Inf(-1), math.Inf(-1)}
	for _, p := range at {
		low = place{min(low.x, p.x), min(low.y, p.y)}
		high = place{max(high.x, p.x), max(high.y, p.y)}
	}
	for i, p := range at {
		at[i] = place{(p.x - low.x) / max(high.x-low.x, 1e-9), (p.y - low.y) / max(high.y-low.y, 1e-9)}
	}
	return at
}
