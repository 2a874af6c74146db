package lda

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/internal/truth"
)

// settled says that a report is due once it is known what came of its packets.
func settled(a *Accumulator, _ int64) bool { return a.Settled() }

// ofReceived returns how many intervals of OfReceived hold, of the reports of so many intervals between two
// times that have an answer once they are due; the errors of their means; and the half-widths, sorted.
func (run *cutRun) ofReceived(
	t *testing.T, length int, due func(*Accumulator, int64) bool, from, to int64, confidence float64,
) (held covered, errs, halves []float64) {
	run.reports(t, length, due, func(a *Accumulator, start, end int64) {
		want := truth.Of(run.packets, start+run.later, end+run.later)
		r, err := a.Estimate()
		if err != nil || start < from || end > to || want.Received == 0 {
			return
		}
		mean, i := r.OfReceived(confidence)
		held.add(i.Contains(want.MeanDelay()))
		errs, halves = append(errs, math.Abs(mean-want.MeanDelay())), append(halves, (i.High-i.Low)/2)
	})
	slices.Sort(errs)
	slices.Sort(halves)
	return held, errs, halves
}

// The mean delay of those received is in its interval, and the interval narrow where ends owe little or the same:
// where a stall keeps few packets for long; where delays fall, so that later packets do not tell the ages of those
// on their way; where the clock downstream is behind, so that packets come before they are sent; and where what is
// not known of ages cancels out (each end for itself, intervals would be tens of times as wide).
func TestOfReceived(t *testing.T) {
	t.Parallel()
	fall := func() func(*rand.Rand) float64 {
		n := 0
		return func(r *rand.Rand) float64 {
			if n++; n > 5000 {
				return 1e6 * (0.9 + 0.2*r.Float64())
			}
			return 3e9 * (0.9 + 0.2*r.Float64())
		}
	}
	law := func(f func(*rand.Rand) float64) func() func(*rand.Rand) float64 {
		return func() func(*rand.Rand) float64 { return f }
	}
	behind := func(by float64) func() func(*rand.Rand) float64 {
		return law(func(r *rand.Rand) float64 { return 1e6 + 4e6*r.ExpFloat64() - by })
	}
	queue := func() func(*rand.Rand) float64 {
		wait := 30e6
		return func(r *rand.Rand) float64 { wait = math.Abs(0.9997*wait + 1.3e6*r.NormFloat64()); return wait - 30e6 }
	}
	for _, c := range []struct {
		name              string
		seeds             uint64
		cuts, each, every int
		delay             func() func(*rand.Rand) float64
		from, to          int64
		misses            float64 // share allowed
		wide              float64 // half-width, in errors
	}{
		{"stalls", 1, 110, 20, 2,
			law(func(r *rand.Rand) float64 { return 1e7*r.ExpFloat64() + float64(r.IntN(50)/49)*cutInterval }), 0, 8e9, 0.05, math.Inf(1)},
		{"a fall from 3 s", 3, 190, 100, 10, fall, 5e9, 10e9, 0.1, math.Inf(1)},
		{"60 ms behind", 1, 310, 150, 10, behind(60e6), 1, 31e9, 0.15, math.Inf(1)}, // no delay is positive
		{"30 ms behind a queue", 2, 310, 150, 10, queue, 1, 31e9, 0.05, math.Inf(1)},
		{"20 ms behind, rare slow ones", 1, 310, 100, 10,
			law(func(r *rand.Rand) float64 { return float64(r.IntN(500)/499)*1e9 - 15e6 }), 1, 31e9, 0.05, math.Inf(1)},
		{"2 ms behind", 1, 310, 150, 10, behind(2e6), 1, 31e9, 0.15, math.Inf(1)},
		{"300 ms", 1, 200, 1000, 10, law(exponentialDelay(3 * cutInterval)), 3e9 + 1, 18e9, 0.3, 12},
		{"rare slow ones", 1, 200, 1000, 10,
			law(func(r *rand.Rand) float64 { return 5e6*r.ExpFloat64() + float64(r.IntN(500)/499)*10*cutInterval }), 3e9 + 1, 18e9, 0.3, 12},
	} {
		var held covered
		error, half := 0.0, 0.0
		for seed := range c.seeds {
			h, errs, halves := cutTraffic(t, seed+9, c.cuts, c.each, c.delay(), 0).ofReceived(t, c.every, settled, c.from, c.to, 0.95)
			held.join(h)
			error, half = errs[len(errs)/2], halves[len(halves)/2]
		}
		if float64(held.of-held.hits) > c.misses*float64(held.of)+1 || held.of < 9 || half > c.wide*error {
			t.Errorf("%s: %+v, a median half-width of %.3g for errors of %.3g", c.name, held, half, error)
		}
	}
}

