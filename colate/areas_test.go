package colate

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/traffic"
)

// A scene is some minutes of flow 1 among others, each with a rate and a law of delays.
type scene struct {
	config  Config
	seconds float64
	flows   []sceneFlow
	offset  func(at int64) int64 // of the second point's clock
}

type sceneFlow struct {
	rate float64 // packets a second
	// pass returns how long a packet takes, or whether it is lost.
	pass func(rng *rand.Rand, at float64) (delay float64, lost bool)
}

// exponential returns a law of delays, in seconds.
func exponential(mean, loss float64) func(*rand.Rand, float64) (float64, bool) {
	return func(rng *rand.Rand, _ float64) (float64, bool) { return mean * rng.ExpFloat64(), rng.Float64() < loss }
}

// play keeps a scene in two stores. It returns the record of those packets of the first flow that arrived, and their mean.
func (s *scene) play(t testing.TB, seed uint64) (path Path, record joint.FlowRecord, mean float64) {
	t.Helper()
	record.Flow = hashing.Flow(hashing.Mix(1, seed))
	rng := rand.New(rand.NewPCG(seed, 4))
	all := make([]passage, 0, 1<<18)
	for i, f := range s.flows {
		key := hashing.Flow(hashing.Mix(uint64(i)+1, seed))
		for at := rng.ExpFloat64() / f.rate; at < s.seconds; at += rng.ExpFloat64() / f.rate {
			p := passage{Flow: key, Packet: hashing.Packet(rng.Uint64()), Sent: int64(at * 1e9)}
			delay, lost := f.pass(rng, at)
			p.At, p.Lost = p.Sent+int64(delay*1e9), lost
			if i == 0 && !lost {
				record.Packets++
				mean += float64(p.At - p.Sent)
			}
			if s.offset != nil {
				p.At += s.offset(p.At)
			}
			all = append(all, p)
		}
	}
	w := world{config: s.config}
	epochs, _ := w.cut(t, all)
	return w.stored(t, epochs), record, mean / max(record.Packets, 1)
}

func minutes(counters int) Config {
	c := DefaultConfig
	c.Counters, c.OneIn, c.Samples = counters, 0, 0
	return c
}

// Windows of an hour are right however many packets cross the cuts of the clock, and whatever their delays add
// up to: neither a choice of fast packets, nor sums that wrap.
func TestHoursAreRight(t *testing.T) {
	long(t)
	small := func(rate, mean float64, n int) (flows []sceneFlow) {
		for range n {
			flows = append(flows, sceneFlow{rate, exponential(mean, 0)})
		}
		return flows
	}
	for name, c := range map[string]struct {
		scene
		within float64
	}{
		"250 packets/s of 100 ms":       {scene{config: minutes(2000), seconds: 1800, flows: small(250, 0.1, 1)}, 0.002},
		"ten flows of 10/s, 300 ms":     {scene{config: minutes(2000), seconds: 1800, flows: small(10, 0.3, 10)}, 0.05},
		"30 minutes of cuts of 1 s":     {scene{config: cutSeconds(2000), seconds: 300, flows: small(20, 0.5, 10)}, 0.1},
		"cuts of 1 s, 0.5 s, 1 % lost ": {scene{config: cutSeconds(2000), seconds: 300, flows: []sceneFlow{{20, exponential(0.5, 0.01)}}}, 0.1},
	} {
		for seed := range uint64(3) {
			path, record, mean := c.play(t, seed)
			r, _, err := path.Estimate(t.Context(), record, 0, 4e12)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			interval := r.MeanInterval(0.999)
			if !interval.Contains(mean) || math.Abs(r.Mean/mean-1) > c.within {
				t.Errorf("%s: a mean of %v, in %v, is %v", name, r.Mean, interval, mean)
			}
		}
	}
}

