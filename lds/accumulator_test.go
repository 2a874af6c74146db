package lds

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

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
		if err := a.Add(int64(k)*length, int64(k+1)*length, up, down); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

// shared is traffic of flows of uneven sizes through one queue that drops its tail: the
// delay is what the queue holds, bursts fill it, and what comes then is lost.
func shared(flows int, rate, capacity float64, seed uint64) *crossing {
	r := rand.New(rand.NewPCG(seed, 5))
	c := &crossing{sent: make([]float64, flows), means: make([]float64, flows)}
	sizes := make([]float64, flows)
	total := 0.0
	for i := range flows {
		c.keys = append(c.keys, hashing.Flow(hashing.Word(seed, uint64(i))))
		total += min(2*math.Pow(1-r.Float64(), -1/1.1), 20000)
		sizes[i] = total
	}
	sums, arrived := make([]float64, flows), make([]float64, flows)
	queue, now, burst, until := 0.0, 0.0, 1.0, 0.0
	for {
		if now > until {
			burst = 0.6 + 0.8*r.Float64()
			until = now + 2e8*r.ExpFloat64()
		}
		step := r.ExpFloat64() * 1e9 / (rate * burst)
		if now += step; now >= 1e10 {
			break
		}
		queue = max(0, queue-step)
		i, _ := slices.BinarySearch(sizes, r.Float64()*total)
		p := passage{i, hashing.Packet(r.Uint64()), int64(now), int64(queue) + 1e5, queue > capacity}
		if !p.lost {
			queue += 1e9 / rate
			sums[i] += float64(p.delay)
			arrived[i]++
		}
		c.passage = append(c.passage, p)
		c.sent[i]++
	}
	for i := range sums {
		c.means[i] = sums[i] / arrived[i]
	}
	return c
}

func accumulatedConfig() Config {
	c := DefaultConfig
	c.Columns = 1750
	return c
}

// A score is how many large flows have an answer, the median of their errors and of the
// signed ones, and how many of their means are in intervals, and in those of a tenth.
type score struct{ flows, answered, covered, narrow, median, signed float64 }

// judge scores answers: a mean, and the scale of its error.
func (c *crossing) judge(least float64, answer func(i int) (mean float64, within estimate.Interval, ok bool)) (s score) {
	var errs, signed []float64
	for i, want := range c.means {
		if c.sent[i] < least || math.IsNaN(want) {
			continue
		}
		s.flows++
		mean, within, ok := answer(i)
		if !ok {
			continue
		}
		s.answered++
		signed, errs = append(signed, mean/want-1), append(errs, math.Abs(mean/want-1))
		if within.Contains(want) {
			s.covered++
		}
		if math.Abs(mean-want) < (within.High-within.Low)/20 {
			s.narrow++
		}
	}
	slices.Sort(errs)
	slices.Sort(signed)
	s.median, s.signed = errs[len(errs)/2], signed[len(signed)/2]
	return s
}

func (c *crossing) read(a *Accumulator, least float64) score {
	return c.judge(least, func(i int) (float64, estimate.Interval, bool) {
		r, err := a.Estimate(c.keys[i])
		return r.Mean, r.MeanInterval(0.95), err == nil
	})
}

