package lds

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/hashing"
)

// alive makes a crossing of flows by a law, whose delays are twenty times as long,
// each for a part of ten seconds.
func (l law) alive(flows int, loss float64) *crossing {
	r := rand.New(rand.NewPCG(3, 9))
	c := &crossing{}
	for i := range flows {
		n, delay := l(r)
		begin := 1e10 * r.Float64()
		length := min(1e10-begin, 5e7*float64(n)*r.ExpFloat64()+2e8)
		c.keys, c.sent = append(c.keys, hashing.Flow(hashing.Word(31, uint64(i)))), append(c.sent, float64(n))
		var sum, arrived float64
		for range n {
			at, took := int64(begin+length*r.Float64()), int64(20*delay())
			p := passage{i, hashing.Packet(r.Uint64()), at, took, r.Float64() < loss || at+took > 1.2e10}
			c.passage = append(c.passage, p)
			if !p.lost {
				sum += float64(took)
				arrived++
			}
		}
		c.means = append(c.means, sum/arrived)
	}
	return c
}

// MeanInterval of an Accumulator holds under laws that it was not made for, with
// packets of tails that reach over many intervals, whether flows are spread or not.
func TestAccumulatorIntervalOfOtherLaws(t *testing.T) {
	plain, spread := DefaultConfig, DefaultConfig
	spread.Spread, spread.Rates = 5, [MaxRows]float64{1, 1, 1, 1}
	for _, name := range []string{
		"lognormal packets", "one in 10,000 a thousand times slower", "large flows are fast", "lognormal flows",
	} {
		c := laws[name].alive(2000, 0.01)
		holds := func(config Config, columns int) {
			config.Columns = columns
			t.Run(fmt.Sprintf("%s/%d×%d", name, config.Spread, columns), func(t *testing.T) {
				c.intervalsHold(t, c.accumulate(t, config, 1e8))
			})
		}
		holds(plain, 300)
		holds(spread, 1500)
		holds(spread, 4500)
	}
}

// intervalsHold holds the intervals of all flows to their means, by the power of
// ten of their packets.
func (c *crossing) intervalsHold(t *testing.T, a *Accumulator) {
	for k := range 4 {
		flows, covered, narrow := 0.0, 0.0, 0.0
		for i, f := range c.keys {
			if min(int(math.Log10(c.sent[i])), 3) != k || math.IsNaN(c.means[i]) {
				continue
			}
			r, err := a.Estimate(f)
			if err != nil {
				continue
			}
			flows++
			if r.MeanInterval(0.95).Contains(c.means[i]) {
				covered++
			}
			r.MeanError /= 200 // the negative control
			if r.MeanInterval(0.95).Contains(c.means[i]) {
				narrow++
			}
		}
		t.Logf("class %d: %.3f of %.0f", k, covered/flows, flows)
		if least := 0.95 - 4*math.Sqrt(0.05*0.95/flows); covered < least*flows {
			t.Errorf("class %d: %.3f of %.0f covered", k, covered/flows, flows)
		}
		if flows > 100 && narrow >= 0.95*flows {
			t.Errorf("class %d: intervals a two-hundredth as wide cover %.3f", k, narrow/flows)
		}
	}
}
