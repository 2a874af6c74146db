package lda

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/internal/truth"
)

// Where few packets cross the ends of a report, and a stall keeps some of them for
// long, the mean delay of those received is known nearly exactly, although it is not
// the time on the way of the report.
func TestOfReceived(t *testing.T) {
	stalls := func(r *rand.Rand) float64 { return 1e7*r.ExpFloat64() + float64(r.IntN(50)/49)*cutInterval }
	run := cutTraffic(t, 6, 80, 20, stalls, 0)
	misses, apart, reports := 0, 0.0, 0.0
	run.reports(t, 2, func(a *Accumulator, from, to int64) {
		want := truth.Of(run.packets, from, to).MeanDelay()
		if r, err := a.Estimate(); err == nil {
			mean, i := r.OfReceived(0.99)
			if !i.Contains(want) {
				misses++
			}
			apart += math.Abs(mean/want - 1)
			reports++
		}
	})
	if misses > 1 || apart > 0.02*reports || reports < 30 {
		t.Errorf("%d misses in %v reports, means off by %.2g", misses, reports, apart/reports)
	}
}

// Delays that fall a thousandfold leave slow packets on their way, whose ages at the next
// cuts the packets that come then do not tell. Levels bound them. As old as those that came
// lately, they would put most reports outside.
func TestOfReceivedAfterAFall(t *testing.T) {
	misses, reports := 0, 0
	for seed := range uint64(6) {
		n, delay := 0, [2]float64{1e9, 3e9}[seed%2]
		run := cutTraffic(t, seed, 160, 100, func(r *rand.Rand) float64 {
			if n++; n > 5000 {
				delay = 1e6
			}
			return delay * (0.9 + 0.2*r.Float64())
		}, 0)
		run.reports(t, 10, func(a *Accumulator, from, to int64) {
			want := truth.Of(run.packets, from, to)
			if r, err := a.Estimate(); err == nil && from >= 5e9 && from < 9e9 {
				if _, i := r.OfReceived(0.95); !i.Contains(want.MeanDelay()) {
					misses++
				}
				reports++
			}
		})
	}
	if misses > reports/20 || reports < 20 {
		t.Errorf("%d of %d reports after a fall are outside 95 %%", misses, reports)
	}
}

// A report that is asked for at once knows nothing of packets on their way at its end but how
// many they are. Were they as old as the scatter of cells says, most means would be outside.
func TestOfReceivedAtOnce(t *testing.T) {
	misses, reports := 0, 0
	for seed := range uint64(6) {
		delay := func(r *rand.Rand) float64 { return 4.5e8 + 1e8*r.Float64() }
		run := cutTraffic(t, seed, 110, 100, delay, 0.005*float64(seed%2))
		a := accumulate(t, new(cutRun))
		for k := range int64(100) {
			if err := a.Add(k*cutInterval, (k+1)*cutInterval, run.up[k], run.down[k]); err != nil {
				t.Fatal(err)
			}
			if k%10 != 9 {
				continue
			}
			want := truth.Of(run.packets, (k-9)*cutInterval, (k+1)*cutInterval).MeanDelay()
			if r, err := a.Estimate(); err == nil {
				if _, i := r.OfReceived(0.95); !i.Contains(want) {
					misses++
				}
				reports++
			}
			a.Reset()
		}
	}
	if misses > reports/20 || reports < 50 {
		t.Errorf("%d of %d reports are outside 95 %%", misses, reports)
	}
}

// Where the clock of the point downstream is behind, packets come before they are sent: all
// or some of them. What report ends owe is then what they are sent later, not what they are
// old; taken for nothing, it left intervals without width, outside in 14 to 100 of 100.
func TestOfReceivedBeforeSent(t *testing.T) {
	for _, behind := range []float64{30e6, 6e6, 2e6} {
		misses, reports := 0, 0
		run := cutTraffic(t, 5, 310, 150, func(r *rand.Rand) float64 { return 1e6 + 4e6*r.ExpFloat64() - behind }, 0)
		run.reports(t, 10, func(a *Accumulator, from, to int64) {
			want := truth.Of(run.packets, from, to)
			if r, err := a.Estimate(); err == nil && from > 0 && want.Received > 0 {
				if _, i := r.OfReceived(0.95); !i.Contains(want.MeanDelay()) {
					misses++
				}
				reports++
			}
		})
		if misses > reports/7 || reports < 25 {
			t.Errorf("%v ms behind: %d of %d reports are outside 95 %%", behind/1e6, misses, reports)
		}
	}
}

// One packet in 500 that takes 300 times as long is seldom alone in its cell. What the mean
// of those received exceeds that of those alone tells how much deviation may be missing.
func TestDeviationOfReceivedRareSlow(t *testing.T) {
	misses, reports := 0, 0
	run := cutTraffic(t, 7, 330, 150, func(r *rand.Rand) float64 {
		if r.IntN(500) == 0 {
			return 3e9
		}
		return 10e6
	}, 0)
	run.reports(t, 10, func(a *Accumulator, from, to int64) {
		var came estimate.Moments
		for _, p := range run.packets {
			if from <= p.Received && p.Received < to {
				came.Add(float64(p.Received - p.Sent))
			}
		}
		if r, err := a.Estimate(); err == nil && from > 5e9 && to < 32e9 {
			if !r.DeviationInterval(0.95).Contains(came.StdDev()) {
				misses++
			}
			reports++
		}
	})
	if misses > reports/5 || reports < 20 {
		t.Errorf("%d of %d deviations are outside 95 %%", misses, reports)
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

// What is not known of the ages of packets on their way is the same at both ends of a report, and
// cancels out: without losses an interval is a few times as wide as the error. If both ends
// were unknown each for itself, it would be tens of times as wide.
func TestOfReceivedIsSharp(t *testing.T) {
	slow := func(r *rand.Rand) float64 { return 5e6*r.ExpFloat64() + float64(r.IntN(500)/499)*10*cutInterval }
	for name, delay := range map[string]func(*rand.Rand) float64{"exponential": exponentialDelay(3 * cutInterval), "rare slow ones": slow} {
		run, misses := cutTraffic(t, 9, 200, 1000, delay, 0), 0
		var errors, halves []float64
		run.reports(t, 10, func(a *Accumulator, from, to int64) {
			want := truth.Of(run.packets, from, to).MeanDelay()
			if r, err := a.Estimate(); err == nil && from > 30*cutInterval && to <= 180*cutInterval {
				mean, i := r.OfReceived(0.95)
				errors, halves = append(errors, math.Abs(mean-want)), append(halves, (i.High-i.Low)/2)
				if !i.Contains(want) {
					misses++
				}
			}
		})
		slices.Sort(errors)
		slices.Sort(halves)
		error, half := errors[len(errors)/2], halves[len(halves)/2]
		t.Logf("%s: %d of %d outside, median error %.3g, half-width %.3g", name, misses, len(errors), error, half)
		if misses > 4 || half > 12*error {
			t.Errorf("%s: %d of %d outside, a median half-width of %.3g for errors of %.3g", name, misses, len(errors), half, error)
		}
	}
}
