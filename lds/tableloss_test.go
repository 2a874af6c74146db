package lds

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// A flow that lost packets is known by a sample of its packets, and one that was admitted
// late by those that came since. Its interval holds although one packet in thirty is slow, in
// a table for few flows, for many, and for a tenth of them.
func TestTableIntervalsHold(t *testing.T) {
	for flows, losses := range map[int][]float64{50: {0.005, 0.03, 0.1}, 1000: {0.005, 0.03, 0.1}, 5000: {0, 0.01}} {
		for _, loss := range losses {
			answers, outside, narrow := 0, 0, 0
			for seed := range uint64(8) {
				sent, received, truth := lossyTables(t, rand.New(rand.NewPCG(seed, 2)), flows, loss)
				for f, delays := range truth {
					r, err := EstimateTable(sent, received, f)
					i := r.MeanInterval(0.95)
					if err != nil || r.MeanError < 1 || !i.Bounded() || delays.N() < 30 {
						continue
					}
					answers++
					if !i.Contains(delays.Mean()) {
						outside++
					}
					if off := delays.Mean() - r.Mean; off > r.MeanError/2 || off < -r.MeanError/2 {
						narrow++
					}
				}
			}
			t.Logf("%d flows, %g lost: %d of %d outside, of intervals with a sixth of the width %d", flows, loss, outside, answers, narrow)
			share := float64(answers) / 20
			if float64(outside) > share+2*math.Sqrt(share) { // one in forty at most, by chance
				t.Error("the intervals do not hold")
			}
			if loss > 0 && answers > 100 && narrow*20 < answers {
				t.Error("neither would it tell if they were too narrow")
			}
			if answers == 0 && (flows > 50 || loss < 0.1) {
				t.Error("nothing is answered")
			}
		}
	}
}

func lossyTables(
	t *testing.T, random *rand.Rand, flows int, loss float64,
) (sent, received *Table, truth map[hashing.Flow]*estimate.Moments) {
	c := DefaultTableConfig
	if flows > 1000 {
		c.Flows = 512
	}
	tables := [2]*Table{newTable(t, c), newTable(t, c)}
	truth = map[hashing.Flow]*estimate.Moments{}
	for range flows {
		f, of := hashing.Flow(random.Uint64()), new(estimate.Moments)
		truth[f] = of
		for range int(min(2000, 4/random.Float64())) {
			p, at, delay := hashing.Packet(random.Uint64()), random.Int64N(1e9), 1_000_000+random.Int64N(1e6)
			if random.IntN(30) == 0 {
				delay = 200e6
			}
			tables[0].Update(f, p, at)
			if random.Float64() >= loss {
				tables[1].Update(f, p, at+delay)
				of.Add(float64(delay))
			}
		}
	}
	return tables[0], tables[1], truth
}
