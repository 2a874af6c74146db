package lda

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// repeating passes packets of 40 ± 25 µs, a share of which are copies of one
// that take longer by extra, and loses so many of those.
func repeating(t *testing.T, packets int, share, extra float64, lost int) (up, down *Aggregator, mean float64, all estimate.Moments) {
	t.Helper()
	up, down = mustNewFor(t, DefaultConfig), mustNewFor(t, DefaultConfig)
	rng := rand.New(rand.NewPCG(12, 5))
	key := hashing.NewSipHash(rng.Uint64()) // no key helps
	copyOf := hashing.Packet(key.Word(1 << 40))
	n := 0
	for i := range packets {
		p, delay := hashing.Packet(key.Word(uint64(i))), 40_000+25_000*rng.NormFloat64()
		repeated := rng.Float64() < share
		if repeated {
			p, delay = copyOf, delay+extra
		}
		now := int64(i) * 1000
		up.Update(p, now)
		if repeated && lost > 0 {
			lost--
			continue
		}
		down.Update(p, now+int64(delay))
		all.Add(float64(int64(delay)))
		if !repeated {
			mean += delay
			n++
		}
	}
	return up, down, mean / float64(n), all
}

// Copies of one packet are seen, counted, and left out of the mean and the
// deviation of the others.
func TestRepeats(t *testing.T) {
	const packets = 200_000
	for _, c := range []struct {
		share, extra float64
		lost         int
	}{{0.01, 150_000, 0}, {0.05, 150_000, 1}, {0.5, 1e9, 7}} {
		up, down, mean, truth := repeating(t, packets, c.share, c.extra, c.lost)
		r, err := EstimateRest(up, down)
		if err != nil {
			t.Errorf("%v: %v", c, err)
			continue
		}
		plain, plainErr := Estimate(up, down)
		t.Logf("%v: %+v, mean %.0f deviation %.0f of the others (%.0f); of all %.0f, %.0f, %v",
			c, r.Repeats, r.Mean, r.StdDev, mean, plain.Mean, plain.StdDev, plainErr)
		if i, d := plain.MeanInterval(0.98), plain.DeviationInterval(0.98); c.share == 0.5 {
			if !errors.Is(plainErr, estimate.ErrNoSamples) {
				t.Errorf("%v: %+v, %v: half of the packets are not known", c, plain, plainErr)
			}
		} else if plainErr != nil || !i.Contains(truth.Mean()) || !d.Contains(truth.StdDev()) {
			t.Errorf("%v: mean %v in %+v, want %v; deviation %v in %+v, want %v", c, plain.Mean, i, truth.Mean(), plain.StdDev, d, truth.StdDev())
		}
		if c.lost == 0 && !near(plain.Mean, truth.Mean(), 1e-9) {
			t.Errorf("%v: mean %v, want %v exactly: none was lost", c, plain.Mean, truth.Mean())
		}
		if (plain.Repeats.Unknown > 0) != (c.lost > 0) || plain.Spoken != plain.Received {
			t.Errorf("%v: %+v", c, plain)
		}
		if want := c.share * packets; math.Abs(float64(r.Repeats.Packets)-want) > 0.05*want+100 {
			t.Errorf("%v: %d packets repeat, want %.0f", c, r.Repeats.Packets, want)
		}
		if e := math.Abs(r.Mean - mean); e > 500 { // 25 µs of 200,000, several times over
			t.Errorf("%v: mean %.0f of those that do not repeat, want %.0f", c, r.Mean, mean)
		}
		if math.Abs(r.StdDev-25_000) > 2500 { // of about 1,000 cells, four deviations
			t.Errorf("%v: deviation %.0f, want 25,000", c, r.StdDev)
		}
		if r.Sent != packets || r.Lost != uint64(c.lost) {
			t.Errorf("%v: %d sent, %d lost", c, r.Sent, r.Lost)
		}
	}
}

// Honest traffic does not repeat, and loses nothing by being asked.
func TestNoRepeats(t *testing.T) {
	up, down, _, _ := repeating(t, 200_000, 0, 0, 0)
	r, err := EstimateRest(up, down)
	plain, _ := Estimate(up, down)
	if r.Repeats != (Repeats{}) || err != nil || r != plain {
		t.Errorf("%+v, %v\n%+v\n%+v", r.Repeats, err, r, plain)
	}
}

