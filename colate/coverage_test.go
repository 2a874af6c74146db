package colate

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// shortfall is how far below n·p a binomial number may fall with a
// probability of 10⁻⁴.
func shortfall(n int, p float64) float64 {
	return -estimate.NormalQuantile(1e-4) * math.Sqrt(float64(n)*p*(1-p))
}

// Intervals hold for as many flows as they say, of every size, with counts and
// without. The paper's, from the same counters, are the negative control.
func TestIntervalCoverage(t *testing.T) {
	all := traffic(1, 15_000)
	for name, c := range map[string]Config{"plain": plainConfig, "counted": countedConfig, "paper": paperConfig} {
		t.Run(name, func(t *testing.T) {
			up, down := recorded(t, c, all)
			q := newQuery(t, up.Current(), down.Current())
			check := func(name string, hits, n int) bool {
				t.Logf("%s: %.1f %% of %d flows", name, 100*float64(hits)/float64(n), n)
				return float64(hits) >= Confidence*float64(n)-shortfall(n, Confidence)
			}
			for _, least := range []uint64{2, 50} {
				list := truths(all, least)
				list = list[:min(len(list), 1000)]
				ours, linear, papers := 0, 0, 0
				for _, f := range list {
					r := q.estimate(f)
					if r.Interval.Contains(f.mean) {
						ours++
					}
					if r.LinearInterval.Contains(f.mean) {
						linear++
					}
					if c.TimeBits == 0 {
						continue
					}
					i, err := Theorem2Interval(q.up, q.down, f.packets, Confidence)
					if err != nil {
						t.Fatal(err)
					}
					if i.Contains(f.mean) {
						papers++
					}
				}
				if !check("ours", ours, len(list)) || !check("of Theorem 2, ours", linear, len(list)) {
					t.Errorf("flows of %d packets or more: too few intervals hold", least)
				}
				if c.TimeBits != 0 && check("of Theorem 2, the paper's", papers, len(list)) {
					t.Errorf("flows of %d packets or more: the paper's interval passes, so the test tests nothing", least)
				}
			}
		})
	}
}

// Intervals hold for flows of fewer packets than counters too, however slow
// they were. A trimmed mean, which cuts off just the counters that their packets
// are in, is the negative control.
func TestFewSlowPackets(t *testing.T) {
	all := traffic(4, 15_000)
	rng := rand.New(rand.NewPCG(4, 2))
	var slow []truth
	for i := range 500 {
		f := truth{flow: hashing.Flow(rng.Uint64()), packets: 1, mean: 0.5e9}
		sent := int64(i) * 10_000
		all = append(all, passage{f.flow, hashing.Packet(rng.Uint64()), sent, sent + int64(f.mean)})
		slow = append(slow, f)
	}
	up, down := recorded(t, plainConfig, all)
	q := newQuery(t, up.Current(), down.Current())
	ours, trimmed := 0, 0
	for _, f := range slow {
		if q.estimate(f).Interval.Contains(f.mean) {
			ours++
		}
		c, err := compare(q.up, q.down)
		if err != nil {
			t.Fatal(err)
		}
		noise, err := c.background()
		if err != nil {
			t.Fatal(err)
		}
		var own, counts [MaxPerFlow]float64
		e := estimator{&c, 1 / float64(plainConfig.PerFlow), noise}
		if _, i := e.trimmed(own[:c.delays(0, own[:], counts[:])]); i.Contains(f.mean) {
			trimmed++
		}
	}
	t.Logf("%d and %d of %d intervals hold", ours, trimmed, len(slow))
	least := Confidence*float64(len(slow)) - shortfall(len(slow), Confidence)
	if float64(ours) < least {
		t.Errorf("%d of %d intervals hold, want %.0f", ours, len(slow), least)
	}
	if float64(trimmed) >= least {
		t.Errorf("%d of %d intervals of trimmed means hold, so the test tests nothing", trimmed, len(slow))
	}
}
