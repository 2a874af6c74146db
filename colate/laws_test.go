package colate

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/traffic"
)

// laws are ways to delay packets that nothing here was made for. Each delays a
// packet of the n-th flow, sent at some time.
var laws = map[string]func(rng *rand.Rand, flow int, sent int64) float64{
	"lognormal, σ = 2": func(rng *rand.Rand, flow int, _ int64) float64 {
		return 20_000 * float64(1+flow%7) * math.Exp(2*rng.NormFloat64())
	},
	"one in 10,000 a thousand times slower": func(rng *rand.Rand, flow int, _ int64) float64 {
		d := 50_000 * float64(1+flow%3)
		if rng.IntN(10_000) == 0 {
			d *= 1000
		}
		return d
	},
	"bursts": func(rng *rand.Rand, flow int, sent int64) float64 {
		d := 30_000 * (1 + rng.ExpFloat64())
		if sent/3_000_000%5 == 0 {
			d += float64(sent % 3_000_000) // a queue that grows for 3 ms
		}
		return d
	},
	"microseconds, and tens of milliseconds": func(rng *rand.Rand, flow int, _ int64) float64 {
		if flow%10 == 0 {
			return 3e6 * rng.ExpFloat64()
		}
		return 2000 + 100*rng.Float64()
	},
	"all alike": func(*rand.Rand, int, int64) float64 { return 200_000 },
	"as long as an epoch": func(rng *rand.Rand, flow int, _ int64) float64 {
		return 5e6 * rng.ExpFloat64() * float64(1+flow%3)
	},
}

// underLaw delays traffic by a law, and loses what it loses: evenly, or in
// bursts in which packets are slow.
func underLaw(all []passage, law func(*rand.Rand, int, int64) float64, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 3))
	number := map[hashing.Flow]int{}
	for i := range all {
		p := &all[i]
		if _, ok := number[p.Flow]; !ok {
			number[p.Flow] = len(number)
		}
		p.At = p.Sent + int64(law(rng, number[p.Flow], p.Sent))
	}
}

// Intervals hold whatever the law of delays, and whatever part is lost, or
// there is no answer.
func TestLaws(t *testing.T) {
	if testing.Short() {
		t.Skip("statistics of one goroutine, which take long")
	}
	for name, law := range laws {
		for _, loss := range []float64{0, 0.01, 0.3} {
			all := traffic.Flows(31, 5000)
			underLaw(all, law, 5)
			w := world{config: cutAt(4e6), loss: loss, seed: 8}
			epochs, arrived := w.cut(t, all)
			list := traffic.Truths(arrived, 30)
			list = list[:min(len(list), 120)]
			hits, n := w.follow(t, epochs, recordsOf(list)).held(t, list, 0, math.Inf(1))
			t.Logf("%s, %v lost: %d of %d intervals hold, %d flows without an answer", name, loss, hits, n, len(list)-n)
			if float64(hits) < 0.95*float64(n)-shortfall(n, 0.95) {
				t.Errorf("%s, %v lost: %d of %d intervals hold", name, loss, hits, n)
			}
		}
	}
}
