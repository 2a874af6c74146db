package colate

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/clock"
	"github.com/hoplag/hoplag/internal/traffic"
)

// Months later the delays of flows are what they were, though clocks disagreed, by less than an epoch or by
// hours, gained and were set: the same epochs are compared. Those whose clock is not known are left out.
// Without Path.Clock the mean is off, or the clocks are named.
func TestPathCorrectsClocks(t *testing.T) {
	const epochs, base = 10, 9960e9 // so that no time is below 0
	for name, c := range map[string]struct{ offset, drift, set float64 }{
		"40 ms, gains, is set": {40e6, 3e-5, 5e6},
		"an hour ahead":        {offset: 3600e9 + 2e6},
		"two hours behind":     {offset: -7200e9 + 3e6},
		"an epoch ahead":       {offset: 60e9},
	} {
		s := scene{config: minutes(2000), seconds: 60 * epochs, flows: slices.Repeat([]sceneFlow{{3, exponential(0.001, 0)}}, 21)}
		s.config.OneIn, s.config.Samples, s.flows[0] = 4, 100_000, sceneFlow{30, exponential(0.005, 0)}
		agree, record, mean := s.play(t, 5)
		ahead := func(at int64) float64 { // by the first point's clock
			x := base + c.offset + c.drift*float64(at)
			if at >= 4*s.config.Period {
				x += c.set
			}
			return x
		}
		s.offset = func(at int64) int64 { return int64(ahead(at)) }
		path, _, _ := s.play(t, 5)
		ask := func(path Path) (Result, Coverage, error) {
			return path.Estimate(t.Context(), record, 0, math.MaxInt64)
		}
		want, _, err := ask(agree)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := path.Estimate(t.Context(), record, 0, 600e9); err == nil ||
			!strings.Contains(err.Error(), "Path.Clock") && !strings.Contains(err.Error(), "no epoch overlaps") {
			t.Errorf("%s, not known: %v", name, err)
		}
		for _, known := range []int{epochs + 2, 3} {
			if path.Clock, err = clock.NewHistory(s.config.Period); err != nil {
				t.Fatal(err)
			}
			for k := range known {
				at := int64(k)*s.config.Period + s.config.Period/2
				x := ahead(at)
				path.Clock.Add(reading(at, x, c.drift))
			}
			got, k, err := ask(path)
			if known == 3 {
				if k.Epochs > 4 || len(k.Missing) < 6 || !errors.Is(k.Missing[len(k.Missing)-1].Err, estimate.ErrNoSamples) {
					t.Errorf("%s, known for 3 epochs: %+v, %v", name, k, err)
				}
				continue
			}
			if err != nil || !got.MeanInterval(0.999).Contains(mean) || math.Abs(got.Mean/want.Mean-1) > 0.01 ||
				math.Abs(got.StdDev/want.StdDev-1) > 0.01 || got.StdDev == 0 {
				t.Errorf("%s: mean %.0f, deviation %.0f, %v; where clocks agree %.0f and %.0f", name, got.Mean, got.StdDev, err, want.Mean, want.StdDev)
			}
			if math.Abs(k.Clock.Low+2e5) > 1e-3 || math.Abs(k.Clock.High-3e5) > 1e-3 || k.Epochs < epochs-1 {
				t.Errorf("%s: %+v", name, k)
			}
		}
	}
}

// reading is of a clock that is ahead by x ns, by 0.2 ms less or 0.3 ms more, and drifts.
func reading(at int64, x, drift float64) clock.Reading {
	within := func(low, high, sure float64) estimate.Interval {
		return estimate.Interval{Low: low, High: high, Confidence: sure}
	}
	return clock.Reading{Time: at, Offset: x, Drift: drift, Certain: within(x-2e5, x+3e5, 1), Likely: within(x-1e3, x+1e3, 0.95),
		CertainDrift: within(drift, drift, 1), LikelyDrift: within(drift, drift, 0.95)}
}

// Where the second point's clock is ahead by a part of a Period, packets come in the epoch in which they were sent or later. So what
// some counters do not tell of an epoch, others do. Intervals are as narrow as if the clocks agreed, whatever is on its way
// at a cut by one clock alone. If that is not known, and packets are lost, the clock is in the mean, and intervals hold.
func TestPartOfAPeriodAhead(t *testing.T) {
	agree := 0.0
	for _, ahead := range []int64{0, 4e8, 6e8, 16e8, -4e8, -1e8, 2e8} {
		var s score
		var halves []float64
		for seed := range uint64(4) {
			w, off := world{config: cutAt(1e9), offset: ahead, seed: seed}, 0.0
			known, _ := clock.NewHistory(1e9)
			for k := range int64(12) {
				known.Add(reading((k-2)*1e9+5e8, float64(ahead), 0))
			}
			if ahead == 2e8 {
				known, w.loss, off = nil, 0.02, 2e8
			}
			w.config.Counters, w.config.PerFlow, w.config.Shift = 1000, 8, 6
			epochs, arrived := w.cut(t, crowd(0.003, 0, 1)(rand.New(rand.NewPCG(seed, 8))))
			path, list := w.stored(t, epochs), traffic.Truths(arrived, 1)
			answers, _, err := Path{path.Up, path.Down, known}.EstimateAll(t.Context(), recordsOf(list), -5e9, 1e12)
			if err != nil {
				t.Fatal(err)
			}
			for i, a := range answers {
				if in := a.MeanInterval(0.95); a.Err == nil {
					s.add(in, list[i].Mean+off)
					halves = append(halves, (in.High-in.Low)/2)
				}
			}
		}
		s.want(t, fmt.Sprintf("%v ns ahead", ahead), 150)
		if half := median(halves); ahead == 0 {
			agree = half
		} else if half > 3*agree {
			t.Errorf("%v ns ahead: a half-width of %.2g ns, %.2g where clocks agree", ahead, half, agree)
		}
	}
}
