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
// a table for few flows, for many, and for a tenth of them; and where only flows lose that take
// ten times as long as the others, and are farther apart.
func TestTableIntervalsHold(t *testing.T) {
	for _, test := range []struct {
		flows  int
		loss   float64
		differ bool
	}{
		{50, 0.005, false}, {50, 0.03, false}, {50, 0.1, false}, {1000, 0.005, false}, {1000, 0.03, false}, {1000, 0.1, false},
		{5000, 0, false}, {5000, 0.01, false}, {500, 0.1, true}, {5000, 0, true}, // where delays rise
	} {
		answers, outside, narrow := 0, 0, 0
		for seed := range uint64(5) {
			sent, received, truth := lossyTables(t, rand.New(rand.NewPCG(seed, 2)), test.flows, test.loss, test.differ)
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
		share := float64(answers) / 20
		if float64(outside) > share+2*math.Sqrt(share) { // one in forty at most, by chance
			t.Errorf("%+v: the intervals do not hold", test)
		}
		if test.loss > 0 && !test.differ && answers > 100 && narrow*20 < answers {
			t.Errorf("%+v: neither would it tell if they were too narrow", test)
		}
		if answers < 10 {
			t.Errorf("%+v: %d answers", test, answers)
		}
	}
}

func lossyTables(
	t *testing.T, random *rand.Rand, flows int, loss float64, differ bool,
) (sent, received *Table, truth map[hashing.Flow]*estimate.Moments) {
	c := DefaultTableConfig
	if flows > 1000 {
		c.Flows = 512
	}
	tables := [2]*Table{newTable(t, c), newTable(t, c)}
	truth = map[hashing.Flow]*estimate.Moments{}
	for i := range flows {
		f, of := hashing.Flow(random.Uint64()), new(estimate.Moments)
		truth[f] = of
		n := int64(min(2000, 4/random.Float64()))
		for k := range n {
			p, at, delay := hashing.Packet(random.Uint64()), random.Int64N(1e9), 1_000_000+random.Int64N(1e6)
			if differ && loss == 0 {
				delay = 1e6 + k*4e8/n
			} else if differ && i%5 == 0 {
				delay = 50e6 + int64(5e6*random.ExpFloat64())
			} else if !differ && random.IntN(30) == 0 {
				delay = 200e6
			}
			tables[0].Update(f, p, at)
			if differ && i%5 > 0 || random.Float64() >= loss {
				tables[1].Update(f, p, at+delay)
				of.Add(float64(delay))
			}
		}
	}
	return tables[0], tables[1], truth
}
