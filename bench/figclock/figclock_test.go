package figclock

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The simulated queue agrees with theory: with Poisson arrivals and exponential service, a packet waits
// load/(1−load) service times on average.
func TestQueue(t *testing.T) {
	set := usual
	set.load[0], set.loss = 0.5, 0
	r := newRoad(rand.New(rand.NewPCG(1, 2)), &set, 0)
	none := func(float64) float64 { return 0 }
	var wait, probed, probes float64
	for s := range 5 {
		delays := r.drive(float64(s+1)*second, []float64{(float64(s) + 0.25) * second, (float64(s) + 0.5) * second}, none)
		for _, d := range delays {
			probed += d
			probes++
		}
		wait += r.true / r.n / 5
	}
	service := second / set.packets * set.load[0]
	want := set.floor[0] + 2*jitter + service
	// 5e5 waits, correlated over some hundred packets.
	if e := math.Abs(wait - want); e > 0.05*service {
		t.Errorf("mean delay %.0f, want %.0f", wait, want)
	}
	if e := math.Abs(probed/probes - want); e > 5*(service+2*jitter)/math.Sqrt(probes) {
		t.Errorf("probes take %.0f, want %.0f", probed/probes, want)
	}
	if r.sum != r.true && math.Abs(r.sum-r.true) > 1 {
		t.Errorf("measured %v of %v with a clock that agrees", r.sum, r.true)
	}
}

// Means are off by half the difference of the queues, and cells are not. On an asymmetric path both are.
func TestMethods(t *testing.T) {
	set := usual
	set.load, set.packets, set.seconds, set.bursts = [2]float64{0.8, 0.2}, 2e4, 3, true
	rng := rand.New(rand.NewPCG(3, 4))
	o := measure(rng, set)
	if o.offset[means] < 20e3 || o.offset[ours] > 5e3 || o.excluded {
		t.Errorf("means off by %.0f ns, cells by %.0f; truth excluded: %v", o.offset[means], o.offset[ours], o.excluded)
	}
	set.floor = [2]float64{7e5, 5e5}
	if o = measure(rng, set); math.Abs(o.offset[ours]-1e5) > 5e3 || o.excluded {
		t.Errorf("an asymmetry of 200 µs: off by %.0f ns, want half of it; truth excluded: %v", o.offset[ours], o.excluded)
	}
}
