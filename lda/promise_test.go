package lda

import (
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/hashing"
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
		missed, wide := 0, 0
		for seed := range uint64(runs) {
			rng := rand.New(rand.NewPCG(seed, 21))
			up, down := mustNewFor(t, c.config), mustNewFor(t, c.config)
			quantile := c.delay * 3.5065579 // ln(1/0.03)
			if c.quantile == 0.99 {
				quantile = c.delay * 4.6051702
			}
			for i := range c.packets {
				p, now, d := hashing.Packet(rng.Uint64()), int64(i)*1000, c.delay*rng.ExpFloat64()
				if up.Update(p, now); rng.Float64() >= 0.01 {
					down.Update(p, now+int64(d))
				}
			}
			r, err := Estimate(up, down)
			if err != nil {
				t.Fatalf("%s, %d packets: %v", c.name, c.packets, err)
			}
			if i := r.CentralLimitInterval(0.95); c.name == "planned" && (i.High-i.Low)/2 > demand.MeanError*r.Mean {
				wide++
			}
			d, err := Distribute(up, down)
			if err != nil {
				t.Fatal(err)
			}
			q, err := d.Quantile(c.quantile, 0.95)
			if err != nil {
				t.Errorf("%s, %d packets: %v", c.name, c.packets, err)
			} else if !q.Interval.Contains(quantile) {
				missed++
			}
		}
		// Of ten intervals of 95 % four or more miss once in a thousand times.
		if missed > 3 || wide > 1 {
			t.Errorf("%s, %d packets: %d of %d quantiles missed, %d means wider than planned", c.name, c.packets, missed, runs, wide)
		}
	}
}
