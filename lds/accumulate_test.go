package lds

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
)

// A passage is one packet's way between the points, in nanoseconds.
type passage struct {
	flow        int
	id          hashing.Packet
	sent, delay int64
	lost        bool
}

// A crossing is traffic of ten seconds of which packets cross the cuts by the
// clock, and what is true of its flows.
type crossing struct {
	keys    []hashing.Flow
	sent    []float64 // packets
	means   []float64 // of those that arrived, NaN for none
	passage []passage
}

// newCrossing draws flows of Pareto sizes that live for a part of the time,
// whose delays are a fifth of, once or four times the one given.
func newCrossing(flows int, delay, loss float64, seed uint64) *crossing {
	r := rand.New(rand.NewPCG(seed, 7))
	c := &crossing{sent: make([]float64, flows), means: make([]float64, flows)}
	for i := range flows {
		c.keys = append(c.keys, hashing.Flow(hashing.Word(seed, uint64(i))))
		mean := delay * []float64{0.2, 1, 4}[r.IntN(3)]
		n := int(min(20000, 2*math.Pow(1-r.Float64(), -1/1.1)))
		begin, length := 1e10*r.Float64(), min(1e10, 5e7*float64(n)*r.ExpFloat64()+2e8)
		var arrived, sum float64
		for range n {
			sent, took := int64(begin+r.Float64()*length), int64(mean*(0.7+0.3*r.ExpFloat64()))
			p := passage{i, hashing.Packet(r.Uint64()), sent, took, r.Float64() < loss}
			if p.sent >= 1e10 {
				continue
			}
			c.passage = append(c.passage, p)
			c.sent[i]++
			if !p.lost {
				arrived++
				sum += float64(p.delay)
			}
		}
		c.means[i] = sum / arrived
	}
	return c
}

// intervals are the packets of each point by the interval they pass it in.
func (c *crossing) intervals(length int64) (up, down [][]passage) {
	n := int(1e10/length) + 3
	up, down = make([][]passage, n), make([][]passage, n)
	for _, p := range c.passage {
		k := p.sent / length
		up[k] = append(up[k], p)
		if !p.lost {
			k = min((p.sent+p.delay)/length, int64(n-1))
			down[k] = append(down[k], p)
		}
	}
	return up, down
}

// accumulate adds the intervals of the given length.
func (c *crossing) accumulate(t testing.TB, config Config, length int64) *Accumulator {
	t.Helper()
	a, err := NewAccumulator(config)
	if err != nil {
		t.Fatal(err)
	}
	ups, downs := c.intervals(length)
	up, down := mustNew(t, config), mustNew(t, config)
	for k := range ups {
		up.Reset()
		down.Reset()
		for _, p := range ups[k] {
			up.Update(c.keys[p.flow], p.id, p.sent)
		}
		for _, p := range downs[k] {
			down.Update(c.keys[p.flow], p.id, p.sent+p.delay)
		}
		if err := a.Add(uint64(k), up, down); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

func accumulatedConfig() Config {
	return Config{Rows: 4, Columns: 1750, Spread: 1, Rates: [MaxRows]float64{1, 1, 1, 1}, SumBits: 48, DigestBits: 16}
}

// A flow that is alone in its cells is exact, over all packets, however many
// cross the cuts, and whatever its neighbours lose.
func TestAccumulatorIsExactAlone(t *testing.T) {
	for name, c := range shapes() {
		// All packets, a digest to match levels by, and room for all delays.
		c.DigestBits, c.SumBits = 16, 48
		for r := range c.Rows {
			c.Rates[r] = 1
		}
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(3, 3))
			one := &crossing{keys: []hashing.Flow{hashing.Flow(hashing.Word(9, 9))}}
			var sum float64
			for range 5000 {
				p := passage{0, hashing.Packet(r.Uint64()), r.Int64N(1e10), 1e6 + r.Int64N(1e8), false}
				one.passage = append(one.passage, p)
				sum += float64(p.delay)
			}
			for _, length := range []int64{1e10, 1e9, 1e8} {
				a := one.accumulate(t, c, length)
				got, err := a.Estimate(one.keys[0])
				counted := got.Sent == 5000 && got.Received == 5000 && got.Lost == 0
				if err != nil || !counted || math.Abs(got.Mean-sum/5000) > 0.005*sum/5000 || got.Share < 0.999 {
					t.Errorf("cut every %v ns: %+v, %v; want a mean of %v", length, got, err, sum/5000)
				}
			}
		})
	}
}