// A report that is asked for soon knows little more of packets on their way at its end than how many. If the
// scatter of cells told their ages, most means would miss. Once all have come, no mean is in doubt.
func TestOfReceivedAtOnce(t *testing.T) {
	var held covered
	for seed := range uint64(6) {
		run := cutTraffic(t, seed, 110, 100, func(r *rand.Rand) float64 { return 4.5e8 + 1e8*r.Float64() }, 0.005*float64(seed%2))
		h, _, _ := run.ofReceived(t, 10, after(int64(seed/2)*1e8), 0, 10e9, 0.95)
		held.join(h)
		run.reports(t, 10, after(6e8), func(a *Accumulator, _, _ int64) {
			if r, err := a.Estimate(); err == nil && r.pending > 0.1 {
				t.Errorf("of those on their way %.2f may be still, when all have come", r.pending)
			}
		})
	}
	if held.of-held.hits > held.of/20 || held.of < 50 {
		t.Errorf("%d of %d reports are inside 95 %%", held.hits, held.of)
	}
}

// Few packets are sent, some of which are held for 100 intervals, so that nobody knows for as long which of the others
// were lost. For the mean of those received that does not matter: nine in ten intervals reach a fifth of it, or less.
func TestOfReceivedAfterStalls(t *testing.T) {
	t.Parallel()
	var held, narrow covered
	for seed := range uint64(2) {
		n := 0
		run := cutTraffic(t, seed, 2000, 1, func(*rand.Rand) float64 {
			if n = (n + 1) % 400; n > 300 {
				return float64(400-n) * cutInterval
			}
			return 5e6
		}, 0.01)
		h, _, halves := run.ofReceived(t, 2, after(45*cutInterval), 0, 2000*cutInterval, 0.999)
		held.join(h)
		narrow.add(halves[len(halves)*9/10] < 1e6)
	}
	due := float64(held.of) / 1000
	if t.Logf("%+v", held); float64(held.of-held.hits) > due+3*math.Sqrt(due)+1 || held.of < 1000 || narrow.hits < 2 {
		t.Errorf("%d of %d reports are inside 99.9 %%, and %d of 2 runs narrow", held.hits, held.of, narrow.hits)
	}
}

// after says that a report is due a given time after its end.
func after(patience int64) func(*Accumulator, int64) bool {
	return func(_ *Accumulator, since int64) bool { return since >= patience }
}

// came returns the distribution of the delays of packets received between two times, and its deviation.
func (run *cutRun) came(from, to int64) (estimate.Empirical, float64) {
	var all []float64
	var of estimate.Moments
	for _, p := range run.packets {
		if d := float64(p.Received - p.Sent); !p.Lost && from <= p.Received && p.Received < to {
			all = append(all, d)
			of.Add(d)
		}
	}
	return estimate.NewEmpirical(all), of.StdDev()
}

