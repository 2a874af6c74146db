package mplane

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/clock"
)

// A fault that lasts is named in every interval, with when it began, and what
// it does to the history does not hide it.
func TestLocaliseLasting(t *testing.T) {
	n := toy(t)
	path := routers(t, n, "A", "F", "C", "D")
	w := newWorld(t, toyPlan(t, n), 3)
	ids, err := w.plan.Along(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	const begins = 20
	for interval := range uint64(begins + 10) {
		if interval == begins {
			w.slow[ids[1]] = 2 * w.usual[ids[1]]
		}
		w.report(interval)
		if interval < begins {
			continue
		}
		v, err := w.station.Localise(path, 0, interval)
		if err != nil || len(v.Suspects) != 1 || v.Suspects[0].Segment != ids[1] || v.Suspects[0].Since != begins {
			t.Errorf("interval %d: %+v, %v; want %+v since %d", interval, v.Suspects, err, ids[1], begins)
		}
	}
}

// A segment that doubles is told from a clock that is set in the same interval,
// at its end: by readings, and without them by the round trip, which also tells
// nothing of the direction. If only one way is reported, the segment is unknown.
func TestLocaliseClocks(t *testing.T) {
	n := toy(t)
	path := routers(t, n, "A", "F", "C", "D")
	for name, c := range map[string]struct{ readings, oneWay bool }{"readings": {true, false}, "round trip": {}, "one way": {false, true}} {
		for seed := range uint64(20) {
			w := newWorld(t, toyPlan(t, n), seed)
			ids, err := w.plan.Along(path, 0)
			if err != nil {
				t.Fatal(err)
			}
			w.readings = c.readings
			fault := ids[2] // from F to C
			w.dropReport = func(r Report) bool { return c.oneWay && r.Monitor == fault.To }
			for interval := range uint64(20) {
				if interval == 19 {
					w.slow[fault] = w.usual[fault]
					w.offset[fault.To] -= w.usual[fault]
				}
				w.report(interval)
			}
			v, err := w.station.Localise(path, 0, 19)
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

// Of segments between clocks 100 ms apart that drift by 50 ppm, a path is put together.
// Whatever clocks do not show, and however many reports of the first intervals are lost,
// what is certain of it holds its delay.
func TestPathCertain(t *testing.T) {
	n := toy(t)
	path := routers(t, n, "A", "F", "C", "D")
	for seed := range uint64(30) {
		w := newWorld(t, toyPlan(t, n), seed)
		w.dropReport = func(r Report) bool { return r.Interval < 3 && w.random.IntN(2) == 0 }
		for interval := range uint64(12) {
			w.report(interval)
			got, err := w.station.Path(path, 0, interval)
			if err != nil {
				continue // a segment is missing
			}
			want, variance, kept := 0.0, 0.0, 1.0
			for _, id := range got.Segments {
				want += w.truth(id)
				variance += math.Pow(0.5*w.usual[id], 2)
				m, _ := w.segment(id, interval)
				kept *= 1 - float64(m.Lost)/float64(m.Sent)
			}
			if math.Abs(got.StdDev-math.Sqrt(variance)) > 1 || math.Abs(got.Loss-(1-kept)) > 1e-12 || got.N != 5000 {
				t.Errorf("deviation %v, loss %v, N %d; want %v, %v, 5000", got.StdDev, got.Loss, got.N, math.Sqrt(variance), 1-kept)
			}
			// Both directions are alike within 20 µs each of three links, so half of
			// the difference finds the offsets to about that.
			if interval == 11 && math.Abs(got.Mean-want) > 0.1*want {
				t.Errorf("seed %d: mean %.0f, want %.0f within 10 %%", seed, got.Mean, want)
			}
			held, oneWay := got.MeanInterval(0.999), math.IsInf(got.Certain.High, 1)
			if !held.Contains(want) || !held.Contains(got.Mean) || !oneWay && got.Certain.High > 3*want {
				t.Errorf("seed %d, interval %d: mean %.0f, %v, want %.0f", seed, interval, got.Mean, held, want)
			}
		}
	}
}

// Bursts make a mean that has been seen before no news, nor one that the
// deviation beside it explains; packets that are all later are.
func TestExcess(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var past []sample
	for range 40 { // a queue that is busy now and then: the mean is the deviation, about
		busy := 10_000 / math.Pow(1-random.Float64(), 1/1.5)
		past = append(past, sample{mean: 1e6 + busy*(1+0.05*random.NormFloat64()), deviation: busy, chance: 100})
	}
	sureOf := func(mean, deviation float64) (burst, beyond float64) {
		var means []float64
		for _, p := range past {
			means = append(means, p.mean)
		}
		_, _, burst = excess(mean, means, 100, bursts, 15)
		return burst, beyondBursts(slices.Insert(past, 0, sample{mean: mean, deviation: deviation, chance: 100}), 0, 15)
	}
	for _, c := range []struct {
		name            string
		mean, deviation float64
		sure            bool
	}{
		{"usual", 1e6 + 12_000, 12_000, false},
		{"a burst", 1e6 + 100_000, 100_000, false},
		{"all packets later", 1e6 + 12_000 + 60_000, 12_000, true},
		{"far beyond any burst", 1e6 + 1e8, 1e8, true},
	} {
		if burst, beyond := sureOf(c.mean, c.deviation); max(burst, beyond) >= sure != c.sure {
			t.Errorf("%s: sure %.4f by the mean, %.4f beyond bursts", c.name, burst, beyond)
		}
	}
}

// What a tracker cannot tell is no reading.
func TestSetClock(t *testing.T) {
	var m Measurement
	m.SetClock(clock.Reading{Offset: 5, Likely: estimate.Interval{Low: math.Inf(-1), High: math.Inf(1)}})
	if m.Ahead != 0 || m.AheadError != 0 {
		t.Errorf("%+v of an interval without ends", m)
	}
	m.SetClock(clock.Reading{Offset: 5, Likely: estimate.Interval{Low: -35, High: 45}})
	if m.Ahead != 5 || m.AheadError != 20 {
		t.Errorf("%+v, want 5 ± 20", m)
	}
}
