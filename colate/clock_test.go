package colate

import (
	"errors"
	"math"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/clock"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/internal/traffic"
)

const clockPeriod, clockEpochs = 1e9, 6

// storesApart keeps traffic at the first point, at the second, whose clock is 40
// ms ahead, gains 30 millionths and is set once, and at the second with a clock
// that agrees.
func storesApart(t *testing.T, config Config, all []passage) (stores [3]*Store, history *clock.History) {
	t.Helper()
	ahead := func(at int64) float64 {
		x := 40e6 + 3e-5*float64(at)
		if at >= 4*clockPeriod {
			x += 5e6
		}
		return x
	}
	history, err := clock.NewHistory(clockPeriod)
	if err != nil {
		t.Fatal(err)
	}
	for i := range stores {
		stores[i] = openStore(t, newMemory(), StoreOptions{})
	}
	for epoch := range int64(clockEpochs) {
		var rec [3]*Recorder
		for i := range rec {
			if rec[i], err = New(config); err != nil {
				t.Fatal(err)
			}
		}
		for i, p := range all {
			if int64(i%clockEpochs) != epoch {
				continue
			}
			// In the middle of the epoch: what the cut does is another question.
			sent := epoch*clockPeriod + 1e8 + int64(i)*(7e8/int64(len(all)))
			at := sent + p.At - p.Sent
			rec[0].Update(p.Flow, p.Packet, sent)
			rec[1].Update(p.Flow, p.Packet, at+int64(ahead(at)))
			rec[2].Update(p.Flow, p.Packet, at)
		}
		for i, r := range rec {
			if err := stores[i].Append(r); err != nil {
				t.Fatal(err)
			}
		}
		middle := epoch*clockPeriod + clockPeriod/2
		offset := ahead(middle)
		history.Add(clock.Reading{
			Time: middle, Offset: offset, Drift: 3e-5,
			Certain: estimate.Interval{Low: offset - 2e5, High: offset + 3e5, Confidence: 1},
			Likely:  estimate.Interval{Low: offset - 1e3, High: offset + 1e3, Confidence: 0.95},

			CertainDrift: estimate.Interval{Low: 3e-5, High: 3e-5, Confidence: 1},
			LikelyDrift:  estimate.Interval{Low: 3e-5, High: 3e-5, Confidence: 0.95},
		})
	}
	return stores, history
}

// Months later the delays of flows are what they were, though clocks disagreed.
func TestPathCorrectsClocks(t *testing.T) {
	config := testConfig
	config.Period, config.Shift, config.OneIn, config.Samples = clockPeriod, 6, 4, 100_000
	all := traffic.Flows(5, 3000)
	stores, history := storesApart(t, config, all)
	agree := Path{Up: stores[0], Down: stores[2]}
	apart := Path{Up: stores[0], Down: stores[1]}
	corrected := Path{Up: stores[0], Down: stores[1], Clock: history}
	for _, flow := range traffic.Truths(all, 1000) {
		record := joint.FlowRecord{Flow: flow.Flow, Packets: float64(flow.Packets)}
		want, _, err := agree.Estimate(t.Context(), record, 0, clockEpochs*clockPeriod)
		if err != nil {
			t.Fatal(err)
		}
		// Negative control: uncorrected, the mean is off by 40 ms.
		r, coverage, err := apart.Estimate(t.Context(), record, 0, clockEpochs*clockPeriod)
		if err == nil && math.Abs(r.Mean-want.Mean) < 30e6 || coverage.Clock.Confidence > 0 {
			t.Errorf("uncorrected: %v, %+v", r.Mean, coverage)
		}
		got, coverage, err := corrected.Estimate(t.Context(), record, 0, clockEpochs*clockPeriod)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(got.Mean-want.Mean) > 2*config.unit() || math.Abs(got.StdDev/want.StdDev-1) > 0.01 || got.StdDev == 0 {
			t.Errorf("mean %.0f, deviation %.0f; where clocks agree %.0f and %.0f", got.Mean, got.StdDev, want.Mean, want.StdDev)
		}
		k := coverage
		if math.Abs(k.Clock.Low+2e5) > 1e-3 || math.Abs(k.Clock.High-3e5) > 1e-3 {
			t.Errorf("%+v", k)
		}
	}
}

// Epochs of which the clock is not known are not used.
func TestPathLeavesOutUnknownClocks(t *testing.T) {
	config := testConfig
	config.Period, config.Shift = clockPeriod, 6
	all := traffic.Flows(5, 3000)
	stores, history := storesApart(t, config, all)
	short, err := clock.NewHistory(clockPeriod)
	if err != nil {
		t.Fatal(err)
	}
	for at := int64(clockPeriod / 2); at < 3*clockPeriod; at += clockPeriod {
		r, err := history.At(at)
		if err != nil {
			t.Fatal(err)
		}
		short.Add(r)
	}
	flow := traffic.Truths(all, 1000)[0]
	_, coverage, err := Path{Up: stores[0], Down: stores[1], Clock: short}.Estimate(t.Context(),
		joint.FlowRecord{Flow: flow.Flow, Packets: float64(flow.Packets) / 2}, 0, clockEpochs*clockPeriod)
	if err != nil || coverage.Epochs != 3 || len(coverage.Missing) != 3 || !errors.Is(coverage.Missing[0].Err, estimate.ErrNoSamples) {
		t.Errorf("%v, %+v", err, coverage)
	}
}

// same reports whether two answers have the same mean and interval.
func same(a, b Result) bool { return a.Mean == b.Mean && a.MeanInterval(0.9) == b.MeanInterval(0.9) }
