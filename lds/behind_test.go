package lds

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// Where the clock of the point downstream is behind, packets come before they are sent. What is
// lost then looks like what is still to be sent: 50 of 600 intervals missed, and those of
// Decode one in four. With clocks that agree the same packets are answered.
func TestClockBehindIsRefused(t *testing.T) {
	const intervals, length = 30, int64(1e9)
	for _, behind := range []int64{0, 2e8, 1e9} {
		random, a := rand.New(rand.NewPCG(3, 4)), mustAccumulate(t, DefaultConfig)
		x := newTimeline(t, DefaultConfig, intervals, length)
		for now := length; now < (intervals-5)*length; now += int64(random.ExpFloat64() * 1e6) {
			f, p := hashing.Flow(random.Uint64N(20)), hashing.Packet(random.Uint64())
			came := now + int64(20e6*random.ExpFloat64()) - behind
			x.pass(f, p, now, came, random.IntN(100) == 0)
		}
		for k := range intervals {
			x.add(t, a, k)
		}
		if _, err := a.Estimate(7); errors.Is(err, estimate.ErrClocks) != (behind > 0) {
			t.Errorf("%d ms behind: %v", behind/1e6, err)
		}
	}
}

// Flows that send a packet just before each cut always have one on its way, in cells of their own.
// Some of their digests are alike by chance, and nothing is lost: taken for lost, those packets
// left means of minus 90 ms, or clocks that seemed not to agree.
func TestDigestsAlikeByChance(t *testing.T) {
	const intervals, length, flows = 250, int64(1e8), 50
	c := DefaultConfig
	c.Columns = 500
	random, a := rand.New(rand.NewPCG(5, 6)), mustAccumulate(t, c)
	x := newTimeline(t, c, intervals, length)
	var truth [flows]estimate.Moments
	for k := range int64(intervals) {
		for f := range truth {
			p, at := hashing.Packet(random.Uint64()), (k+1)*length-random.Int64N(1e6)-1
			delay := int64(2e6) + int64(6e6*min(10, random.ExpFloat64()))
			x.pass(nth(f), p, at, at+delay, false)
			truth[f].Add(float64(delay))
		}
		x.add(t, a, int(k))
	}
	for f := range truth {
		r, err := a.Estimate(nth(f))
		if err != nil {
			t.Fatal(err)
		}
		if i := r.MeanInterval(0.99); !i.Contains(truth[f].Mean()) || i.High-i.Low > float64(length) {
			t.Errorf("flow %d: %.3f to %.3f ms, and the mean is %.3f", f, i.Low/1e6, i.High/1e6, truth[f].Mean()/1e6)
		}
		if r.Overdue > 0 {
			t.Errorf("flow %d: %d lost", f, r.Overdue)
		}
	}
}

func nth(f int) hashing.Flow { return hashing.Flow(hashing.Word(6, uint64(f))) }

// Where slow packets come twice, cells receive more than was sent. Nothing was lost, so each may
// be as slow as any that is known, and not as the report is long.
func TestCopiesOfTheSlow(t *testing.T) {
	const intervals, length = 300, int64(1e8)
	c := DefaultConfig
	c.Columns = 500
	random, a, x := rand.New(rand.NewPCG(8, 1)), mustAccumulate(t, c), newTimeline(t, c, intervals, length)
	var truth [50]estimate.Moments
	for now := int64(0); now < (intervals-5)*length; now += int64(1e6 * random.ExpFloat64()) {
		f, p, delay := random.IntN(len(truth)), hashing.Packet(random.Uint64()), int64(5e6+8e6*random.ExpFloat64())
		x.pass(nth(f), p, now, now+delay, false)
		truth[f].Add(float64(delay))
		if again := now + delay + 3e6; delay > 40e6 {
			x.down[again/length].Update(nth(f), p, again)
		}
	}
	for k := range intervals {
		x.add(t, a, k)
	}
	for f := range truth {
		r, err := a.Estimate(nth(f))
		i, want := r.MeanInterval(0.95), truth[f].Mean()
		if err != nil || !r.MeanInterval(0.999).Contains(want) || i.High-i.Low > 2*want || r.Late == 0 {
			t.Errorf("flow %d: %.3f to %.3f ms, want %.3f, %v", f, i.Low/1e6, i.High/1e6, want/1e6, err)
		}
	}
}
