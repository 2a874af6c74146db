package trace

import (
	"math"
	"testing"

	"github.com/hoplag/hoplag/queue"
)

// Poisson packets arrive independently, so that the variance of their number in a given time is its mean,
// however long that is. Pareto times on and off make bursts of all lengths: the longer the time, the more the
// number varies.
func TestDispersion(t *testing.T) {
	heavy(t)
	const fine, windows, coarse, seeds = 10e6, 1 << 10, 1 << 5, 60
	dispersion := func(counts []float64, m int) float64 { // variance over mean
		sum, squares := 0.0, 0.0
		for i := 0; i < windows; i += m {
			n := 0.0
			for _, c := range counts[i : i+m] {
				n += c
			}
			sum, squares = sum+n, squares+n*n
		}
		n := float64(windows / m)
		return (squares - sum*sum/n) / (n - 1) / (sum / n)
	}
	score := func(run func(seed uint64) queue.Source) (one, growth float64) {
		var at, grown []float64
		for seed := range uint64(seeds) {
			counts := make([]float64, windows)
			var p queue.Packet
			for source := run(seed); source.Next(&p) && p.Time < fine*windows; {
				counts[(p.Time)/fine]++
			}
			at = append(at, dispersion(counts, 1))
			grown = append(grown, math.Log(dispersion(counts, coarse)/dispersion(counts, 1)))
		}
		return tScore(at, 1), tScore(grown, 0)
	}
	most := tLimit(seeds - 1)
	one, growth := score(func(seed uint64) queue.Source { return must(NewPoisson(poissonOf(0.02, seed)))(t) })
	if math.Abs(one) > most || growth > most {
		t.Errorf("Poisson packets vary by other than their mean, %.1f deviations, and more over longer times, %.1f", one, growth)
	}
	one, growth = score(func(seed uint64) queue.Source { return must(NewOnOff(onOffOf(0.02, seed)))(t) })
	if math.Abs(one) < most || growth < most {
		t.Errorf("on–off packets vary by their mean, %.1f deviations, or no more over longer times, %.1f", one, growth)
	}
}
