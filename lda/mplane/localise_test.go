package mplane

import (
	"math"
	"slices"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/clock"
)

// A segment whose delay doubles for five intervals is distinguished from a clock at its end that is set in the
// first of them: by readings or, without them, by the round trip, which does not reveal the direction. If only
// one way is reported, the segment is unknown.
func TestLocaliseClocks(t *testing.T) {
	for name, c := range map[string]struct{ readings, oneWay bool }{"readings": {true, false}, "round trip": {}, "one way": {false, true}} {
		for seed := range uint64(20) {
			w := newWorld(t, seed)
			w.readings = c.readings
			fault := w.ids[2] // from F to C
			w.dropReport = func(r Report) bool { return c.oneWay && r.Monitor == fault.To }
			for interval := range uint64(24) {
				if interval == 19 {
					w.slow[fault] = w.usual[fault]
					w.offset[fault.To] -= w.usual[fault]
				}
				w.report(interval)
			}
			v, err := w.station.Localise(w.path, 23)
			if err != nil && !c.oneWay {
				t.Fatal(err)
			}
			if c.oneWay {
				if len(v.Suspects) > 0 || !slices.Contains(v.Unknown, fault) {
					t.Errorf("%s: %+v, unknown %v", name, v.Suspects, v.Unknown)
				}
				continue
			}
			if len(v.Suspects) != 1 || v.Suspects[0].Segment != fault || v.Suspects[0].BothWays == c.readings ||
				math.Abs(v.Suspects[0].Excess/w.usual[fault]-1) > 0.3 {
				t.Errorf("%s: %+v", name, v.Suspects)
			}
		}
	}
}

// A path is combined from segments between clocks that are 100 ms apart and drift by 50 ppm. Whichever clocks
// are unknown, and however many reports of the first intervals are lost, the certain interval holds the path's
// delay.
func TestPathCertain(t *testing.T) {
	for seed := range uint64(30) {
		w := newWorld(t, seed)
		w.dropReport = func(r Report) bool { return r.Interval < 3 && w.random.IntN(2) == 0 }
		for interval := range uint64(12) {
			w.report(interval)
			got, err := w.station.Path(w.path, interval)
			if err != nil {
				continue // a segment is missing
			}
			want, variance, kept := 0.0, 0.0, 1.0
			for _, id := range w.ids {
				want += w.truth(id)
				variance += math.Pow(0.5*w.usual[id], 2)
				m, _ := w.segment(id, interval)
				kept *= 1 - float64(m.Lost)/float64(m.Sent)
			}
			if math.Abs(got.StdDev-math.Sqrt(variance)) > 1 || math.Abs(got.Loss-(1-kept)) > 1e-12 || got.N != 5000 {
				t.Errorf("deviation %v, loss %v, N %d; want %v, %v, 5000", got.StdDev, got.Loss, got.N, math.Sqrt(variance), 1-kept)
			}
			// Both directions are alike within 20 µs each of three links, so half of the difference finds the
			// offsets to about that.
			if interval == 11 && math.Abs(got.Mean-want) > 0.1*want {
				t.Errorf("seed %d: mean %.0f, want %.0f within 10 %%", seed, got.Mean, want)
			}
			held, oneWay := got.MeanInterval(0.999), math.IsInf(got.certain.High, 1)
			if !held.Contains(want) || !held.Contains(got.Mean) || !oneWay && got.certain.High > 3*want {
				t.Errorf("seed %d, interval %d: mean %.0f, %v, want %.0f", seed, interval, got.Mean, held, want)
			}
		}
	}
}

// A tracker that does not know the offset gives no reading.
func TestSetClock(t *testing.T) {
	var m Measurement
	m.SetClock(clock.Reading{Offset: 5, Likely: estimate.Interval{Low: math.Inf(-1), High: math.Inf(1)}})
	if m.ahead != 0 || m.aheadError != 0 {
		t.Errorf("%+v of an interval without ends", m)
	}
	m.SetClock(clock.Reading{Offset: 5, Likely: estimate.Interval{Low: -35, High: 45}})
	if m.ahead != 5 || m.aheadError != 20 {
		t.Errorf("%+v, want 5 ± 20", m)
	}
}
