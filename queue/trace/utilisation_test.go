package trace

import (
	"math"
	"testing"

	"github.com/hoplag/hoplag/queue"
)

// tLimit is the same for Student's t, by the first terms of its expansion in the normal quantile (Abramowitz
// and Stegun 26.7.5).
func tLimit(freedom float64) float64 {
	z := limit
	z3, z5 := z*z*z, z*z*z*z*z
	return z + (z3+z)/(4*freedom) + (5*z5+16*z3+3*z)/(96*freedom*freedom)
}

// utilisation is what a source offers over a time, of a link of 1 Gb/s.
func utilisation(source queue.Source, over int64) float64 {
	bytes := 0.0
	var p queue.Packet
	for source.Next(&p); p.Time < over; source.Next(&p) {
		bytes += float64(p.Bytes)
	}
	return bytes * 8 / float64(over)
}

// tScore returns by how many of its own standard errors the mean of x is off.
func tScore(x []float64, want float64) float64 {
	mean, squares := 0.0, 0.0
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		squares += (v - mean) * (v - mean)
	}
	n := float64(len(x))
	return (mean - want) / math.Sqrt(squares/(n-1)/n)
}

// The load is as asked for from the first packet on: many short runs with different seeds average to it.
func TestUtilisation(t *testing.T) {
	heavy(t)
	const seeds, over = 200, 20e6
	// Times on of a packet or two, looked at for a few packets' time: it would show if a packet were cut short
	// or the start were not stationary.
	const brief, briefSeeds = 200e3, 1500
	for _, load := range []float64{0.2, 0.88} {
		runs := map[string]func(seed uint64) queue.Source{
			"poisson": func(seed uint64) queue.Source { return must(NewPoisson(poissonOf(load, seed)))(t) },
			"onoff":   func(seed uint64) queue.Source { return must(NewOnOff(onOffOf(load, seed)))(t) },
			"flows":   func(seed uint64) queue.Source { return must(NewFlows(flowsOf(load, seed)))(t) },
		}
		score := func(run func(uint64) queue.Source, seeds uint64, over int64) float64 {
			var got []float64
			for seed := range seeds {
				got = append(got, utilisation(run(seed), over))
			}
			return tScore(got, load)
		}
		choppy := func(seed uint64) queue.Source {
			c := onOffOf(load, seed)
			c.On = 50e3
			return must(NewOnOff(c))(t)
		}
		if z := score(choppy, briefSeeds, brief); math.Abs(z) > tLimit(briefSeeds-1) {
			t.Errorf("short times on at %v: %.1f deviations off", load, z)
		}
		for name, run := range runs {
			if z := score(run, seeds, over); math.Abs(z) > tLimit(seeds-1) {
				t.Errorf("%s at %v: %.1f deviations off", name, load, z)
			}
		}
		cold := func(seed uint64) queue.Source {
			c := flowsOf(load, seed)
			c.Warmup = 0
			return must(NewFlows(c))(t)
		}
		if z := score(cold, seeds, over); math.Abs(z) <= tLimit(seeds-1) {
			t.Errorf("negative control: flows without warm-up at %v pass, %.1f deviations", load, z)
		}
	}
}
