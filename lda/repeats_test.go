package lda

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// repeating passes packets of 40 ± 25 µs, a share of which are copies of one that take longer by extra, and
// loses some of those.
func repeating(t *testing.T, packets int, share, extra float64, lost int) (up, down *Aggregator, all estimate.Moments) {
	t.Helper()
	up, down = mustNewFor(t, DefaultConfig), mustNewFor(t, DefaultConfig)
	rng := rand.New(rand.NewPCG(12, 5))
	key := hashing.SipHashFromKey([16]byte{1, 2}) // no key helps
	copyOf := hashing.Packet(key.Word(1 << 40))
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
	}
	return up, down, all
}

// Copies of one packet are seen and counted, and neither they nor the loss of one
// make the mean or the deviation wrong.
func TestRepeats(t *testing.T) {
	const packets = 200_000
	for _, c := range []struct {
		share, extra float64
		lost         int
	}{{0, 0, 0}, {0.01, 150_000, 0}, {0.05, 150_000, 1}, {0.5, 1e9, 7}} {
		up, down, truth := repeating(t, packets, c.share, c.extra, c.lost)
		r, err := Estimate(up, down)
		t.Logf("%v: %d, mean %.0f, deviation %.0f, %v", c, r.Repeats, r.Mean, r.StdDev, err)
		if i, d := r.MeanInterval(0.98), r.DeviationInterval(0.98); c.share == 0.5 {
			if !errors.Is(err, estimate.ErrNoSamples) {
				t.Errorf("%v: %+v, %v: half of the packets are not known", c, r, err)
			}
		} else if err != nil || !i.Contains(truth.Mean()) || !d.Contains(truth.StdDev()) {
			t.Errorf("%v: mean %v in %+v, want %v; deviation %v in %+v, want %v", c, r.Mean, i, truth.Mean(), r.StdDev, d, truth.StdDev())
		}
		if i := r.MeanInterval(0.98); c.lost == 0 && (!near(r.Mean, truth.Mean(), 1e-9) || !(i.High-i.Low < 1e-6*truth.Mean())) {
			t.Errorf("%v: mean %v in %+v, want %v exactly: none was lost", c, r.Mean, i, truth.Mean())
		}
		if (r.unknown > 0) != (c.lost > 0) || r.spoken != r.Received || (r.Repeats == 0) != (c.share == 0) {
			t.Errorf("%v: %+v", c, r)
		}
		if want := c.share * packets; math.Abs(float64(r.Repeats)-want) > 0.05*want+100 {
			t.Errorf("%v: %d packets repeat, want %.0f", c, r.Repeats, want)
		}
		if r.Sent != packets || r.Lost != uint64(c.lost) {
			t.Errorf("%v: %d sent, %d lost", c, r.Sent, r.Lost)
		}
		if n := testing.AllocsPerRun(3, func() { Estimate(up, down) }); n > 0 && err == nil {
			t.Errorf("%v: Estimate allocates %v times", c, n)
		}
	}
}

// Counts that are chance stay within the limit. However many copies a cell holds, the limit is not much above
// the normal one with a correction for the skewness.
func TestUsualCounts(t *testing.T) {
	rng := rand.New(rand.NewPCG(12, 2))
	const n = 1024
	for _, load := range []float64{0, 0.01, 1, 10, 170} {
		for _, copies := range []uint64{0, 1000, 1_000_000_000} {
			cells := make([]cell, n)
			for range int(load * n) {
				cells[rng.IntN(n)].tally++
			}
			greatest := uint64(0)
			for i := range cells {
				greatest = max(greatest, cells[i].tally)
			}
			cells[7].tally += copies
			u := usualCounts(cells, uint64(load*n)+copies, max(greatest, cells[7].tally))
			rarity := math.Log(n * 1e6)
			said := load + math.Sqrt(2*load*rarity) + rarity
			if u.most < greatest || copies > 0 && float64(u.most) > 1.1*said || math.Abs(u.mean-load) > 0.1*load+0.01 {
				t.Errorf("load %v, %d copies: %+v, want a mean of %v and about %v at most", load, copies, u, load, said)
			}
		}
	}
}
