package trace

import (
	"math"
	"testing"

	"github.com/hoplag/hoplag/queue"
)

// Pareto times on and off make traffic that averaging over longer times does
// not smooth as it does Poisson's: the variance of the mean falls with the
// time m as m^-(shape-1), not as 1/m.
func TestOnOffIsBursty(t *testing.T) {
	heavy(t)
	const seeds = 60
	slope := func(source queue.Source) float64 {
		const fine, windows, coarse = 10e6, 1 << 10, 1 << 5
		counts := make([]float64, windows)
		var p queue.Packet
		for source.Next(&p); p.Time < 1e18+fine*windows; source.Next(&p) {
			counts[(p.Time-1e18)/fine] += float64(p.Bytes)
		}
		spread := func(m int) float64 {
			var means []float64
			for i := 0; i < windows; i += m {
				sum := 0.0
				for _, n := range counts[i : i+m] {
					sum += n / float64(m)
				}
				means = append(means, sum)
			}
			mean, squares := 0.0, 0.0
			for _, v := range means {
				mean += v / float64(len(means))
			}
			for _, v := range means {
				squares += (v - mean) * (v - mean)
			}
			return squares / float64(len(means)-1)
		}
		return math.Log(spread(coarse)/spread(1)) / math.Log(coarse)
	}
	score := func(run func(seed uint64) queue.Source) float64 {
		var slopes []float64
		for seed := range uint64(seeds) {
			slopes = append(slopes, slope(run(seed)))
		}
		return tScore(slopes, -1)
	}
	z := score(func(seed uint64) queue.Source { return must(NewOnOff(onOffOf(0.02, seed)))(t) })
	if z < tLimit(seeds-1) {
		t.Errorf("on-off traffic is only %.1f deviations from smoothing like Poisson", z)
	}
	if z := score(func(seed uint64) queue.Source { return must(NewPoisson(poissonOf(0.02, seed)))(t) }); z > tLimit(seeds-1) {
		t.Errorf("negative control: Poisson traffic passes for bursty, %.1f deviations", z)
	}
}