// Of few packets most are alone: intervals of quantiles and the deviation are as wide as the others leave them. If there were any
// number of others, those of quantiles would be five times as wide, except for the steps from packet to packet. Where a clock is
// behind, those alone were sent in the report, and half of them received before: if none counted as such, most would miss. So
// they would where sixteen ids come in turn, so that none is alone that is on its way when the next one like it is sent.
func TestMostAreAlone(t *testing.T) {
	for i, behind := range []int64{0, 5e8, 0} {
		var held, narrow covered
		run, turns := new(cutRun), i == 2
		packets := sends(2, 40e9, func(r *rand.Rand, sent int64) int64 { return sent + int64(float64(2e7+2e7*i)*r.ExpFloat64()) - behind })
		packets = slices.DeleteFunc(packets, func(p truth.Packet) bool { return p.Flow%5 > 0 })
		for k := range packets {
			if turns {
				packets[k].Flow = uint64(k%16+1) * 0x9e3779b97f4a7c15
			}
		}
		run.pass(t, packets, math.MaxInt64, 0)
		run.reports(t, 10, settled, func(a *Accumulator, from, to int64) {
			r, err := a.Estimate()
			if err != nil || from == 0 {
				return
			}
			all, deviation := run.came(from, to)
			i := r.DeviationInterval(0.95)
			held.add(i.Contains(deviation))
			narrow.add(i.High-i.Low < deviation/5)
			for _, p := range []float64{0.2, 0.5, 0.9} {
				want, _ := all.Quantile(p)
				q, err := a.Quantile(p, 0.95)
				wide := a.Samples().QuantileInterval(p, 0.95)
				held.add(err == nil && q.Interval.Contains(want) || err != nil && turns && p != 0.5)
				narrow.add(turns || 3*(q.Interval.High-q.Interval.Low) < wide.High-wide.Low)
			}
		})
		if held.of < 99 || held.of-held.hits > held.of/20 || behind == 0 && narrow.hits < narrow.of*3/4 {
			t.Errorf("%d ns behind %+v hold, and %+v are narrow", behind, held, narrow)
		}
	}
}

// Where both of two packets were alone, their deviation and all quantiles are known, and one of them has no deviation.
func TestBothAreAlone(t *testing.T) {
	a, r := Accumulator{degrees: 1, alone: estimate.Delay{StdDev: 5, N: 2}}, Result{Received: 2}
	a.tellAlone(&r)
	d := distribution{Empirical: estimate.NewEmpirical([]float64{3, 4}), chance: r.byChance()}
	if i := d.interval(0.1, 0.1, 0.95); i.Low != 3 || i.High != 3 || r.deviationDegrees != math.MaxInt32 || r.calmDegrees != 0 {
		t.Errorf("%+v with %d degrees of freedom, and %d of one packet", i, r.deviationDegrees, r.calmDegrees)
	}
}

// One packet in 500 that takes 300 times as long is seldom alone in its cell: means tell how much deviation may be
// missing. One in 10,000 is too rare to be alone, and means do not show it.
func TestDeviationOfReceivedRareSlow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cuts, packets, oneIn int
		usual, slow          float64
	}{{330, 150, 500, 10e6, 3e9}, {200, 2000, 10_000, 100e6, 2e9}} {
		misses, reports := 0, 0
		run := cutTraffic(t, 7, c.cuts, c.packets, func(r *rand.Rand) float64 {
			if r.IntN(c.oneIn) == 0 {
				return c.slow
			}
			return c.usual * (0.5 + r.Float64())
		}, 0)
		run.reports(t, 10, settled, func(a *Accumulator, from, to int64) {
			_, want := run.came(from, to)
			if r, err := a.Estimate(); err == nil && from > 5e9 && to < int64(c.cuts-10)*cutInterval {
				if !r.DeviationInterval(0.95).Contains(want) {
					misses++
				}
				reports++
			}
		})
		if misses > reports/5 || reports < 10 {
			t.Errorf("%+v: %d of %d deviations are outside 95 %%", c, misses, reports)
		}
	}
}

// One packet in 100 takes seconds, and stands for hundreds where it is alone, so that often none is. Quantiles
// that such may be above are refused, or hold. In the control they rely on those that are seen. Where all are on
// their way for longer than it takes until the next one passes their cell, sparser banks make up for that.
func TestQuantilesOfRareSlow(t *testing.T) {
	t.Parallel()
	var misses, blind, reports float64
	limit := func() float64 { return 0.05*reports + 3*math.Sqrt(0.05*reports) }
	for _, delay := range []func(*rand.Rand) float64{exponentialDelay(2 * cutInterval), func(r *rand.Rand) float64 {
		if r.IntN(100) == 0 {
			return 1e9 * (1.5 + 3*r.Float64())
		}
		return 5e7 + 5e6*r.ExpFloat64()
	}} {
		misses, blind, reports = 0, 0, 0
		run := cutTraffic(t, 9, 200, 2000, delay, 0)
		run.reports(t, 10, settled, func(a *Accumulator, from, to int64) {
			all, _ := run.came(from, to)
			for _, p := range []float64{0.5, 0.9, 0.99, 0.999} {
				want, err := all.Quantile(p)
				if err != nil || from > 17e9 {
					continue
				}
				if q, err := a.Quantile(p, 0.95); err == nil {
					if reports++; !q.Interval.Contains(want) {
						misses++
					}
				} else if p < 0.99 {
					t.Errorf("%v: %v", p, err)
				}
				if i := a.Samples().QuantileInterval(p, 0.95); i.Bounded() && !i.Contains(want) {
					blind++
				}
			}
		})
		if t.Logf("of %v quantiles %v are outside 95 %%, and %v by those seen", reports, misses, blind); misses > limit() {
			t.Errorf("more than %v are", limit())
		}
	}
	if blind <= limit() {
		t.Errorf("without what is not seen %v quantiles are outside, too", blind)
	}
}

