package rli

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/hashing"
)

// TestSizesOfFlows: each flow has packets of a size of its own, and all wait alike. No packet waits for its own
// size, so intervals hold whatever it is. The negative control estimates waits by the time left with the packet
// itself in it.
func TestSizesOfFlows(t *testing.T) {
	const packets, flows, rate, load = 150_000, 250, 1e8, 0.8
	for _, broken := range []bool{false, true} {
		random := rand.New(rand.NewPCG(1, 1))
		c := DefaultConfig
		c.Rate = rate
		r, err := NewReceiver(c)
		if err != nil {
			t.Fatal(err)
		}
		injector, err := NewInjector(InjectorConfig{Every: 13})
		if err != nil {
			t.Fatal(err)
		}
		free, now := 0.0, 0.0
		send := func(bytes int) int64 {
			free = max(free, now) + float64(bytes)*8e9/rate
			return int64(free)
		}
		sizes, sums, counts := [flows]int{}, [flows]float64{}, [flows]float64{}
		for f := range sizes {
			sizes[f] = 60 + 1200*f/flows
		}
		for range packets {
			now += random.ExpFloat64() * 660 * 8e9 / rate / load
			f := random.IntN(flows)
			departed := send(sizes[f])
			r.Update(hashing.Flow(f+1), sizes[f], departed)
			sums[f], counts[f] = sums[f]+float64(departed)-now, counts[f]+1
			if p, ok := injector.Packet(sizes[f], int64(now)); ok {
				r.Reference(p, send(c.ReferenceBytes))
			}
			if broken {
				r.sizes = trend{}
			}
		}
		r.Flush()
		outside := 0
		for f := range sizes {
			got, err := r.Estimate(hashing.Flow(f + 1))
			if err != nil {
				t.Fatal(err)
			}
			if !got.MeanInterval(0.95).Contains(sums[f] / counts[f]) {
				outside++
			}
		}
		// Three standard errors above 5 % of independent flows.
		if most := 0.05*flows + 3*math.Sqrt(0.05*0.95*flows); float64(outside) > most != broken {
			t.Errorf("broken %v: %d of %d flows outside, want at most %.0f of those that are not", broken, outside, flows, most)
		}
	}
}
