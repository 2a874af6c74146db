package clock

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/hoplag/hoplag/estimate"
)

// Sums of 40 bits over one packet and over four, with any offset, and a clock that leaves their range.
func TestSums(t *testing.T) {
	for _, c := range []struct {
		offset  float64
		packets int
	}{{0, 1}, {1e8, 1}, {-7e11, 1}, {5.4975581e11, 1}, {1e16, 1}, {1e8, 4}} {
		w := newWorld(9, steady(c.offset, 9e-4), [2]float64{5e5, 5e5}, 370, independent(hops(1)), independent(hops(1)))
		tracker := must(New(DefaultConfig))
		for i := range 30 {
			s := w.interval(1e9)
			cells := [2][]Sample{summed(There, s[there], 0, 1, c.packets, w.now), summed(Back, s[back], 1, 0, c.packets, w.now)}
			r, err := tracker.Add(cells[there], cells[back])
			truth := w.theta(float64(r.Time - epoch))
			e := math.Remainder(r.Offset-truth, 1<<40)
			if err != nil || math.Abs(e) > 1e4*math.Sqrt(float64(c.packets)) || c.packets > 1 && !r.Certain.Contains(truth) {
				t.Errorf("%+v, interval %d: off by %g, %+v, %v", c, i, e, r, err)
			}
		}
	}
}

// summed adds up samples, a given number to a cell. Packets took a given part of their delay before their time, and the rest after it.
func summed(of func(sent, received uint64, packets uint32, bits int, now int64) Sample, all []Sample, before, after int64,
	packets int, now int64,
) (cells []Sample) {
	const mask = 1<<40 - 1
	for ; len(all) >= packets; all = all[packets:] {
		var sent, received uint64
		for _, x := range all[:packets] {
			sent, received = sent+uint64(x.Time-before*x.Delay), received+uint64(x.Time+after*x.Delay)
		}
		cells = append(cells, of(sent&mask, received&mask, uint32(packets), 40, now-5e8))
	}
	return cells
}

// One direction alone gives no offset, and the reading says so.
func TestOneDirection(t *testing.T) {
	for d := range 2 {
		w := newWorld(11, steady(1e8, 3e-5), [2]float64{5e5, 5e5}, 370, queueing(0.8, 1e5, exponential))
		tracker := must(New(DefaultConfig))
		for i := range 16 {
			s := w.interval(1e9)
			s[1-d] = nil
			r, err := tracker.Add(s[there], s[back])
			if !errors.Is(err, estimate.ErrNoSamples) {
				t.Fatalf("error %v", err)
			}
			if !math.IsInf(r.Certain.Low, -1) || !math.IsInf(r.Likely.High, 1) {
				t.Errorf("%+v", r)
			}
			if !r.CertainDrift.Contains(3e-5) || !r.LikelyDrift.Contains(3e-5) {
				t.Errorf("direction %d, interval %d: %+v", d, i, r)
			}
		}
	}
}

func TestAddAllocatesNothing(t *testing.T) {
	w := newWorld(12, steady(1e8, 3e-5), [2]float64{5e5, 5e5}, 370, independent(hops(1)))
	tracker := must(New(DefaultConfig))
	for range 50 {
		s := w.interval(1e9)
		_, _ = tracker.Add(s[there], s[back])
	}
	s := w.interval(1e9)
	if n := testing.AllocsPerRun(1, func() {
		if _, err := tracker.Add(s[there], s[back]); err != nil {
			t.Error(err)
		}
	}); n > 0 {
		t.Errorf("Add allocates %v times", n)
	}
}

func TestConfigValidate(t *testing.T) {
	for name, spoil := range map[string]func(*Config){
		"Window":     func(c *Config) { c.Window = 0 },
		"MaxDrift":   func(c *Config) { c.MaxDrift = math.NaN() },
		"Wander":     func(c *Config) { c.Wander = 0.1 },
		"Outliers":   func(c *Config) { c.Outliers = -1 },
		"Resolution": func(c *Config) { c.Resolution = -1 },
		"Asymmetry":  func(c *Config) { c.Asymmetry = math.NaN() },
		"SumBits":    func(c *Config) { c.SumBits = 65 },
	} {
		c := DefaultConfig
		spoil(&c)
		if _, err := New(c); !errors.Is(err, estimate.ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
	w := newWorld(11, steady(1e8, 3e-3), [2]float64{5e5, 5e5}, 370, independent(hops(1)))
	tracker, told := must(New(DefaultConfig)), ""
	for range 5 {
		s := w.interval(1e9)
		if _, err := tracker.Add(s[there], s[back]); err != nil {
			told = err.Error()
		}
	}
	if !strings.Contains(told, "MaxDrift") {
		t.Errorf("a drift beyond what the Config has: %q", told)
	}
	tracker = must(New(DefaultConfig))
	if _, err := tracker.Add([]Sample{{}}, nil); !errors.Is(err, estimate.ErrConfig) {
		t.Errorf("a sample without packets: %v", err)
	}
	if _, err := tracker.Add(nil, nil); !errors.Is(err, estimate.ErrNoSamples) {
		t.Errorf("no samples: %v", err)
	}
}

// Whatever the samples are, the tracker returns no NaN and does not panic.
func FuzzTracker(f *testing.F) {
	f.Add(int64(0), int64(5), int64(7), int64(-3), uint32(1), int64(1e9))
	f.Add(int64(math.MaxInt64), int64(math.MinInt64), int64(math.MinInt64), int64(math.MaxInt64), uint32(math.MaxUint32), int64(-1e9))
	f.Fuzz(func(t *testing.T, at, forth, home, step int64, packets uint32, gap int64) {
		c := DefaultConfig
		c.SumBits = 1 + int(packets%64)
		tracker := must(New(c))
		for i := range int64(20) {
			r, err := tracker.Add(
				[]Sample{{at + i*gap, forth + i*step, packets | 1}, {at - i*gap, forth, 1}},
				[]Sample{{at + i*gap, home, 1}, {at, home - i*step, 1}})
			if err != nil {
				continue
			}
			for _, x := range []float64{r.Offset, r.Drift, r.Certain.Low, r.Certain.High, r.Likely.Low, r.Likely.High, r.RoundTrip} {
				if math.IsNaN(x) {
					t.Fatalf("%+v", r)
				}
			}
			if r.Certain.Low > r.Certain.High || r.Likely.Low > r.Likely.High {
				t.Fatalf("%+v", r)
			}
		}
	})
}
