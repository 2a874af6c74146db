package trace

import (
	"math"
	"testing"

	"github.com/hoplag/hoplag/queue"
)

// Counts of Poisson arrivals in equal windows have a variance equal to their
// mean; those of evenly spaced packets do not.
func TestPoissonDispersion(t *testing.T) {
	const windows, perWindow = 5000, 40
	check := func(source queue.Source, window float64) float64 {
		counts := make([]float64, windows)
		var p queue.Packet
		for source.Next(&p); ; source.Next(&p) {
			i := int(float64(p.Time-1e18) / window)
			if i >= windows {
				break
			}
			counts[i]++
		}
		sum := 0.0
		for _, n := range counts {
			sum += (n - perWindow) * (n - perWindow) / perWindow
		}
		return (sum - windows) / math.Sqrt(windows*(2+1.0/perWindow)) // the variance of a Poisson variable's squared score
	}
	poisson := must(NewPoisson(poissonOf(0.5, 3)))(t)
	if z := check(poisson, perWindow*poisson.gap); math.Abs(z) > limit {
		t.Errorf("counts are %.1f deviations from Poisson", z)
	}
	var even []queue.Packet
	for i := range windows*perWindow + 1 {
		even = append(even, queue.Packet{Time: 1e18 + int64(i)*1000})
	}
	even[len(even)-1].Time += 1e9
	if z := check(&replay{even}, perWindow*1000); math.Abs(z) <= limit {
		t.Errorf("negative control: evenly spaced packets pass, %.1f deviations", z)
	}
}

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

// replay is a source of packets in memory.
type replay struct{ left []queue.Packet }

func (r *replay) Next(p *queue.Packet) bool {
	if len(r.left) == 0 {
		return false
	}
	*p, r.left = r.left[0], r.left[1:]
	return true
}
