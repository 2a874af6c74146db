package lda

import (
	"math"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

var _ = debug.SetGCPercent(400) // tests make much that is soon garbage

// falseAlarm is the probability with which a right estimator fails one of the
// statistical tests below, whose seeds are fixed: 4.4 standard errors.
const falseAlarm = 1e-5

var sigmas = -estimate.NormalQuantile(falseAlarm / 2)

// The delays that the paper evaluates with, all of mean 0.2 µs, here in units of 1 ps so that rounding does not
// show; and its hardest case for eq. (5). They are quantiles.
var delayLaws = map[string]func(u float64) float64{
	"Weibull 0.6": func(u float64) float64 { return 200_000 / math.Gamma(1+1/0.6) * math.Pow(-math.Log1p(-u), 1/0.6) },
	"200±10":      func(u float64) float64 { return 200_000 + 10_000*(2*u-1) },
}

// run is one interval, and the truth about those that arrived.
type run struct {
	up, down *Aggregator
	truth    estimate.Moments
}

// pass empties the points, and passes n packets, 1 µs apart, that take as long as fate says or are lost where that is negative.
func (x *run) pass(rng *rand.Rand, n int, fate func(*rand.Rand) float64) {
	x.up.Reset()
	x.down.Reset()
	x.truth = estimate.Moments{}
	for i := range int64(n) {
		p, delay := hashing.Packet(rng.Uint64()), int64(fate(rng))
		x.up.Update(p, 1000*i)
		if delay >= 0 {
			x.down.Update(p, 1000*i+delay)
			x.truth.Add(float64(delay))
		}
	}
}

func newRun(t *testing.T, c Config) *run { return &run{up: mustNewFor(t, c), down: mustNewFor(t, c)} }

// losing drops a share of the packets, and delays the rest as delay says.
func losing(loss float64, delay func(*rand.Rand) float64) func(*rand.Rand) float64 {
	return func(r *rand.Rand) float64 {
		if r.Float64() < loss {
			return -1
		}
		return delay(r)
	}
}

// runs makes intervals of n packets with losses at random, each with fresh
// delays, losses and hashes, and calls f with each. The points are reused.
func runs(t *testing.T, c Config, law string, times, n int, loss float64, f func(*run)) {
	t.Helper()
	rng, r := rand.New(rand.NewPCG(21, math.Float64bits(loss))), newRun(t, c)
	for range times {
		r.pass(rng, n, losing(loss, func(rng *rand.Rand) float64 { return delayLaws[law](rng.Float64()) }))
		f(r)
	}
}

// tuned is one bank, sampled for the loss.
func tuned(rows, n int, loss float64) Config {
	shift := uint8(0)
	for math.Ldexp(1, -int(shift)) > float64(rows)/(float64(n)*loss) {
		shift++
	}
	return Config{Banks: [maxBanks]Bank{{Rows: rows, Shift: shift}}, SumBits: 64}
}

// covered counts intervals that contain the truth.
type covered struct{ hits, of int }

func (c *covered) add(hit bool) {
	c.of++
	if hit {
		c.hits++
	}
}

func (c *covered) join(o covered) { c.hits, c.of = c.hits+o.hits, c.of+o.of }

// Of 1,000 intervals of 98 % at least 980 contain the truth, at every rate of
// loss: that of the mean for all delays, and that of the deviation for light tails.
func TestCoverage(t *testing.T) {
	const times, n, rows, confidence = 400, 2000, 256, 0.98
	enough := func(c covered) bool { return c.hits >= int(confidence*float64(c.of)) }
	for _, law := range []string{"Weibull 0.6", "200±10"} {
		for _, loss := range []float64{0.001, 0.05, 0.2} {
			var mean, central, deviation, narrow covered
			runs(t, tuned(rows, n, loss), law, times, n, loss, func(r *run) {
				e, _ := Estimate(r.up, r.down) // without samples, intervals are unbounded
				truth := r.truth.Mean()
				mean.add(e.MeanInterval(confidence).Contains(truth))
				central.add(e.withCopies(e.studentInterval(confidence)).Contains(truth))
				deviation.add(e.DeviationInterval(confidence).Contains(math.Sqrt(r.truth.Variance())))
				// Negative control: as if all packets that came were in the sample.
				all := e.Delay
				all.N = e.Received
				narrow.add(estimate.HoeffdingInterval(all, confidence).Contains(truth))
			})
			if !enough(mean) {
				t.Errorf("%s, loss %v: mean covered %d times of %d", law, loss, mean.hits, times)
			}
			if law == "200±10" && !enough(deviation) {
				t.Errorf("%s, loss %v: deviation covered %d times of %d", law, loss, deviation.hits, times)
			}
			if loss >= 0.2 && enough(narrow) {
				t.Errorf("%s, loss %v: an interval for another sample size covers %d times, too", law, loss, narrow.hits)
			}
		}
	}
}

// samplesOf returns the delays of packets that were alone in their cell.
func samplesOf(t *testing.T, up, down *Aggregator) []float64 {
	t.Helper()
	a := accumulated(t, up, down)
	a.complete()
	return a.sample.delays
}

// accumulated is a report of one interval that lasts for longer than all packets take.
func accumulated(t *testing.T, up, down *Aggregator) *Accumulator {
	t.Helper()
	a, err := NewAccumulator(up.config)
	if err == nil {
		err = a.Add(0, 3e9, up, down)
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// A hundred intervals of a bank of 1,024 cells with a packet to a cell give quantiles whose rank is off by what
// as many independent samples give, and by less than what is asked.
func TestQuantiles(t *testing.T) {
	const n, loss = 1024, 0.02
	c := Config{Banks: [maxBanks]Bank{{Rows: 1024}}, SumBits: 40}
	var samples, pairs []float64
	runs(t, c, "Weibull 0.6", 100, n, loss, func(r *run) {
		samples = append(samples, samplesOf(t, r.up, r.down)...)
		// Negative control: the means of cells of two packets.
		for i := range r.up.sampled() {
			s, d := &r.up.cells[i], &r.down.cells[i]
			if s.count() == 2 && d.count() == 2 {
				pairs = append(pairs, float64(d.sum-s.sum)/2)
			}
		}
	})
	// rankError is how far the empirical quantile is from the true one, in rank; both are of whole numbers.
	rankError := func(e estimate.Empirical, p float64) float64 {
		return math.Abs(e.CDF(delayLaws["Weibull 0.6"](p)) - p)
	}
	e, wrong := estimate.NewEmpirical(samples), estimate.NewEmpirical(pairs)
	if want := 100 * n * math.Exp(-1) * (1 - loss); math.Abs(float64(e.N())-want) > sigmas*math.Sqrt(want) {
		t.Errorf("%d samples, want %.0f", e.N(), want)
	}
	for _, c := range []struct{ p, bar float64 }{{0.5, 0.010}, {0.9, 0.006}, {0.99, 0.0025}} {
		tolerance := min(c.bar, sigmas*math.Sqrt(c.p*(1-c.p)/float64(e.N())))
		if got := rankError(e, c.p); got > tolerance {
			t.Errorf("rank of p%v off by %v, tolerance %v", 100*c.p, got, tolerance)
		}
		if rankError(wrong, c.p) <= tolerance {
			t.Errorf("p%v: means of two packets pass, too", 100*c.p)
		}
		x, err := e.Quantile(c.p)
		if i := e.QuantileInterval(c.p, 0.98); err != nil || !i.Contains(x) {
			t.Errorf("p%v is %v, %v, not in %+v", 100*c.p, x, err, i)
		}
	}
}

// One very slow packet of many is alone in its cell by chance, and counts for many: the deviation may then be that of all the rest.
func TestSlowAlone(t *testing.T) {
	x := newRun(t, DefaultConfig)
	x.pass(rand.New(rand.NewPCG(1, 3)), 60_000, losing(0, func(r *rand.Rand) float64 { return 5e6 * r.ExpFloat64() }))
	x.up.Update(1, 0) // in the thinnest bank
	x.down.Update(1, 2e9)
	x.truth.Add(2e9)
	r, err := accumulated(t, x.up, x.down).Estimate()
	if i, blind := r.DeviationInterval(0.999), r; err != nil || !i.Contains(x.truth.StdDev()) {
		t.Errorf("deviation %v in %+v, want %v, %v", r.StdDev, i, x.truth.StdDev(), err)
	} else if blind.calmDegrees = 0; blind.DeviationInterval(0.999).Contains(x.truth.StdDev()) { // negative control
		t.Error("an interval of all that were alone holds, too")
	}
}

// What Expect says is what comes, on average.
func TestExpect(t *testing.T) {
	const times, n = 300, 2000
	c := Config{Banks: [maxBanks]Bank{{Rows: 64, Shift: 1}, {Rows: 32, Shift: 2}, {Rows: 128, Shift: 5}}, SumBits: 64}
	for _, loss := range []float64{0, 0.01, 0.1, 0.5} {
		var sample, usable, alone estimate.Moments
		var eq2 float64
		runs(t, c, "200±10", times, n, loss, func(r *run) {
			e, _ := Estimate(r.up, r.down)
			samples := samplesOf(t, r.up, r.down)
			sample.Add(float64(e.N))
			usable.Add(float64(e.usable))
			alone.Add(float64(len(samples)))
			eq2 += float64(e.N) / times
		})
		want := c.expect(n, loss)
		for name, f := range map[string]struct {
			got  estimate.Moments
			want float64
		}{"sample": {sample, want.sample}, "usable": {usable, want.usable}, "alone": {alone, want.alone}} {
			// The number lost is random here and fixed in the expectation, which is convex in it: half its
			// second difference is below 0.2 % of anything.
			tolerance := sigmas*math.Sqrt(f.got.Variance()/times) + 0.002*f.want
			if math.Abs(f.got.Mean()-f.want) > tolerance {
				t.Errorf("loss %v: %s %v, expected %v ± %v", loss, name, f.got.Mean(), f.want, tolerance)
			}
			// Negative control: without the losses.
			if free, _ := c.Expect(n, 0); loss >= 0.1 && name == "sample" && math.Abs(f.got.Mean()-free*(1-loss)) <= tolerance {
				t.Errorf("loss %v: an expectation without losses passes, too", loss)
			}
		}
	}
}

// Where the confidence asked for is none, an interval is the whole range and says so.
func TestConfidenceOutOfRange(t *testing.T) {
	up, down := pair(t, twoBanks(1), traffic(3, 1, 3000, 0.01, 0), same)
	r := must(Estimate(up, down))
	inf := math.Inf(1)
	for _, confidence := range []float64{-inf, -0.5, 0, 1, 1.5, inf, math.NaN()} {
		got := [2]estimate.Interval{r.MeanInterval(confidence), r.DeviationInterval(confidence)}
		all := estimate.Interval{Low: -inf, High: inf, Confidence: 1}
		if want := [2]estimate.Interval{all, {High: inf, Confidence: 1}}; got != want {
			t.Errorf("%v: %+v, want %+v", confidence, got, want)
		}
	}
	// Half the probability of a miss is kept as a margin.
	got, want := r.DeviationInterval(0.9), estimate.DeviationInterval(r.StdDev, r.deviationDegrees, 0.95)
	if !near(got.Low, want.Low, 1e-6) || got.High < want.High || got.Confidence != 0.9 {
		t.Errorf("deviation at 0.9: %+v, want %+v", got, want)
	}
	// (1 − 0.01)^k = 0.01 at k = 458: so many packets may be unseen.
	if unseen := (&Result{Delay: estimate.Delay{N: 1000}, spoken: 100_000}).unseen(0.98); !near(unseen, 458.2/100_000, 1e-3) {
		t.Errorf("%v of the packets may be unseen, want 458 of 100,000", unseen)
	}
	// One was slower than any known, and areas say that others took twice as long: the surer, the wider.
	few := Result{Delay: estimate.Delay{Mean: 2e6, StdDev: 1e6, N: 400}, alone: estimate.Delay{Mean: 1e6, StdDev: 1e6, N: 40},
		fromAreas: true, Extra: 1, deviationDegrees: 3, meanDegrees: 300, sampling: 1e4, greatest: 9e6, spoken: 400}
	if one, other := few.DeviationInterval(0.95), few.DeviationInterval(0.999); other.High < one.High || one.High < 1e6*math.Sqrt(400) {
		t.Errorf("deviation %+v at 0.95, %+v at 0.999, though one packet may have taken all", one, other)
	}
}

// The interval of the mean allows for what is not known, and not for much else: packets in cells that lost
// some, those that cross the ends while delays rise, and slow ones that come twice. So do quantiles.
func TestWhatIsNotKnown(t *testing.T) {
	const runs, packets, space, long = 20, 5000, 400_000.0, 5000 * 400_000.0
	for _, c := range []struct {
		name   string
		delay  func(r *rand.Rand, at float64) float64
		loss   float64
		twice  float64 // comes what takes longer than that
		sharp  bool    // half widths are at most 10 times the error
		strays bool    // without them and copies the interval misses
	}{
		{"exponential", func(r *rand.Rand, _ float64) float64 { return 5e6 * r.ExpFloat64() }, 0.01, math.Inf(1), true, false},
		{"lognormal", func(r *rand.Rand, _ float64) float64 { return 1e6 * math.Exp(2*r.NormFloat64()) }, 0.01, math.Inf(1), true, false},
		{"Pareto", func(r *rand.Rand, _ float64) float64 { return 1e6 * math.Pow(1-r.Float64(), -1/1.5) }, 0.05, math.Inf(1), true, false},
		{"rise", func(_ *rand.Rand, at float64) float64 { return 2e7 + at/50 }, 0.005, math.Inf(1), false, true},
		{"end", func(_ *rand.Rand, at float64) float64 { return 3e6 + 6e7*math.Floor(math.Mod(at/long+1, 1)+0.03) }, 0, math.Inf(1), false, true},
		{"copies", func(r *rand.Rand, _ float64) float64 { return 5e6 + 8e6*r.ExpFloat64() }, 0, 40e6, false, true},
		{"slow", func(r *rand.Rand, _ float64) float64 { return 3e6*r.ExpFloat64() + 1e8*math.Floor(r.Float64()*1.02) }, 0, 9e7, false, true},
	} {
		held, blind, quantiles, asked := 0, 0, 0, 0
		var errs, halves []float64
		for seed := range uint64(runs) {
			up, down, rng := mustNewFor(t, DefaultConfig), mustNewFor(t, DefaultConfig), rand.New(rand.NewPCG(seed, 55))
			var delays []float64
			for i := -packets / 4; i < packets; i++ {
				p, at := hashing.Packet(rng.Uint64()), float64(i)*space
				d := c.delay(rng, at)
				if at >= 0 {
					up.Update(p, int64(at))
				}
				if rng.Float64() < c.loss || !c.strays && at < 0 || at+d < 0 || c.strays && at+d >= long {
					continue
				}
				if d = math.Floor(d); d >= 0 {
					down.Update(p, int64(at+d))
					delays = append(delays, d)
				}
				if d > c.twice {
					down.Update(p, int64(at+d+1e6))
				}
			}
			all := estimate.NewEmpirical(delays)
			var truth estimate.Moments
			for _, d := range delays {
				truth.Add(d)
			}
			r, err := Estimate(up, down)
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			i := r.MeanInterval(0.95)
			if i.Contains(truth.Mean()) {
				held++
			}
			errs, halves = append(errs, math.Abs(r.Mean-truth.Mean())), append(halves, (i.High-i.Low)/2)
			p90, _ := all.Quantile(0.9)
			if q, err := accumulated(t, up, down).Quantile(0.9, 0.95); err == nil {
				if asked++; q.Interval.Contains(p90) {
					quantiles++
				}
			}
			if r.strays, r.behind = 0, (figure{}); !r.MeanInterval(0.95).Contains(truth.Mean()) { // negative control
				blind++
			}
		}
		slices.Sort(errs)
		slices.Sort(halves)
		half, off := halves[runs/2], errs[runs/2]
		if held < runs-2 || quantiles < asked-3 || c.sharp && half > 10*off || c.strays && blind < runs/4 {
			t.Errorf("%s: %d of %d held, %d without strays, half width %.1f times the error; %d of %d quantiles", c.name, held, runs, blind,
				half/off, quantiles, asked)
		}
	}
}

// Two packets that are alone may be close together. They do not tell how long the interval is, nor how long an
// unseen packet may take: if they did, 14 of 1,020 intervals at 99.9 % would miss.
func TestLengthByFew(t *testing.T) {
	c := Config{SumBits: 56, DigestBits: 24}
	c.Banks[0] = Bank{Rows: 64}
	random, misses, all := rand.New(rand.NewPCG(1, 2)), 0, 0
	for range 1500 {
		up, down, came := mustNewFor(t, c), mustNewFor(t, c), estimate.Moments{}
		for k := range int64(400) {
			p, sent, delay := hashing.Packet(random.Uint64()), k*2_500_000, int64(1e6+random.Float64()*1e5)
			if k == 0 {
				delay = 9e8
			}
			if up.Update(p, sent); k == 0 || random.Float64() < 0.91 {
				down.Update(p, sent+delay)
				came.Add(float64(delay))
			}
		}
		if r, err := Estimate(up, down); err == nil && r.share(r.N) < 0.6 {
			if all++; !r.MeanInterval(0.999).Contains(came.Mean()) {
				misses++
			}
		}
	}
	if misses > all/200 || all < 1000 {
		t.Errorf("%d of %d intervals at 99.9 %% miss", misses, all)
	}
}
