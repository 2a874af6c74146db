package colate

import (
	"math"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/traffic"
)

var _ = debug.SetGCPercent(400) // tests make much that is soon garbage

// testConfig is small, and one epoch long.
var testConfig = Config{Identity: 3, Counters: 3000, PerFlow: 20, Bits: 64, CountBits: 14, DigestBits: 20, Period: maxPeriod}

type (
	passage = traffic.Passage
	truth   = traffic.Truth
)

// recorded is what both points hold of some traffic.
func recorded(t testing.TB, c Config, all []passage) (up, down *Recorder) {
	t.Helper()
	up, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	down, _ = New(c)
	for _, p := range all {
		up.Update(p.Flow, p.Packet, p.Sent)
		down.Update(p.Flow, p.Packet, p.At)
	}
	return up, down
}

// crowded is an epoch of a number of packets, each of a flow of its own.
func crowded(t testing.TB, c Config, packets int) *Recorder {
	t.Helper()
	r, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for range packets {
		r.Update(hashing.Flow(rng.Uint64()), hashing.Packet(rng.Uint64()), rng.Int64N(c.Period))
	}
	return r
}

// long skips a test of one goroutine that takes long under the race detector.
func long(t *testing.T) {
	if t.Helper(); testing.Short() {
		t.Skip("one goroutine, for long")
	}
}

func median(x []float64) float64 {
	slices.Sort(x)
	return x[len(x)/2]
}

// A score counts 95 % intervals, and those that hold.
type score struct{ held, all int }

func (s *score) add(in estimate.Interval, is float64) {
	if s.all++; in.Contains(is) {
		s.held++
	}
}

// good reports whether as many intervals hold as should.
func (s score) good() bool { return float64(s.held) >= 0.95*float64(s.all)-shortfall(s.all, 0.95) }

// want fails the test without a good score of at least a given number of answers.
func (s score) want(t testing.TB, what string, least int) {
	t.Helper()
	if t.Logf("%s: %d of %d intervals hold", what, s.held, s.all); !s.good() || s.all < least {
		t.Errorf("%s: %d of %d intervals hold, want 95 %% of %d and more", what, s.held, s.all, least)
	}
}

// shortfall is how far below n·p a binomial number may fall with a probability of 10⁻⁴.
func shortfall(n int, p float64) float64 {
	return -estimate.NormalQuantile(1e-4) * math.Sqrt(float64(n)*p*(1-p))
}