// answers are the relative errors of flows of at least so many packets, how
// many there are, and how many are in their 95 % intervals widened by a factor.
func (c *crossing) answers(a *Accumulator, least, factor float64) (errs []float64, flows, covered int) {
	for i, mean := range c.means {
		if c.sent[i] < least || math.IsNaN(mean) {
			continue
		}
		flows++
		r, err := a.Estimate(c.keys[i])
		if err != nil {
			continue
		}
		r.MeanError *= factor
		if r.MeanInterval(0.95).Contains(mean) {
			covered++
		}
		errs = append(errs, estimate.RelativeError(r.Mean, mean))
	}
	slices.Sort(errs)
	return errs, flows, covered
}

// Comparing often answers nearly all large flows where one comparison answers
// few, and intervals hold, by the clock, at every loss.
func TestAccumulatorUnderLoss(t *testing.T) {
	for _, test := range []struct{ loss, once, often, median float64 }{
		{0, 1, 1, 0.05}, {0.001, 0.9, 0.95, 0.06}, {0.01, 0.25, 0.85, 0.1}, {0.05, 0.02, 0.75, 0.2},
	} {
		t.Run(fmt.Sprint(test.loss), func(t *testing.T) {
			c := newCrossing(14_600, 5e6, test.loss, 11)
			rare := c.accumulate(t, accumulatedConfig(), 1e10)
			errs, flows, _ := c.answers(rare, 100, 1)
			if share := float64(len(errs)) / float64(flows); share > test.once {
				t.Errorf("one comparison answers %.3f of %d flows: nothing to gain", share, flows)
			}
			a := c.accumulate(t, accumulatedConfig(), 1e8)
			errs, flows, covered := c.answers(a, 100, 1)
			t.Logf("%d flows, %d answered, median error %.4f, %d covered", flows, len(errs), errs[len(errs)/2], covered)
			if share := float64(len(errs)) / float64(flows); share < test.often {
				t.Errorf("%.3f of %d flows answered", share, flows)
			}
			if median := errs[len(errs)/2]; median > test.median {
				t.Errorf("median error %.4f", median)
			}
			if least := 0.95 - 4*math.Sqrt(0.05*0.95/float64(len(errs))); float64(covered) < least*float64(len(errs)) {
				t.Errorf("%d of %d flows covered", covered, len(errs))
			}
			// Negative control: intervals of a tenth of the width.
			if _, _, covered := c.answers(a, 100, 0.1); float64(covered) >= 0.95*float64(len(errs)) {
				t.Errorf("%d of %d flows covered by a tenth of the interval", covered, len(errs))
			}
		})
	}
}

