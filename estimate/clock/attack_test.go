package clock

import (
	"cmp"
	"math"
	"slices"
	"testing"
)

// attacked follows a clock over paths of at least 500 µs while an attacker changes the samples from the 20th
// interval on. It counts the readings whose certain and likely intervals exclude the truth, and those without
// an offset or with a step, and returns the largest error of the others.
func attacked(outliers int, attack func(interval int, s [2][]Sample)) (certain, likely, refused int, off float64) {
	w := newWorld(8, steady(1e6, 3e-5), [2]float64{5e5, 5e5}, 370, independent(hops(1)), independent(hops(1)))
	c := DefaultConfig
	c.Outliers = outliers
	tracker := must(New(c))
	for i := range 80 {
		s := w.interval(1e9)
		if i >= 20 {
			attack(i, s)
		}
		r, err := tracker.Add(s[there], s[back])
		truth := w.theta(float64(r.Time - epoch))
		switch {
		case err != nil || r.Stepped:
			refused++
			continue
		case !r.Certain.Contains(truth):
			certain++
		case !r.Likely.Contains(truth):
			likely++
		}
		off = max(off, math.Abs(r.Offset-truth))
	}
	return certain, likely, refused, off
}

// TestFloodMovesHalf: an attacker who knows nothing fills a queue, so that for 40 seconds every packet takes at
// least 5 ms more. The offset is off by half of that and the likely interval is wrong, as on any path that is
// longer than the way back; the certain interval holds. If a packet a second is spared, or one in 14, likely intervals hold, too.
func TestFloodMovesHalf(t *testing.T) {
	flood := func(every int) func(int, [2][]Sample) {
		return func(i int, s [2][]Sample) {
			least := slices.MinFunc(s[there], func(a, b Sample) int { return cmp.Compare(a.Delay, b.Delay) }).Delay
			for j := range s[there] {
				if i < 60 && (s[there][j].Delay > least || i%every > 0) {
					s[there][j].Delay += 5e6
				}
			}
		}
	}
	for _, f := range []struct {
		every    int
		wrong    bool
		off, far float64
	}{{100, true, 2.5e6, 1e4}, {14, false, 0, 5e6}, {1, false, 0, 2e4}} {
		certain, likely, refused, off := attacked(1, flood(f.every))
		if certain+refused > 0 || likely > 0 != f.wrong || math.Abs(off-f.off) > f.far {
			t.Errorf("%+v: %d certain and %d likely intervals wrong, %d refused, off by %.0f", f, certain, likely, refused, off)
		}
	}
}

// TestForgedSamples: whoever knows the seed or holds the key can send two packets with the same digest, each past one point only, and so
// make a sample of any delay; two packets that are taken for one by chance are such a sample, too. One such sample in a window, or in an
// interval if it is impossible, is left out: a tracker that allows no outliers, the control, believes it. With more of them the offset is
// off by half of what they say, as long as that is possible on this path; what is impossible is refused, or taken for a step. The certain
// interval holds throughout.
func TestForgedSamples(t *testing.T) {
	for _, c := range []struct {
		by      int64
		every   int // intervals
		number  int
		off     float64
		refused bool
	}{
		{-400_000, 16, 1, 10_000, false},
		{-400_000, 1, 2, 210_000, false},
		{-400_000, 1, 50, 210_000, false},
		{-2_000_000, 1, 1, 10_000, false},
		{-2_000_000, 1, 50, 10_000, true},
		{-500_000_000, 16, 1, 10_000, false},
		{300_000_000, 16, 1, 10_000, false},
		{5_000_000, 1, 50, 10_000, false},
	} {
		forge := func(i int, s [2][]Sample) {
			if of := s[i/c.every%min(c.every, 2)]; i%c.every == 0 {
				for j := range c.number {
					of[(j+1)*len(of)/(c.number+1)].Delay += c.by
				}
			}
		}
		certain, likely, refused, off := attacked(1, forge)
		if certain > 0 || off > c.off || c.off > 1e5 && off < c.off*0.9 || (refused > 0) != c.refused {
			t.Errorf("%+v: %d certain and %d likely intervals wrong, %d refused, off by %.0f", c, certain, likely, refused, off)
		}
		if certain, _, refused, off := attacked(0, forge); c.number == 1 && c.by < 0 && certain+refused == 0 && off < c.off {
			t.Errorf("%+v: a tracker that is told of no outliers does as well", c)
		}
	}
}
