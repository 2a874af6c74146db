package clock

import (
	"math"
	"math/rand/v2"
	"testing"
)

// follow runs a world of a minute through a tracker and checks readings within every interval, up to the last
// sample of either direction: no tracker can know of a step after that.
func follow(t *testing.T, w *world, tracker *Tracker, check func(interval int, r Reading, truth float64)) (unknown int) {
	t.Helper()
	for i := range 60 {
		s := w.interval(1e9)
		if _, err := tracker.Add(s[there], s[back]); err != nil {
			unknown++
			continue
		}
		if len(s[there]) == 0 || len(s[back]) == 0 {
			continue
		}
		last := min(s[there][len(s[there])-1].Time, s[back][len(s[back])-1].Time)
		for at := w.now - 1e9; at <= last; at += 99e6 {
			r, err := tracker.At(at)
			if err != nil {
				t.Fatal(err)
			}
			check(i, r, w.theta(float64(at-epoch)))
		}
	}
	return unknown
}

// Whatever the clock does in the middle of an interval, the certain interval holds the truth; the tracker
// notices large changes and is right again soon after.
func TestSteps(t *testing.T) {
	for _, c := range []struct {
		name   string
		law    [2]func() law
		rate   float64
		floors [2]float64
		notice float64 // steps that must be noticed
		right  float64 // by how much the offset may be off later, ns
	}{
		{"loaded", [2]func() law{laws[0].law, laws[3].law}, 370, [2]float64{5e5, 5e5}, 30e3, 2e3},
		{"two hops", [2]func() law{laws[4].law, laws[4].law}, 370, [2]float64{5e5, 5e5}, 200e3, 6e3},
		{"short", [2]func() law{laws[2].law, laws[2].law}, 370, [2]float64{1e4, 1e4}, 30e3, 2e3},
		{"sparse", [2]func() law{laws[4].law, laws[4].law}, 10, [2]float64{5e5, 5e5}, math.Inf(1), 60e3},
	} {
		for seed, jump := range []float64{3e3, 3e4, 3e5, -7e5, 9e5, -1.5e6, 1e8, -3e9, 0} {
			at := (30 + rand.New(rand.NewPCG(uint64(seed), 99)).Float64()) * 1e9
			theta := func(now float64) float64 {
				x := 1e6 + 3e-5*now
				switch {
				case now > at && jump == 0: // slewed
					x += 5e-4 * min(now-at, 2.3e9)
				case now > at:
					x += jump
				}
				return x
			}
			w := newWorld(uint64(seed), theta, c.floors, c.rate, c.law[0](), c.law[1]())
			noticed := false
			unknown := follow(t, w, must(New(DefaultConfig)), func(i int, r Reading, truth float64) {
				noticed = noticed || r.Stepped
				if !r.Certain.Contains(truth) {
					t.Errorf("%s, %g µs, seed %d, interval %d: %.0f not in %+v", c.name, jump/1e3, seed, i, truth, r.Certain)
				}
				if e := math.Abs(r.Offset - truth); i >= 48 && e > c.right {
					t.Errorf("%s, %g µs, seed %d: off by %.0f ns in interval %d", c.name, jump/1e3, seed, e, i)
				}
			})
			if unknown > 2 && c.rate > 10 {
				t.Errorf("%s, %g µs, seed %d: %d intervals without an offset", c.name, jump/1e3, seed, unknown)
			}
			if !noticed && math.Abs(jump) >= c.notice {
				t.Errorf("%s, %g µs, seed %d: not noticed", c.name, jump/1e3, seed)
			}
		}
	}
}

// A queue whose delays rise and fall by 20 ms every 3.7 s is not taken for a clock that steps.
func TestQueuesAreNotClocks(t *testing.T) {
	var w *world
	queue := func(rng *rand.Rand, _ float64) float64 {
		return math.Mod(w.links[back].last+1.5e9, 3.7e9)/3.7e9*20e6 + 1e6*rng.ExpFloat64()
	}
	w = newWorld(5, steady(1e6, 3e-5), [2]float64{5e5, 5e5}, 150, independent(hops(1)), queue)
	follow(t, w, must(New(DefaultConfig)), func(i int, r Reading, truth float64) {
		if r.Stepped || !r.Certain.Contains(truth) {
			t.Errorf("interval %d: %.0f and %+v", i, truth, r)
		}
	})
}

// A rate that wanders as much as the Config says, and one that wanders ten times as much.
func TestWander(t *testing.T) {
	for _, c := range []struct{ amplitude, right float64 }{{1e-7, 2e3}, {1e-6, 5e3}} {
		const period = 100e9
		theta := func(now float64) float64 {
			return 1e6 + 3e-5*now - c.amplitude*period/(2*math.Pi)*math.Cos(2*math.Pi*now/period)
		}
		w := newWorld(6, theta, [2]float64{5e5, 5e5}, 370, independent(hops(1)), independent(hops(1)))
		follow(t, w, must(New(DefaultConfig)), func(i int, r Reading, truth float64) {
			if !r.Certain.Contains(truth) {
				t.Errorf("interval %d: %.0f not in %+v", i, truth, r.Certain)
			}
			if e := math.Abs(r.Offset - truth); e > c.right {
				t.Errorf("wander %g: interval %d off by %.0f ns", c.amplitude, i, e)
			}
		})
	}
}

// One packet each way in an interval, and pauses: after a step nothing is certain for a while, and then the offset is right.
func TestStepOfAnIdleLink(t *testing.T) {
	for _, jump := range []float64{5e6, -5e6, 1e9} {
		theta := func(now float64) float64 {
			x := 3e7 - 1e-5*now
			if now > 40.5e9 {
				x += jump
			}
			return x
		}
		tracker := must(New(DefaultConfig))
		right, waited := 0, 0
		for i := range 70 {
			at := float64(i) * 1e9
			forth := []Sample{{epoch + int64(at) + 3e8, int64(math.Ceil(5e5 + theta(at+3e8+5e5))), 1}}
			home := []Sample{{epoch + int64(at) + 7e8, int64(math.Ceil(5e5 - theta(at+7e8-5e5))), 1}}
			if i%8 == 1 {
				forth, home = nil, nil
			}
			// Cells of that many packets have no weight, and do no harm.
			forth = append(forth, Sample{epoch + int64(at), math.MinInt64, MaxPackets + 1})
			r, err := tracker.Add(forth, home)
			if err != nil {
				waited++
				continue
			}
			truth := theta(float64(r.Time - epoch))
			if !r.Certain.Contains(truth) {
				t.Errorf("step of %g, interval %d: %.0f not in %+v", jump, i, truth, r.Certain)
			}
			if math.Abs(truth-r.Offset) < 1e5 && i > 60 {
				right++
			}
		}
		if right < 5 || waited > 12 {
			t.Errorf("step of %g: right in %d intervals late, unknown in %d", jump, right, waited)
		}
	}
}
