package lda

import (
	"math"
	"math/rand/v2"
	"testing"
)

// What a plan for quantiles and the default promise, they keep: no interval is
// refused, the mean is as sharp as was asked for, and the p99, or the default's
// p97, is bounded and right.
func TestPromises(t *testing.T) {
	demand := Demand{Packets: 1e5, HighLoss: 0.01, MeanError: 0.02, Confidence: 0.95, Variation: 1, GreatestDelay: 200e6, Quantiles: true}
	planned, err := Plan(demand)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name     string
		config   Config
		packets  int
		quantile float64
		delay    float64 // mean and deviation, ns
	}{
		{"planned", planned.Config, 1e5, 0.99, 20e6},
		{"default", DefaultConfig, 1e4, 0.97, 1e6}, {"default", DefaultConfig, 1e5, 0.97, 1e6}, {"default", DefaultConfig, 5e5, 0.97, 1e6},
	} {
		const runs = 10
		missed, wide, x := 0, 0, newRun(t, c.config)
		for seed := range uint64(runs) {
			x.pass(rand.New(rand.NewPCG(seed, 21)), c.packets, losing(0.01, exponentialDelay(c.delay)))
			r, err := Estimate(x.up, x.down)
			if err != nil {
				t.Fatalf("%s, %d packets: %v", c.name, c.packets, err)
			}
			if i := r.CentralLimitInterval(0.95); c.name == "planned" && (i.High-i.Low)/2 > demand.MeanError*r.Mean {
				wide++
			}
			d, err := Distribute(x.up, x.down)
			if err != nil {
				t.Fatal(err)
			}
			q, err := d.Quantile(c.quantile, 0.95)
			if err != nil {
				t.Errorf("%s, %d packets: %v", c.name, c.packets, err)
			} else if !q.Interval.Contains(-c.delay * math.Log(1-c.quantile)) {
				missed++
			}
		}
		// Of ten intervals of 95 % four or more miss once in a thousand times.
		if missed > 3 || wide > 1 {
			t.Errorf("%s, %d packets: %d of %d quantiles missed, %d means wider than planned", c.name, c.packets, missed, runs, wide)
		}
	}
}