// Where stamps are coarse, packets that were alone may take no time, which tells nothing of others.
func TestOfReceivedWhereAloneTakeNoTime(t *testing.T) {
	run := cutTraffic(t, 8, 11, 100, func(*rand.Rand) float64 { return 0 }, 0)
	run.up[0].Update(1, 5)
	run.up[0].Update(1|1<<40, 5) // in the same cell
	run.down[0].Update(1, 5)
	run.down[0].Update(1|1<<40, 1e6)
	r, err := accumulate(t, run).Estimate()
	if mean, _ := r.OfReceived(0.95); err != nil || !(math.Abs(mean*float64(r.Received)-1e6) < 10) {
		t.Errorf("a mean of %v; %v", mean, err)
	}
}

// Where a packet is on its way at every cut, no cell tells how far times scatter.
func TestOfReceivedOfNoWholeCell(t *testing.T) {
	a := accumulate(t, new(cutRun))
	for k := range int64(20) {
		up, down := mustNewFor(t, DefaultConfig), mustNewFor(t, DefaultConfig)
		up.Update(1<<40, k*cutInterval+9e7)
		if down.Update(1<<40, k*cutInterval+1e7); k == 0 {
			down.Reset()
		}
		err := a.Add(k*cutInterval, (k+1)*cutInterval, up, down)
		if r, none := a.Estimate(); none == nil {
			if m, i := r.OfReceived(0.95); err != nil || !i.Contains(m) {
				t.Errorf("cut %d: %v in %v; %v", k, m, i, err)
			}
		}
		a.Reset()
	}
}

// Packets may take sixty intervals on average. If they take more, it is an error that says so: neither
// losses nor the ages at the ends are known in time.
func TestSlowerThanIntervals(t *testing.T) {
	t.Parallel()
	for delay, known := range map[float64]bool{5e9: true, 1e10: false} {
		held, told, reports := 0, 0, 0
		run := cutTraffic(t, 9, 330, 30, func(r *rand.Rand) float64 { return delay + 5e7*r.ExpFloat64() }, 0.01)
		run.reports(t, 10, settled, func(a *Accumulator, from, to int64) {
			if from < 11e9 {
				return
			}
			r, err := a.Estimate()
			if reports++; err == nil {
				told++
				if r.MeanInterval(0.95).Contains(truth.Of(run.packets, from, to).MeanDelay()) {
					held++
				}
			} else if !errors.Is(err, estimate.ErrNoSamples) || !strings.Contains(err.Error(), "longer ones") {
				t.Error(err)
			}
		})
		if known && (told < reports || held < reports*9/10) || !known && told > 0 || reports < 9 {
			t.Errorf("delays of %v s: %d of %d reports are told, and %d hold", delay/1e9, told, reports, held)
		}
	}
}

// A slow packet is on its way at many cuts, and other packets come and go in its cell meanwhile: the level
// comes again, which tells its age at the end of a report. Otherwise the mean of those received would be known
// only to a tenth, where delays have a long tail and some packets are lost.
func TestLevelsThatComeAgain(t *testing.T) {
	pareto := func(r *rand.Rand) float64 { return min(2e9, 1e6*math.Pow(r.Float64(), -1/0.7)) }
	held, errs, halves := cutTraffic(t, 4, 330, 60, pareto, 0.005).ofReceived(t, 10, settled, 5e9, 30e9, 0.95)
	if held.of < 20 || held.of-held.hits > 3 || halves[len(halves)/2] > 0.3e6 {
		t.Errorf("%+v, median error %.3g ns, half-width %.3g ns", held, errs[len(errs)/2], halves[len(halves)/2])
	}
}
