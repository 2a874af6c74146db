package paper

import (
	"errors"
	"math"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/traffic"
)

var paperConfig = Config{Identity: 3, Counters: 3000, PerFlow: 20, TimeBits: 40}

// recorded is what both points hold of some traffic.
func recorded(t testing.TB, c Config, all []traffic.Passage) (up, down *Recorder) {
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

// Theorem 2, eqs. (3) and (4), from single counters and by hand.
func TestTheorem2(t *testing.T) {
	all := traffic.Flows(11, 500)
	up, down := recorded(t, paperConfig, all)
	f := traffic.Truths(all, 50)[0]
	sum := func(r *Recorder) float64 {
		c := r.config
		own, total := 0.0, 0.0
		for j := range c.PerFlow {
			h := uint64(uint32(hashing.Mix(uint64(f.Flow)^c.Identity, uint64(j)))) * uint64(c.Counters) >> 32
			own += float64(r.Sums[h])
		}
		for i := range c.Counters {
			total += float64(r.Sums[i])
		}
		n, m := float64(c.Counters), float64(c.PerFlow)
		return 1 / (n - m) * (n*own - m*total)
	}
	want := (sum(down) - sum(up)) / float64(f.Packets)
	if got := Theorem2(up, down, f.Flow, f.Packets); math.Abs(got-want) > 1e-6*math.Abs(want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestErrors(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"PerFlow":  func(c *Config) { c.PerFlow = 3 },
		"Counters": func(c *Config) { c.Counters = c.PerFlow },
		"TimeBits": func(c *Config) { c.TimeBits = 64 },
	} {
		c := paperConfig
		change(&c)
		if _, err := New(c); !errors.Is(err, estimate.ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