// A flow whose packets all were sent while its cells lost some has no answer,
// though its neighbours have.
func TestAccumulatorDoesNotSpeakForOthers(t *testing.T) {
	c := accumulatedConfig()
	c.Columns = 1
	a, err := NewAccumulator(c)
	if err != nil {
		t.Fatal(err)
	}
	busy, quiet := hashing.Flow(hashing.Word(1, 1)), hashing.Flow(hashing.Word(1, 2))
	for k := range uint64(10) {
		up, down := mustNew(t, c), mustNew(t, c)
		for i := range uint64(10) {
			up.Update(quiet, hashing.Word(k, i), 0)
			down.Update(quiet, hashing.Word(k, i), 5)
		}
		for i := range uint64(1000) {
			if k == 4 {
				up.Update(busy, hashing.Word(k, 100+i), 0)
			}
			if k == 4 && i != 500 {
				down.Update(busy, hashing.Word(k, 100+i), 1000)
			}
		}
		if err := a.Add(k, up, down); err != nil {
			t.Fatal(err)
		}
	}
	r, err := a.Estimate(busy)
	if !errors.Is(err, estimate.ErrNoSamples) || r.Share >= leastShare {
		t.Errorf("%+v, %v", r, err)
	}
	if r.Lost != 1 || r.Sent != 1100 || r.Received != 1099 {
		t.Errorf("%d lost of %d, %d received", r.Lost, r.Sent, r.Received)
	}
}

// What an Accumulator was told in another order, or of other sizes, or twice,
// it refuses, and is as before.
func TestAccumulatorRefuses(t *testing.T) {
	c := accumulatedConfig()
	a, err := NewAccumulator(c)
	if err != nil {
		t.Fatal(err)
	}
	up, down := fill(t, c, packets(81, 300, 20))
	f := hashing.Flow(hashing.Word(1, 0))
	if _, err := a.Estimate(f); !errors.Is(err, estimate.ErrNoSamples) {
		t.Errorf("nothing added: %v", err)
	}
	if err := a.Add(7, up, down); err != nil {
		t.Fatal(err)
	}
	before, err := a.Estimate(f)
	if err != nil {
		t.Fatal(err)
	}
	other := c
	other.Columns++
	for _, n := range []uint64{7, 6, 0} {
		if err := a.Add(n, up, down); !errors.Is(err, estimate.ErrOrder) {
			t.Errorf("interval %d after 7: %v", n, err)
		}
	}
	if err := a.Add(8, up, mustNew(t, other)); !errors.Is(err, estimate.ErrMismatch) {
		t.Errorf("another Config: %v", err)
	}
	after, err := a.Estimate(f)
	if diff := cmp.Diff(before, after); diff != "" || err != nil {
		t.Errorf("a refused interval changed the answer (-before +after), %v:\n%s", err, diff)
	}
	if _, err := NewAccumulator(Config{}); !errors.Is(err, estimate.ErrConfig) {
		t.Error(err)
	}
}

// Intervals may be missing: what passed in those there are still counts.
func TestAccumulatorGap(t *testing.T) {
	c := newCrossing(100, 5e6, 0, 12)
	config := accumulatedConfig()
	ups, downs := c.intervals(1e8)
	a, err := NewAccumulator(config)
	if err != nil {
		t.Fatal(err)
	}
	for k := range ups {
		if k >= 40 && k < 50 {
			continue
		}
		up, down := mustNew(t, config), mustNew(t, config)
		for _, p := range ups[k] {
			up.Update(c.keys[p.flow], p.id, p.sent)
		}
		for _, p := range downs[k] {
			down.Update(c.keys[p.flow], p.id, p.sent+p.delay)
		}
		if err := a.Add(uint64(k), up, down); err != nil {
			t.Fatal(err)
		}
	}
	if added, missing := a.Intervals(); added != uint64(len(ups)-10) || missing != 10 {
		t.Errorf("%d added, %d missing", added, missing)
	}
	// An answer is of the packets that both points saw in intervals that are not
	// missing.
	sums, seen := make([]float64, len(c.keys)), make([]float64, len(c.keys))
	for _, p := range c.passage {
		if first, last := p.sent/1e8, (p.sent+p.delay)/1e8; last < 40 || first >= 50 {
			sums[p.flow] += float64(p.delay)
			seen[p.flow]++
		}
	}
	for i, f := range c.keys {
		r, err := a.Estimate(f)
		if truth := sums[i] / seen[i]; err == nil && math.Abs(r.Mean-truth) > 4*r.MeanError+1e-6*truth {
			t.Errorf("flow %d: %+v, want %v", i, r, truth)
		}
	}
}

