package joint

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hoplag/hoplag/estimate"
)

// queueing makes a world's delays those of a queue: nine flows in ten wait some
// hundred nanoseconds, and one in ten some ten milliseconds, larger ones less.
func queueing(s shape, seed uint64) *world {
	w := simulate(s, seed)
	rng := rand.New(rand.NewPCG(seed, 21))
	clear(w.Sum)
	clear(w.Count)
	clear(w.truth)
	for f, packets := range w.Packets {
		wait := 200 * math.Exp(0.5*rng.NormFloat64())
		if rng.IntN(10) == 0 {
			wait = 1e7 * math.Exp(rng.NormFloat64()) / math.Sqrt(packets)
		}
		for range int(packets) {
			delay := 1000 + wait*rng.ExpFloat64()
			w.truth[f] += delay / packets
			for r := range s.rows {
				if s.rates == nil || rng.Float64() < s.rates[r] {
					c := w.run(f, r)[rng.IntN(s.perRow)]
					w.Sum[c] += delay
					if w.Count != nil {
						w.Count[c]++
					}
				}
			}
		}
	}
	return w
}

// Where delays are thousands of times apart, a prior of each flow's own has a
// tenth of the median error of one prior for all, and its intervals cover.
func TestQueues(t *testing.T) {
	heavy(t)
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			w := queueing(shape, 41)
			prior, err := w.EstimatePrior()
			if err != nil {
				t.Fatal(err)
			}
			one, own := w.solve(t, Options{Prior: &prior}), w.solve(t, Options{})
			for _, least := range []float64{1, 30} {
				a, b := w.medianError(own.Mean, least), w.medianError(one.Mean, least)
				t.Logf("%g packets and more: median error %.4g, with one prior %.4g", least, a, b)
				if a > b/10 {
					t.Errorf("%g packets and more: median error %g, with one prior %g", least, a, b)
				}
			}
			for _, class := range sizeClasses {
				part, n := w.covered(own, class[0], class[1])
				t.Logf("%g to %g packets: %.4f of %d flows", class[0], class[1], part, n)
				if part < lowestCoverage(n) {
					t.Errorf("95 %% intervals of flows of %g to %g packets cover %.4f of %d", class[0], class[1], part, n)
				}
			}
			// Control: intervals of a hundredth of the width.
			for f := range own.StdDev {
				own.StdDev[f] /= 100
			}
			if part, n := w.covered(own, 1, math.Inf(1)); part >= lowestCoverage(n) {
				t.Errorf("a hundredth of the width still covers %.4f of %d", part, n)
			}
		})
	}
}

// A guess is the delay above the least in cells of one flow each, whatever the
// clocks' offset.
func TestGuessAlone(t *testing.T) {
	for _, offset := range []float64{0, -5e6, 3e9} {
		p := Problem{
			Rows: 1, CellsPerRow: 2,
			Packets: []float64{1000, 1000, 1000},
			Cells:   []uint32{0, 1, 2, 3, 4, 5},
		}
		truth := []float64{1000, 1500, 2e6}
		for _, d := range truth {
			p.Sum = append(p.Sum, 500*(d+offset), 500*(d+offset))
			p.Count = append(p.Count, 500, 500)
		}
		q := weigh(&p)
		q.classify()
		g, err := q.guess(context.Background(), offset+7e5, q.expected(), -1, &progress{})
		if err != nil {
			t.Fatal(err)
		}
		for f, d := range truth {
			// Half a packet of a typical delay is added to a thousand packets.
			if got := g.base + g.above[f] - offset; math.Abs(got-d) > 1e-3*d+1 {
				t.Errorf("offset %g: flow %d: %g, want %g", offset, f, got, d)
			}
		}
		r, err := p.Solve(context.Background(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		for f, d := range truth {
			if got := r.Mean[f] - offset; math.Abs(got-d) > 4*r.StdDev[f] || math.Abs(got-d) > 0.05*d {
				t.Errorf("offset %g: flow %d: %g ± %g, want %g", offset, f, got, r.StdDev[f], d)
			}
		}
	}
}

// Where all delays are the same, or none is above 0, nothing is divided by 0.
func TestGuessOfNothing(t *testing.T) {
	for _, delay := range []float64{0, 4546, -70} {
		for _, counted := range []bool{true, false} {
			w := simulate(shape{flows: 50, columns: 40, rows: 2, perRow: 2, counted: true}, 9)
			for c, n := range w.Count {
				w.Sum[c] = delay * n
			}
			if !counted {
				w.Count = nil
			}
			r, err := w.Solve(context.Background(), Options{})
			if err != nil {
				t.Fatal(err)
			}
			if i := slices.IndexFunc(r.Mean, func(x float64) bool { return !finite(x) }); i >= 0 {
				t.Errorf("delay %g, counted %v: mean of flow %d is %g", delay, counted, i, r.Mean[i])
			}
			if i := slices.IndexFunc(r.StdDev, func(x float64) bool { return !finite(x) || x < 0 }); i >= 0 {
				t.Errorf("delay %g, counted %v: deviation of flow %d is %g", delay, counted, i, r.StdDev[i])
			}
			if counted && math.Abs(r.Mean[0]-delay) > 1 {
				t.Errorf("delay %g: %g", delay, r.Mean[0])
			}
		}
	}
}

// The deviations of flows of a class grow as halves are apart, and not below
// what they were.
func TestCheck(t *testing.T) {
	const flows = 200
	p := Problem{Rows: 1, CellsPerRow: 1, Packets: make([]float64, flows)}
	even := &guesses{above: make([]float64, flows), told: make([]float64, flows)}
	odd := &guesses{above: make([]float64, flows), told: make([]float64, flows)}
	deviation := make([]float64, flows)
	for f := range flows {
		p.Packets[f] = 1
		if f >= flows/2 {
			p.Packets[f] = 8
			even.above[f] = 1000
		}
		even.told[f], odd.told[f], deviation[f] = 1, 1, 10
	}
	q := weigh(&p)
	q.classify()
	q.check(even, odd, deviation)
	if deviation[0] != 10 {
		t.Errorf("halves that agree change a deviation of 10 to %g", deviation[0])
	}
	if want := 1000 / math.Sqrt2 / estimate.StudentQuantile(0.975, degrees); math.Abs(deviation[flows-1]-want) > 1e-9 {
		t.Errorf("halves apart by 1000: deviation %g, want %g", deviation[flows-1], want)
	}
}
