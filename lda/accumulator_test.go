package lda

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// A cutRun is traffic that two points see in intervals that clocks cut, and the
// truth about the packets received in them.
type cutRun struct {
	up, down []*Aggregator
	truth    estimate.Moments
	lost     uint64
}

const cutInterval = 100_000_000 // ns

// cut makes a run of Poisson traffic of so many packets an interval on average.
// The delay and the loss of a packet may depend on when it was sent.
func cutBy(t *testing.T, c Config, intervals int, packets float64, seed uint64, delay, loss func(r *rand.Rand, at float64) float64) cutRun {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 5))
	run := cutRun{up: make([]*Aggregator, intervals), down: make([]*Aggregator, intervals)}
	for i := range intervals {
		run.up[i], run.down[i] = mustNewFor(t, c), mustNewFor(t, c)
	}
	end := float64(intervals) * cutInterval
	for now := 0.0; now < end; now += r.ExpFloat64() * cutInterval / packets {
		p, sent := hashing.Packet(r.Uint64()), int64(now)
		run.up[sent/cutInterval].Update(p, sent)
		if r.Float64() < loss(r, now) {
			run.lost++
			continue
		}
		received := sent + int64(delay(r, now))
		if k := int(received / cutInterval); k < intervals {
			run.down[k].Update(p, received)
			run.truth.Add(float64(received - sent))
		}
	}
	return run
}

func always(x float64) func(*rand.Rand, float64) float64 {
	return func(*rand.Rand, float64) float64 { return x }
}

func exponential(mean float64) func(*rand.Rand, float64) float64 {
	return func(r *rand.Rand, _ float64) float64 { return mean * r.ExpFloat64() }
}

