package lda

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/clock"
	"github.com/hoplag/hoplag/hashing"
)

const clockStart = 1_790_000_000_000_000_000

// drifting passes packets of 200 to 205 µs in a second, and returns what a point
// counts whose clock agrees with the first one's, and one whose clock is ahead.
func drifting(t *testing.T, packets uint64, ahead func(at int64) int64) (up, exact, far *Aggregator) {
	t.Helper()
	up, exact, far = mustNewFor(t, DefaultConfig), mustNewFor(t, DefaultConfig), mustNewFor(t, DefaultConfig)
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range packets {
		packet, at := hashing.Word(2, i), clockStart+rng.Int64N(1e9)
		received := at + 200_000 + rng.Int64N(5_000)
		up.Update(packet, at)
		exact.Update(packet, received)
		far.Update(packet, received+ahead(received))
	}
	return up, exact, far
}

// Packets that were alone, or otherwise cells of a few, tell by how much one clock is ahead of the other, in either direction.
func TestClockSamples(t *testing.T) {
	const ahead, middle = 100_000_000, clockStart + 5e8
	for _, packets := range []uint64{3000, 40_000} {
		up, _, far := drifting(t, packets, func(int64) int64 { return ahead })
		for _, back := range []bool{false, true} {
			samples, err := AppendClockSamples(nil, up, far, middle, back)
			if err != nil || len(samples) < 64 {
				t.Fatalf("%d packets: %d samples, %v", packets, len(samples), err)
			}
			shift := int64(0)
			if back {
				shift = ahead
			}
			for _, s := range samples {
				if s.Packets > 8 || packets == 3000 && s.Packets != 1 || math.Abs(float64(s.Time-shift-middle)) > 5.1e8 ||
					s.Delay < ahead+200_000 || s.Delay > ahead+205_000 {
					t.Fatalf("%d packets, back %v: %+v", packets, back, s)
				}
			}
		}
	}
	if _, err := AppendClockSamples(nil, mustNewFor(t, DefaultConfig), new(Aggregator), 0, false); !errors.Is(err, estimate.ErrMismatch) {
		t.Errorf("different Configs: %v", err)
	}
}

// A corrected aggregator gives the mean, deviation and samples of one whose clock agrees.
func TestCorrect(t *testing.T) {
	ahead := func(at int64) int64 { return -100_000_000 + (at-clockStart)/10_000 }
	up, exact, far := drifting(t, 50_000, ahead)
	uncorrected := must(Estimate(up, far))
	far.Correct(clock.Reading{Time: clockStart + 5e8, Offset: float64(ahead(clockStart + 5e8)), Drift: 1e-4})
	got := must(Estimate(up, far))
	want := must(Estimate(up, exact))
	if math.Abs(got.Mean-want.Mean) > 1 || math.Abs(got.StdDev-want.StdDev) > 2 {
		t.Errorf("mean %.1f, deviation %.1f; with clocks that agree %.1f and %.1f", got.Mean, got.StdDev, want.Mean, want.StdDev)
	}
	// Negative control: the offset alone leaves what the drift added.
	if uncorrected.StdDev < 5*want.StdDev {
		t.Errorf("uncorrected, the deviation is %.1f", uncorrected.StdDev)
	}
	right, samples := samplesOf(t, up, exact), samplesOf(t, up, far)
	if len(samples) != len(right) {
		t.Fatalf("%d samples of %d", len(samples), len(right))
	}
	for i := range samples {
		if math.Abs(samples[i]-right[i]) > 2 {
			t.Fatalf("a packet took %.0f ns, and is said to have taken %.0f", right[i], samples[i])
		}
	}
}