func (c *crossing) decode(t testing.TB, a *Accumulator, least float64) score {
	r, err := a.Decode(t.Context(), records(c.keys, c.sent), joint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c.judge(least, func(i int) (float64, estimate.Interval, bool) {
		return r.Mean[i], r.MeanInterval(i, 0.95), r.Usable[i] > 0
	})
}

// Large flows have answers, and intervals that hold, whether losses are even or those of
// a queue that drops its tail, which causes no bias. Comparing often helps, or does not
// harm.
func TestAccumulatorUnderLoss(t *testing.T) {
	skipShort(t)
	for _, test := range []struct {
		name                            string
		traffic                         *crossing
		answered, read, decoded, signed float64
	}{
		{"none", newCrossing(14_600, 5e6, 0, 11), 1, 0.13, 0.06, 0.02},
		{"0.1 %", newCrossing(14_600, 5e6, 0.001, 11), 0.99, 0.14, 0.08, 0.03},
		{"1 %", newCrossing(14_600, 5e6, 0.01, 11), 0.98, 0.19, 0.11, 0.09},
		{"5 %", newCrossing(14_600, 5e6, 0.05, 11), 0.97, 0.31, 0.16, 0.13},
		{"a full queue", shared(2000, 50_000, 20e6, 3), 0.98, 0.08, 0.08, 0.06},
	} {
		few := test.traffic.decode(t, test.traffic.accumulate(t, accumulatedConfig(), 1e9), 100)
		a := test.traffic.accumulate(t, accumulatedConfig(), 1e8)
		read, decoded := test.traffic.read(a, 100), test.traffic.decode(t, a, 100)
		t.Logf("%s: read %+v, decoded %+v, by 10 comparisons %+v", test.name, read, decoded, few)
		if read.answered < test.answered*read.flows || read.median > test.read || decoded.median > test.decoded {
			t.Errorf("%s: read %+v, decoded %+v", test.name, read, decoded)
		}
		if math.Abs(decoded.signed) > test.signed {
			t.Errorf("%s: a bias of %.3f", test.name, decoded.signed)
		}
		if decoded.median > 1.1*few.median+0.002 {
			t.Errorf("%s: a median of %.4f by a hundred comparisons, %.4f by ten", test.name, decoded.median, few.median)
		}
		for _, s := range []score{read, decoded} {
			if least := 0.95 - 4*math.Sqrt(0.05*0.95/s.answered); s.covered < least*s.answered {
				t.Errorf("%s: %v of %v in their intervals", test.name, s.covered, s.answered)
			}
			if s.narrow >= 0.95*s.answered { // the negative control
				t.Errorf("%s: %v of %v in a tenth of their intervals", test.name, s.narrow, s.answered)
			}
		}
	}
}

// tick adds an interval of a millisecond in which so many packets of a flow pass, each
// for 100 ns, but for the first ones, which are lost.
func tick(t testing.TB, a *Accumulator, k, packets, lost int64) {
	t.Helper()
	up, down := mustNew(t, a.config), mustNew(t, a.config)
	for i := range packets {
		p, at := hashing.Word(uint64(k), uint64(i)), k*1e6+i*1000
		up.Update(7, p, at)
		if i >= lost {
			down.Update(7, p, at+100)
		}
	}
	if err := a.Add(k*1e6, (k+1)*1e6, up, down); err != nil {
		t.Fatal(err)
	}
}

func mustAccumulate(t testing.TB, c Config) *Accumulator {
	t.Helper()
	a, err := NewAccumulator(c)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// What is outstanding may be lost, and is once a patience has passed: half as long again
// as packets take, by cuts, and not some number of intervals. After a Reset it is not
// counted again; and a Gap forgets what was on its way.
func TestLossesAreTold(t *testing.T) {
	a := mustAccumulate(t, lossless)
	holds := func(what string, sent, overdue, lost uint64) {
		t.Helper()
		r, err := a.Estimate(7)
		if r.Sent != sent || r.Overdue != overdue || r.Lost != lost || err != nil || math.Abs(r.Mean-100) > 3*r.MeanError+1e-6 {
			t.Errorf("%s: %+v, %v; want %d sent, %d to %d lost", what, r, err, sent, overdue, lost)
		}
	}
	for k := range int64(10) {
		tick(t, a, k, 10, 0)
	}
	holds("none lost", 100, 0, 0)
	tick(t, a, 10, 10, 2)
	holds("two of late", 110, 0, 2)
	for k := int64(11); k < 15; k++ {
		tick(t, a, k, 10, 0)
	}
	holds("two lost", 150, 2, 2)
	a.Reset()
	tick(t, a, 15, 10, 0)
	holds("after Reset", 10, 0, 0)
	a.Gap()
	for k := int64(20); k < 25; k++ {
		tick(t, a, k, 10, 0)
	}
	holds("after a Gap", 60, 0, 0)
	for k := int64(30); k < 35; k++ { // five are missing
		tick(t, a, k, 10, 0)
	}
	holds("after a pause", 110, 0, 0)
}

// A packet that comes after a report told that it was lost is taken back from the losses of
// the report in which it comes, and so is the time for which it was on its way: all reports
// together have the time of all packets, up to an interval.
func TestLatePacketIsTakenBack(t *testing.T) {
	a := mustAccumulate(t, lossless)
	const slow, sent, comes = hashing.Packet(77), int64(3e6 + 5), int64(20e6 + 9)
	var time, received float64
	report := func(from, to int64, least, most uint64) {
		t.Helper()
		for k := from; k < to; k++ {
			up, down := mustNew(t, lossless), mustNew(t, lossless)
			for i := range int64(10) {
				p, at := hashing.Word(uint64(k), uint64(i)), k*1e6+i*1000
				up.Update(7, p, at)
				down.Update(7, p, at+100)
			}
			if sent/1e6 == k {
				up.Update(7, slow, sent)
			}
			if comes/1e6 == k {
				down.Update(7, slow, comes)
			}
			if err := a.Add(k*1e6, (k+1)*1e6, up, down); err != nil {
				t.Fatal(err)
			}
		}
		r, err := a.Estimate(7)
		if err != nil || r.Overdue != least || r.Lost != most {
			t.Errorf("%d to %d ms: %+v, %v; want %d to %d lost", from, to, r, err, least, most)
		}
		time += r.Mean * float64(r.Received)
		received += float64(r.Received)
		a.Reset()
	}
	report(0, 10, 1, 1)
	report(10, 30, 0, 0)
	if want := 300*100 + float64(comes-sent); received != 301 || math.Abs(time-want) > 1e6 {
		t.Errorf("%v received took %v, want 301 and %v", received, time, want)
	}
}

// What an Accumulator was told in another order, or of other sizes, or twice, it
// refuses, and is as before; and without packets it has no answer.
func TestAccumulatorRefuses(t *testing.T) {
	a := mustAccumulate(t, lossless)
	if _, err := a.Estimate(7); !errors.Is(err, estimate.ErrNoSamples) {
		t.Errorf("nothing added: %v", err)
	}
	tick(t, a, 7, 10, 0)
	before, _ := a.Estimate(7)
	up, other := mustNew(t, lossless), lossless
	other.Columns++
	for want, err := range map[error]error{
		estimate.ErrOrder:    errors.Join(a.Add(7e6, 8e6, up, up), a.Add(0, 1e6, up, up), a.Add(9e6, 8e6, up, up)),
		estimate.ErrMismatch: a.Add(8e6, 9e6, up, mustNew(t, other)),
	} {
		if !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
	if after, _ := a.Estimate(7); after != before {
		t.Errorf("a refused interval changed %+v to %+v", before, after)
	}
	if _, err := NewAccumulator(Config{}); !errors.Is(err, estimate.ErrConfig) {
		t.Error(err)
	}
}

// Thousands of intervals allocate nothing, and the first still count.
func TestAccumulatorStaysAsItIs(t *testing.T) {
	c := lossless
	c.Columns = 50
	a := mustAccumulate(t, c)
	for k := range int64(3000) {
		tick(t, a, k, 3, (k+1)%7/6)
	}
	r, err := a.Estimate(7)
	if err != nil || r.Sent != 9000 || r.Received != 9000-3000/7 || r.Lost < 3000/7 || math.Abs(r.Mean-100) > 3*r.MeanError {
		t.Errorf("%+v, %v", r, err)
	}
	up, k := mustNew(t, c), int64(3000)
	if n := testing.AllocsPerRun(10, func() { k++; _ = a.Add(k*1e6, (k+1)*1e6, up, up); _, _ = a.Estimate(7) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
