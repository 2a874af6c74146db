package lda_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/clock"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
)

// A path carries packets one way through a queue that is busy part of the time.
type path struct {
	rng      *rand.Rand
	up, down *lda.Aggregator
	now      float64 // when the last packet was sent, by the near clock
	wait     float64
	packets  uint64
	load     float64
}

func newPath(t *testing.T, seed uint64, load float64) *path {
	config := lda.DefaultConfig
	config.DigestBits = 16
	up, err := lda.New(config)
	if err != nil {
		t.Fatal(err)
	}
	down, err := lda.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return &path{rng: rand.New(rand.NewPCG(seed, 4)), up: up, down: down, load: load}
}

// interval sends a second's packets: theta is the far clock less the near one,
// sentFar that the far point sends. It returns the true mean delay.
func (p *path) interval(end float64, theta func(float64) float64, sentFar bool) (mean float64) {
	const service, floor, start = 10e3, 500e3, 1_790_000_000_000_000_000
	p.up.Reset()
	p.down.Reset()
	var delays estimate.Moments
	for {
		gap := p.rng.ExpFloat64() * service / p.load
		if p.now+gap >= end {
			return delays.Mean()
		}
		p.now += gap
		p.wait = max(0, p.wait-gap)
		delay := floor + p.wait
		p.wait += service * p.rng.ExpFloat64()
		p.packets++
		sent, received := p.now, p.now+delay
		if sentFar {
			sent += theta(sent)
		} else {
			received += theta(received)
		}
		packet := hashing.Word(uint64(p.load*100), p.packets)
		p.up.Update(packet, start+int64(sent))
		if p.rng.IntN(1000) > 0 {
			p.down.Update(packet, start+int64(received))
			delays.Add(delay)
		}
	}
}

// Clocks that are 100 ms apart and drift by 30 ppm: the delays of both
// directions come out right to microseconds, and what is left to the clock is
// said apart.
func TestClocksThatDisagree(t *testing.T) {
	theta := func(now float64) float64 { return -100e6 + 30e-6*now }
	forth, home := newPath(t, 1, 0.8), newPath(t, 2, 0.3)
	tracker, err := clock.New(clock.DefaultConfig)
	if err != nil {
		t.Fatal(err)
	}
	var samples [2][]clock.Sample
	for i := range int64(5) {
		truth := [2]float64{forth.interval(float64(i+1)*1e9, theta, false), home.interval(float64(i+1)*1e9, theta, true)}
		middle := 1_790_000_000_000_000_000 + i*1e9 + 5e8
		for d, p := range [2]*path{forth, home} {
			if samples[d], err = lda.AppendClockSamples(samples[d][:0], p.up, p.down, middle, d == 1); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := tracker.Add(samples[0], samples[1]); err != nil {
			t.Fatal(err)
		}
		reading, err := tracker.At(middle)
		if err != nil {
			t.Fatal(err)
		}
		const spread = 1e9 / 3.4641016
		for d, p := range [2]*path{forth, home} {
			r, err := lda.Estimate(p.up, p.down)
			if err != nil {
				t.Fatal(err)
			}
			if math.Abs(r.Mean) < 90e6 {
				t.Errorf("measured %v: no offset to correct", r.Mean)
			}
			corrected := reading.Correct(r.Delay, spread)
			// Negative control: the correction of the other direction.
			if math.Abs(corrected.Mean-truth[d]) < 10e3 && d == 1 {
				t.Error("the correction of the one direction suits the other")
			}
			if d == 1 {
				corrected = reading.Reverse().Correct(r.Delay, spread)
			}
			if e := math.Abs(corrected.Mean - truth[d]); e > 2e3 {
				t.Errorf("interval %d, direction %d: corrected mean off by %.0f ns", i, d, e)
			}
			if !corrected.Certain.Contains(truth[d]) {
				t.Errorf("interval %d, direction %d: %.0f not in %+v", i, d, truth[d], corrected.Certain)
			}
		}
	}
	if _, err := lda.AppendClockSamples(nil, forth.up, new(lda.Aggregator), 0, false); !errors.Is(err, estimate.ErrMismatch) {
		t.Errorf("different Configs: %v", err)
	}
}

// A corrected aggregator says of every packet what one would whose clock
// agrees: the mean, the deviation and the samples.
func TestCorrect(t *testing.T) {
	const start = 1_790_000_000_000_000_000
	config := lda.DefaultConfig
	var all [3]*lda.Aggregator
	for i := range all {
		a, err := lda.New(config)
		if err != nil {
			t.Fatal(err)
		}
		all[i] = a
	}
	up, exact, far := all[0], all[1], all[2]
	ahead := func(at int64) int64 { return -100_000_000 + (at-start)/10_000 }
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range uint64(50_000) {
		packet := hashing.Word(2, i)
		at := start + rng.Int64N(1e9)
		received := at + 200_000 + rng.Int64N(5_000)
		up.Update(packet, at)
		exact.Update(packet, received)
		far.Update(packet, received+ahead(received))
	}
	reading := clock.Reading{Time: start + 5e8, Offset: float64(ahead(start + 5e8)), Drift: 1e-4}
	uncorrected, err := lda.Estimate(up, far)
	if err != nil {
		t.Fatal(err)
	}
	far.Correct(reading)
	got, err := lda.Estimate(up, far)
	if err != nil {
		t.Fatal(err)
	}
	want, err := lda.Estimate(up, exact)
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(got.Mean-want.Mean) > 1 || math.Abs(got.StdDev-want.StdDev) > 2 {
		t.Errorf("mean %.1f, deviation %.1f; with clocks that agree %.1f and %.1f", got.Mean, got.StdDev, want.Mean, want.StdDev)
	}
	// Negative control: the offset alone leaves what the drift added.
	if uncorrected.StdDev < 5*want.StdDev {
		t.Errorf("uncorrected, the deviation is %.1f", uncorrected.StdDev)
	}
	right, err := lda.Distribute(up, exact)
	if err != nil {
		t.Fatal(err)
	}
	samples, err := lda.Distribute(up, far)
	if err != nil || samples.Empirical().N() != right.Empirical().N() {
		t.Fatalf("%v, %d samples of %d", err, samples.Empirical().N(), right.Empirical().N())
	}
	for p := 0.0; p <= 1; p += 0.01 {
		got, _ := samples.Empirical().Quantile(p)
		if want, _ := right.Empirical().Quantile(p); math.Abs(got-want) > 2 {
			t.Fatalf("quantile %v is %.0f ns, and is said to be %.0f", p, want, got)
		}
	}
}
