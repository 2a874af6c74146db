package colate

import (
	"slices"
	"testing"

	"github.com/hoplag/hoplag/internal/traffic"
)

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

func median(x []float64) float64 {
	slices.Sort(x)
	return x[len(x)/2]
}

// race is set where the race detector looks on.
var race bool
