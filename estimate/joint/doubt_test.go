package joint

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Counts that are off by a third, at random: with Doubt saying so the
// intervals still cover, and a tenth of their width does not.
func TestDoubt(t *testing.T) {
	heavy(t)
	for _, name := range []string{"SDS", "LDS", "COLATE, counted"} {
		w := simulate(shapes[name], 31)
		rng := rand.New(rand.NewPCG(31, 31))
		w.Doubt = make([]float64, len(w.Packets))
		for f, n := range w.Packets {
			w.Doubt[f] = n / 3
			w.Packets[f] = n * (1 + (2*rng.Float64()-1)/math.Sqrt(3))
		}
		w.holds(t, name, w.solve(t, Options{}), 0.1)
	}
}
