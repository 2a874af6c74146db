package mplane

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/estimate"
)

// A path whose intervals are alike and independent is called slow in no more cases than Sure allows, whatever
// their law. Judging by the tails of single intervals, the control, is wrong more often. After a full history a
// fault that lasts for eight intervals is named.
func TestSureWhateverLaw(t *testing.T) {
	if testing.Short() {
		t.Skip("statistics that one goroutine makes")
	}
	const calls, segments, chance, fault = 300, 9, 2e3, 300e3
	most := int(calls*(1-sure) + 5*math.Sqrt(calls*(1-sure)*sure)) // five deviations of the binomial law
	for name, law := range map[string]func(*rand.Rand) (mean, deviation float64){
		"bursty": func(r *rand.Rand) (float64, float64) {
			if r.IntN(5) == 0 {
				return 100e3 + 200e3*r.ExpFloat64(), 200e3
			}
			return 100e3, 30e3
		},
		"rare": func(r *rand.Rand) (float64, float64) {
			if r.IntN(40) == 0 {
				return 400e3, 200e3
			}
			return 100e3, 30e3
		},
		"Pareto": func(r *rand.Rand) (float64, float64) { return 100e3 * math.Pow(1-r.Float64(), -1/2.5), 80e3 },
	} {
		for _, n := range []int{18, 64} {
			untrue, control, named := map[int]bool{}, map[int]bool{}, 0
			r := rand.New(rand.NewPCG(uint64(n), 5))
			for i := range calls * segments {
				call := i / segments
				var all []*value
				var means []float64
				for range n {
					mean, deviation := law(r)
					means = append(means, mean+chance*r.NormFloat64())
					all = append(all, inside(means[len(means)-1], deviation, chance))
				}
				if p, _ := new(Station).slow(all, kinds*segments); p.sure >= sure {
					untrue[call] = true
				}
				if n < 64 && len(control) <= most { // until they are too many
					_, _, student := excess(means[0], means[1:], chance, steady, kinds*segments)
					control[call] = control[call] || student >= sure
				} else if i%segments > 0 || n < 64 || named >= calls/2 {
					continue
				}
				for _, v := range all[:8] {
					v.Delay.Mean += fault
				}
				if p, _ := new(Station).slow(all, kinds*segments); p.sure >= sure {
					named++
				}
			}
			t.Logf("%s, %d intervals, %d calls: %d untrue, %d by single ones; %d name a fault", name, n, calls, len(untrue), len(control), named)
			if len(untrue) > most || n < 64 && len(control) <= most || n == 64 && named < calls/2 {
				t.Errorf("want at most %d untrue, more by single intervals, and a fault named in %d", most, calls/2)
			}
		}
	}
}

// inside returns the measurement of a segment inside a router.
func inside(mean, deviation, chance float64) *value {
	v := &value{known: true}
	v.Segment, v.Delay, v.Error = SegmentID{Via: 1}, estimate.Delay{Mean: mean, StdDev: deviation, N: 1}, chance
	return v
}
