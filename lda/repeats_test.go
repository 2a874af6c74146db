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
	key := hashing.SipHashFromKey([16]byte{1, 2}) // no key helps
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