// Ten thousand intervals take no more memory than ten, and the first still
// count. Reset is as new.
func TestAccumulatorStaysAsItIs(t *testing.T) {
	c := accumulatedConfig()
	c.Columns = 50
	a, err := NewAccumulator(c)
	if err != nil {
		t.Fatal(err)
	}
	size := a.MemorySize()
	f := hashing.Flow(hashing.Word(2, 2))
	up, down := mustNew(t, c), mustNew(t, c)
	fillOne := func(k uint64) {
		up.Reset()
		down.Reset()
		up.Update(f, hashing.Word(1, k), int64(k))
		if k%7 != 6 {
			down.Update(f, hashing.Word(1, k), int64(k+100))
		}
		if err := a.Add(k, up, down); err != nil {
			t.Fatal(err)
		}
	}
	first := Result{}
	for round := range 2 {
		for k := range uint64(10_000) {
			fillOne(k)
		}
		r, err := a.Estimate(f)
		counted := r.Sent == 10_000 && r.Lost <= 10_000/7+1 && r.Lost >= 10_000/7-1
		if err != nil || !counted || r.Mean != 100 || r.Share < 0.8 || a.MemorySize() != size {
			t.Errorf("%+v, %v, %d bytes", r, err, a.MemorySize())
		}
		if round == 0 {
			first = r
			a.Reset()
		} else if diff := cmp.Diff(first, r); diff != "" {
			t.Errorf("after Reset (-before +after):\n%s", diff)
		}
	}
	if n := testing.AllocsPerRun(10, func() { _, _ = a.Estimate(f) }); n > 0 {
		t.Errorf("Estimate allocates %v times", n)
	}
	if n := testing.AllocsPerRun(10, func() { a.last++; _ = a.Add(a.last+1, up, down) }); n > 1 {
		t.Errorf("Add allocates %v times", n)
	}
}

// Joint decoding of accumulated intervals is better than reading cells, answers
// no fewer flows, and its intervals hold.
func TestAccumulatorDecode(t *testing.T) {
	for _, loss := range []float64{0, 0.01} {
		var errs, read []float64
		large, covered, narrow := 0, 0, 0
		for seed := range uint64(4) {
			c := newCrossing(14_600, 5e6, loss, 13+seed)
			a := c.accumulate(t, accumulatedConfig(), 1e8)
			r, err := a.Decode(t.Context(), records(c.keys, c.sent), joint.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for i, mean := range c.means {
				if c.sent[i] < 100 || math.IsNaN(mean) {
					continue
				}
				large++
				if r.Usable[i] == 0 {
					continue
				}
				errs = append(errs, estimate.RelativeError(r.Mean[i], mean))
				if r.MeanInterval(i, 0.95).Contains(mean) {
					covered++
				}
				r.StdDev[i] /= 10 // the negative control
				if r.MeanInterval(i, 0.95).Contains(mean) {
					narrow++
				}
			}
			alone, _, _ := c.answers(a, 100, 1)
			read = append(read, alone...)
		}
		slices.Sort(errs)
		slices.Sort(read)
		t.Logf("loss %g: %d of %d flows, median error %.4f, covered %d; Estimate %d, %.4f",
			loss, len(errs), large, errs[len(errs)/2], covered, len(read), read[len(read)/2])
		if len(errs) < len(read)-large/50 || errs[len(errs)/2] > read[len(read)/2] {
			t.Error("no better than Estimate")
		}
		if least := 0.95 - 4*math.Sqrt(0.05*0.95/float64(len(errs))); float64(covered) < least*float64(len(errs)) {
			t.Errorf("%d of %d covered", covered, len(errs))
		}
		if float64(narrow) >= 0.95*float64(len(errs)) {
			t.Errorf("%d of %d covered by a tenth of the interval", narrow, len(errs))
		}
	}
}