func accumulate(t *testing.T, c Config, run *cutRun) *Accumulator {
	t.Helper()
	a, err := NewAccumulator(c)
	if err != nil {
		t.Fatal(err)
	}
	for i := range run.up {
		if err := a.Add(uint64(i), run.up[i], run.down[i]); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

// small is for the tests of an Accumulator that few packets an interval suit.
var small = Config{Banks: [MaxBanks]Bank{{Rows: 512, Shift: 0}, {Rows: 256, Shift: 3}}, SumBits: 64, DigestBits: 16}

// Without a loss every packet counts in the end, though one in ten crosses a
// cut; comparing interval by interval leaves them out, and with them the slow
// ones.
func TestCrossingSpoilsNothing(t *testing.T) {
	run := cutBy(t, small, 40, 2000, 1, exponential(cutInterval/10), always(0))
	// An end without traffic, for what is on its way.
	for range 40 {
		run.up, run.down = append(run.up, mustNewFor(t, small)), append(run.down, mustNewFor(t, small))
	}
	a := accumulate(t, small, &run)
	r, err := a.Estimate()
	if err != nil {
		t.Fatal(err)
	}
	if i := r.MeanInterval(0.99); !near(r.Mean, run.truth.Mean(), 0.003) || !i.Contains(run.truth.Mean()) ||
		float64(r.N) < 0.97*float64(r.Received) {
		t.Errorf("%+v, interval %+v, want a mean of %v of all packets", r, i, run.truth.Mean())
	}
	if got := float64(r.Crossed) / float64(r.Received); got < 0.05 || got > 0.105 {
		t.Errorf("%.3f of the packets crossed a cut at least, of a tenth", got)
	}
	var sum, n float64
	for i := range run.up {
		if e, err := Estimate(run.up[i], run.down[i]); err == nil {
			sum += e.Mean * float64(e.N)
			n += float64(e.N)
		}
	}
	if biased := sum / n; biased > 0.95*run.truth.Mean() {
		t.Errorf("interval by interval the mean is %v, of %v: nothing is tried", biased, run.truth.Mean())
	}
}

// The interval of the mean holds the truth under losses that spare no cell for
// long, though slow packets are spared less often.
func TestAccumulatedCoverage(t *testing.T) {
	lognormal := func(r *rand.Rand, _ float64) float64 { return 4e6 * math.Exp(1.5*r.NormFloat64()-1.125) }
	congested := func(at float64) bool { return int(at/(5*cutInterval))%2 == 1 }
	for name, c := range map[string]struct {
		delay, loss func(*rand.Rand, float64) float64
	}{
		"exponential, 5 %":  {exponential(5e6), always(0.05)},
		"lognormal, 5 %":    {lognormal, always(0.05)},
		"exponential, 20 %": {exponential(5e6), always(0.2)},
		"slow where many are lost": {
			func(r *rand.Rand, at float64) float64 {
				if congested(at) {
					return 4e6 + 8e6*r.ExpFloat64()
				}
				return 1e6 * r.ExpFloat64()
			},
			func(_ *rand.Rand, at float64) float64 {
				if congested(at) {
					return 0.15
				}
				return 0
			}},
	} {
		const runs = 40
		var mean, plain covered
		var relative estimate.Moments
		for seed := range uint64(runs) {
			run := cutBy(t, small, 40, 4000, seed, c.delay, c.loss)
			a := accumulate(t, small, &run)
			r, err := a.Estimate()
			if err != nil {
				t.Fatal(err)
			}
			mean.add(r.MeanInterval(0.99).Contains(run.truth.Mean()))
			relative.Add(r.Mean/run.truth.Mean() - 1)
			if r.Lost > run.lost+run.lost/50 || r.Lost+r.Outstanding < run.lost {
				t.Errorf("%s: %d lost and %d outstanding, want %d", name, r.Lost, r.Outstanding, run.lost)
			}
			// Negative control: groups as they come, whatever they stand for.
			var sum, n float64
			for i := range run.up {
				if e, err := Estimate(run.up[i], run.down[i]); err == nil {
					sum += e.Mean * float64(e.N)
					n += float64(e.N)
				}
			}
			plain.add(estimate.NormalInterval(estimate.Delay{Mean: sum / n, StdDev: r.StdDev, N: uint64(n)}, 0.99).Contains(run.truth.Mean()))
		}
		// Of 40 intervals of 99 % five miss once in 10^5 series.
		if mean.hits < runs-4 {
			t.Errorf("%s: mean covered %d times of %d, off by %+.2f %% on average", name, mean.hits, runs, 100*relative.Mean())
		}
		if bias, tolerance := relative.Mean(), 0.01+sigmas*math.Sqrt(relative.Variance()/runs); math.Abs(bias) > tolerance {
			t.Errorf("%s: mean off by %+.2f %% on average, tolerance %.2f %%", name, 100*bias, 100*tolerance)
		}
		if plain.hits > runs*9/10 {
			t.Errorf("%s: interval by interval the mean is covered %d times of %d, too", name, plain.hits, runs)
		}
	}
}

// Comparing often makes the most of heavy loss: many times the sample of one
// comparison over the whole time.
func TestComparingOftenMultipliesTheSample(t *testing.T) {
	run := cutBy(t, small, 50, 2000, 3, always(1000), always(0.2))
	a := accumulate(t, small, &run)
	often, err := a.Estimate()
	if err != nil {
		t.Fatal(err)
	}
	up, down := mustNewFor(t, small), mustNewFor(t, small)
	for i := range run.up {
		up.Merge(run.up[i])
		down.Merge(run.down[i])
	}
	once, _ := Estimate(up, down)
	if often.N < 10*max(once.N, 100) {
		t.Errorf("sample of %d packets, at once %d", often.N, once.N)
	}
}

// Missing intervals, a restart and another sampling cost what is around them.
func TestGaps(t *testing.T) {
	run := cutBy(t, small, 60, 2000, 4, exponential(2e6), always(0.01))
	whole := accumulate(t, small, &run)
	want, err := whole.Estimate()
	if err != nil {
		t.Fatal(err)
	}
	a, _ := NewAccumulator(small)
	other := small
	other.Banks[1].Shift = 5
	tuned := cutBy(t, other, 60, 2000, 4, exponential(2e6), always(0.01))
	for i := range run.up {
		up, down := run.up[i], run.down[i]
		switch {
		case i == 5 || i == 6 || i == 50:
			continue
		case i >= 20 && i < 30:
			up, down = tuned.up[i], tuned.down[i]
		case i == 40:
			a.Gap()
		}
		if err := a.Add(uint64(i), up, down); err != nil {
			t.Fatal(err)
		}
	}
	got, err := a.Estimate()
	if err != nil || !got.MeanInterval(0.999).Contains(run.truth.Mean()) || float64(got.N) < 0.7*float64(want.N) {
		t.Errorf("with gaps %+v, %v, without %+v", got, err, want)
	}
	// A gap closes the books: what was on its way is in no number.
	if missing := float64(want.Lost) - float64(got.Lost); math.Abs(missing) > 0.3*float64(want.Lost) {
		t.Errorf("with gaps %d lost, without %d", got.Lost, want.Lost)
	}
}

func TestAccumulatorRefuses(t *testing.T) {
	a, _ := NewAccumulator(small)
	up, down := pair(t, small, traffic(1, 0, 3000, 0.01, 0))
	if _, err := a.Estimate(); !errors.Is(err, estimate.ErrNoSamples) {
		t.Errorf("nothing: %v", err)
	}
	if err := a.Add(7, up, down); err != nil {
		t.Fatal(err)
	}
	before, _ := a.Estimate()
	wide := small
	wide.SumBits = 40
	for want, f := range map[error]func() error{
		estimate.ErrOrder:    func() error { return a.Add(7, up, down) },
		estimate.ErrMismatch: func() error { return a.Add(8, mustNewFor(t, wide), mustNewFor(t, wide)) },
	} {
		if err := f(); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
	if err := a.Add(8, up, mustNewFor(t, wide)); !errors.Is(err, estimate.ErrMismatch) {
		t.Error(err)
	}
	if after, _ := a.Estimate(); after != before {
		t.Errorf("refused intervals made %+v of %+v", after, before)
	}
	if _, err := NewAccumulator(Config{}); !errors.Is(err, estimate.ErrConfig) {
		t.Error(err)
	}
}

// Reports that follow one another have each packet in one of them.
func TestResetBeginsTheNextReport(t *testing.T) {
	run := cutBy(t, small, 40, 2000, 6, exponential(5e6), always(0))
	whole := accumulate(t, small, &run)
	want, _ := whole.Estimate()
	a, _ := NewAccumulator(small)
	var packets, received uint64
	var sum float64
	for i := range run.up {
		if err := a.Add(uint64(i), run.up[i], run.down[i]); err != nil {
			t.Fatal(err)
		}
		if i%10 == 9 {
			r, err := a.Estimate()
			if err != nil {
				t.Fatal(err)
			}
			packets += r.N
			received += r.Received
			sum += r.Mean * float64(r.Received)
			a.Reset()
		}
	}
	if packets != want.N || received != want.Received || !near(sum/float64(received), want.Mean, 0.01) {
		t.Errorf("reports of %d packets and mean %v, want %d and %v", packets, sum/float64(received), want.N, want.Mean)
	}
}

func TestAccumulatorAllocatesNothing(t *testing.T) {
	run := cutBy(t, small, 2, 2000, 8, exponential(5e6), always(0.05))
	a := accumulate(t, small, &run)
	interval := uint64(10)
	if n := testing.AllocsPerRun(50, func() {
		interval++
		if err := a.Add(interval, run.up[0], run.down[0]); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Estimate(); err != nil {
			t.Fatal(err)
		}
		a.Reset()
	}); n != 0 {
		t.Errorf("%v allocations an interval", n)
	}
}

// The quantiles of many intervals rest on thousands of packets, and hold.
func TestAccumulatedQuantiles(t *testing.T) {
	misses := 0
	for seed := range uint64(10) {
		run := cutBy(t, small, 30, 2000, seed, exponential(5e6), always(0.05))
		d := accumulate(t, small, &run).Distribution()
		for _, p := range []float64{0.5, 0.9, 0.99} {
			q, err := d.Quantile(p, 0.99)
			if err != nil {
				t.Fatal(err)
			}
			if q.Samples < 400 || q.Samples > reservoirSize {
				t.Errorf("%d samples", q.Samples)
			}
			if !q.Interval.Contains(-5e6 * math.Log(1-p)) {
				misses++
			}
		}
	}
	if misses > 2 {
		t.Errorf("%d of 30 intervals of 99 %% miss the quantile", misses)
	}
	few := newDistribution([]float64{1, 2, 3})
	if _, err := few.Quantile(0.99, 0.95); !errors.Is(err, estimate.ErrNoSamples) {
		t.Errorf("p99 of three delays: %v", err)
	}
	if q, err := newDistribution(make([]float64, 100)).Quantile(0.5, 0.95); err != nil || q.Samples != 100 {
		t.Errorf("median of 100 delays: %+v, %v", q, err)
	}
}

// Intervals with few packets have more of them alone; a busy interval counts by
// its packets all the same.
func TestQuantilesOfUnequalIntervals(t *testing.T) {
	for _, intervals := range []int{20, 100} { // the reservoir is not full, and full
		a, _ := NewAccumulator(small)
		rng := rand.New(rand.NewPCG(1, 2))
		light := 0
		for k := range intervals {
			up, down := mustNewFor(t, small), mustNewFor(t, small)
			packets, delay := 2400, int64(10_000)
			if k%2 == 1 {
				packets, delay = 300, 1000
			}
			for i := range packets {
				p := hashing.Packet(rng.Uint64())
				up.Update(p, int64(i))
				down.Update(p, int64(i)+delay)
			}
			samples, _ := AppendSamples(nil, up, down)
			light += len(samples) * (k % 2)
			if err := a.Add(uint64(k), up, down); err != nil {
				t.Fatal(err)
			}
		}
		e := a.Distribution().Empirical()
		want := 300.0 / 2700
		got := e.CDF(5000)
		if tolerance := 5 * math.Sqrt(want*(1-want)/float64(e.N())); e.N() < 200 || math.Abs(got-want) > tolerance+0.02 {
			t.Errorf("%d intervals: %.3f of %d delays are of light ones, want %.3f", intervals, got, e.N(), want)
		}
		// Negative control: all that were alone.
		if raw := float64(light) / float64(light+intervals/2*alonePerBusy(t)); raw < 2*want {
			t.Errorf("%.3f of all alone are of light intervals: nothing is tried", raw)
		}
	}
}

// alonePerBusy is how many of 2,400 packets are alone, about.
func alonePerBusy(t *testing.T) int {
	t.Helper()
	return int(small.Expect(2400, 0).Alone)
}

// A Result survives JSON with its intervals, and infinite ones can be written.
func TestResultInJSON(t *testing.T) {
	up, down := pair(t, DefaultConfig, traffic(3, 1, 30_000, 0.01, 0))
	r, err := Estimate(up, down)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back Result
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, back); diff != "" {
		t.Errorf("through JSON (-before +after):\n%s", diff)
	}
	if r.MeanInterval(0.98) != back.MeanInterval(0.98) || r.DeviationInterval(0.98) != back.DeviationInterval(0.98) ||
		!back.MeanInterval(0.98).Bounded() {
		t.Errorf("interval %+v became %+v", r.MeanInterval(0.98), back.MeanInterval(0.98))
	}
	if _, err := json.Marshal((&Result{}).MeanInterval(0.98)); err != nil {
		t.Error(err)
	}
}