// The same over many intervals, of which copies cross the cuts.
func TestAccumulatedRepeats(t *testing.T) {
	const intervals, packets = 12, 20_000
	for _, c := range []struct {
		share float64
		lost  int
	}{{0, 0}, {0.01, 0}, {0.01, 1}, {0.05, 0}, {0.05, 1}} {
		run := cutRun{}
		for range intervals {
			run.up, run.down = append(run.up, mustNewFor(t, DefaultConfig)), append(run.down, mustNewFor(t, DefaultConfig))
		}
		rng := rand.New(rand.NewPCG(3, 5))
		copyOf := hashing.Packet(rng.Uint64())
		repeats, lost := 0, c.lost
		for i := range (intervals - 1) * packets {
			p, delay := hashing.Packet(rng.Uint64()), int64(40_000*rng.ExpFloat64())
			now := int64(i) * cutInterval / packets
			copied := rng.Float64() < c.share
			if copied {
				p, delay = copyOf, delay+150_000
				repeats++
			}
			run.up[now/cutInterval].Update(p, now)
			if copied && lost > 0 && i > 5*packets {
				lost--
				continue
			}
			run.truth.Add(float64(delay))
			run.down[(now+delay)/cutInterval].Update(p, now+delay)
		}
		a := accumulate(t, DefaultConfig, &run)
		r, err := a.Estimate()
		if err != nil {
			t.Fatal(err)
		}
		i, d := r.MeanInterval(0.98), r.DeviationInterval(0.98)
		t.Logf("%v: mean %.0f in %.0f to %.0f, want %.0f; deviation %.0f, want %.0f; %+v",
			c, r.Mean, i.Low, i.High, run.truth.Mean(), r.StdDev, run.truth.StdDev(), r.Repeats)
		if !i.Contains(run.truth.Mean()) || !d.Contains(run.truth.StdDev()) {
			t.Errorf("%v: mean %v in %+v, want %v; deviation %v in %+v, want %v", c, r.Mean, i, run.truth.Mean(), r.StdDev, d, run.truth.StdDev())
		}
		if c.lost == 0 && (r.N != r.Received || !near(r.Mean, run.truth.Mean(), 1e-9)) {
			t.Errorf("%v: mean %v of %d, want %v exactly: none was lost", c, r.Mean, r.N, run.truth.Mean())
		}
		if math.Abs(float64(r.Repeats.Packets)-float64(repeats)) > 0.05*float64(repeats) || (r.Repeats.Unknown > 0) != (c.lost > 0) {
			t.Errorf("%v: %+v, want %d", c, r.Repeats, repeats)
		}
		if c.share > 0 {
			a.Reset()
			if again, err := a.Estimate(); err == nil || again.Repeats != (Repeats{}) {
				t.Errorf("after Reset: %+v, %v", again, err)
			}
		}
	}
}

// TestCopiesAcrossAGap: of copies that were on their way at a gap as many come
// as are on their way later, so that their cell looks even at every cut, and
// their delays seem to be nothing. They are not known.
func TestCopiesAcrossAGap(t *testing.T) {
	const intervals, packets = 20, 10_000
	for _, gap := range []bool{true, false} {
		for _, share := range []float64{0.1, 0.5} { // of copies, in 1.25 intervals each
			var up, down [intervals]*Aggregator
			for i := range up {
				up[i], down[i] = mustNewFor(t, DefaultConfig), mustNewFor(t, DefaultConfig)
			}
			rng := rand.New(rand.NewPCG(3, 6))
			var truth estimate.Moments
			for i := range (intervals - 2) * packets {
				p, now, delay := hashing.Packet(rng.Uint64()), int64(i)*cutInterval/packets, int64(cutInterval/10)
				if rng.Float64() < share {
					p, delay = 12345, cutInterval*5/4
				}
				up[now/cutInterval].Update(p, now)
				down[(now+delay)/cutInterval].Update(p, now+delay)
				truth.Add(float64(delay))
			}
			a, err := NewAccumulator(DefaultConfig)
			if err != nil {
				t.Fatal(err)
			}
			first := 0
			if gap { // while packets are on their way
				a.Gap()
				first = 4
			}
			for i := first; i < intervals; i++ {
				if err := a.Add(uint64(i), up[i], down[i]); err != nil {
					t.Fatal(err)
				}
			}
			r, err := a.Estimate()
			i := r.MeanInterval(0.98)
			switch {
			case !gap && (err != nil || !near(r.Mean, truth.Mean(), 1e-9) || r.Repeats.Unknown > 0):
				t.Errorf("no gap, %v: mean %v, want %v; %+v, %v", share, r.Mean, truth.Mean(), r.Repeats, err)
			case gap && share > 0.25 && !errors.Is(err, estimate.ErrNoSamples):
				t.Errorf("%v: %v, %v, want no answer", share, r.Mean, err)
			case gap && share < 0.25 && (err != nil || !i.Contains(truth.Mean()) || r.Repeats.Unknown == 0):
				t.Errorf("%v: mean %v in %v, want %v; %+v, %v", share, r.Mean, i, truth.Mean(), r.Repeats, err)
			}
		}
	}
}