// A part of what is stored gives right answers, too, for flows that are alone in their counters: their intervals hold
// what the ends of the window owe each other, also where packets wait alike. Without it 127 of 320 hold.
func TestWindows(t *testing.T) {
	spells := func(rng *rand.Rand, at float64) (float64, bool) {
		if math.Mod(at+0.05, 1) < 0.1 {
			return 0.02 * rng.ExpFloat64(), false
		}
		return 0.001 * rng.ExpFloat64(), false
	}
	c := cutSeconds(20_000)
	c.Period = 5e8
	for name, pass := range map[string]func(*rand.Rand, float64) (float64, bool){"exponential": exponential(0.005, 0), "spells": spells} {
		var s score
		var off, wide []float64
		for seed := range uint64(8) {
			rng := rand.New(rand.NewPCG(seed, 6))
			var all []passage
			for i := range 60_000 {
				at := float64(i) / 1e4
				delay, _ := pass(rng, at)
				all = append(all, passage{Flow: hashing.Flow(hashing.Mix(rng.Uint64N(20), seed)), Packet: hashing.Packet(rng.Uint64()),
					Sent: int64(at * 1e9), At: int64((at + delay) * 1e9)})
			}
			epochs, arrived := world{config: c}.cut(t, all)
			truths := traffic.Truths(slices.DeleteFunc(arrived, func(p passage) bool { return p.At < 2.5e9 || p.At >= 4e9 }), 1)
			answers, _, err := world{config: c}.stored(t, epochs).EstimateAll(t.Context(), recordsOf(truths), 2.5e9, 4e9-1)
			if err != nil {
				t.Fatal(err)
			}
			for i := range answers {
				in := answers[i].MeanInterval(0.95)
				s.add(in, truths[i].Mean)
				off, wide = append(off, math.Abs(answers[i].Mean-truths[i].Mean)), append(wide, (in.High-in.Low)/2)
			}
		}
		s.want(t, name, 160)
		if ratio := median(wide) / median(off); ratio > 10 {
			t.Errorf("%s: intervals are %.3g times as wide as errors", name, ratio)
		}
	}
}

func cutSeconds(counters int) Config {
	c := minutes(counters)
	c.Period = 1e9
	return c
}

// Minutes in which the flow alone waited and lost, the first and the last too, are not guessed from the others' packets:
// the interval holds them, or there is no answer, and the minutes are named. Guessing them is the negative control.
func TestDarkMinutes(t *testing.T) {
	long(t)
	for from, to := range map[float64]float64{0: 60, 1200: 1320, 3540: 3600} {
		for _, rate := range []float64{3, 30, 100} {
			s := scene{config: minutes(2000), seconds: 3600, flows: []sceneFlow{{rate, func(rng *rand.Rand, at float64) (float64, bool) {
				if at > from && at < to {
					return 0.2 * rng.ExpFloat64(), rng.Float64() < 0.3
				}
				return 0.001 * rng.ExpFloat64(), false
			}}}}
			for range 50 {
				s.flows = append(s.flows, sceneFlow{1, exponential(0.001, 0)})
			}
			path, record, mean := s.play(t, 7)
			r, _, err := path.Estimate(t.Context(), record, 0, 4e12)
			if interval := r.MeanInterval(0.999); err == nil && !interval.Contains(mean) {
				t.Errorf("%v packets/s from %v s: %v in %v, is %v", rate, from, r.Mean, interval, mean)
			}
			if err != nil && (!errors.Is(err, estimate.ErrNoSamples) || !strings.Contains(err.Error(), "epochs from ")) {
				t.Errorf("%v packets/s: %v, want the minutes named", rate, err)
			}
			d, _, decoded := path.Decode(t.Context(), []joint.FlowRecord{record}, 0, 4e12, joint.Options{})
			if decoded == nil && d.Usable[0] > 0 && !d.MeanInterval(0, 0.999).Contains(mean) {
				t.Errorf("%v packets/s from %v s, decoded: %v in %v, is %v", rate, from, d.Mean[0], d.MeanInterval(0, 0.999), mean)
			}
		}
	}
}

// A drift of the clocks looks like delays that vary: the deviation counts as unknown, and its interval begins
// where it would without the drift, also of seven samples.
func TestDriftAndDeviations(t *testing.T) {
	for drift, oneIn := range map[float64]uint32{0: 20, 5e-5: 20, -5e-5: 20, 4e-5: 7000} {
		law := func(rng *rand.Rand, _ float64) (float64, bool) { return 0.2 + 0.0005*rng.ExpFloat64(), false }
		s := scene{config: minutes(2000), seconds: 900, flows: []sceneFlow{{50, law}}}
		s.config.OneIn, s.config.Samples = oneIn, 10_000
		s.offset = func(at int64) int64 { return int64(drift * float64(at)) }
		for range 20 {
			s.flows = append(s.flows, sceneFlow{3, law})
		}
		path, record, _ := s.play(t, 6)
		r, _, err := path.Estimate(t.Context(), record, 0, 900e9)
		if err != nil {
			t.Fatal(err)
		}
		if interval := r.DeviationInterval(0.95); !interval.Contains(0.5e6) || drift != 0 && r.StdDev != 0 {
			t.Errorf("a drift of %v: a deviation of %v in %v, is 500,000", drift, r.StdDev, interval)
		}
	}
}
