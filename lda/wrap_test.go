package lda

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/estimate"
)

// filled returns the cells of two points after n packets of which none is lost,
// whose delays are about the mean, without passing them one by one: the counts
// of cells are a normal approximation, and so are the sums of delays.
func filled(t *testing.T, c Config, n, mean, deviation float64, seed uint64) (up, down *Aggregator) {
	t.Helper()
	up, down = mustNewFor(t, c), mustNewFor(t, c)
	rng := rand.New(rand.NewPCG(seed, 7))
	base := 0
	for j, b := range c.Banks[:c.banks()] {
		for i := range b.Rows {
			expected := c.rate(j) * n / float64(b.Rows)
			k := math.Round(max(0, expected+math.Sqrt(expected)*rng.NormFloat64()))
			if expected < 10 {
				k = poisson(rng, expected)
			}
			total := math.Round(k*mean + math.Sqrt(k)*deviation*rng.NormFloat64())
			sent, digest := rng.Uint64(), rng.Uint64()<<32
			// Float64 holds the part of the sum that is not a multiple of k.
			delays := uint64(int64(mean))*uint64(k) + uint64(int64(total-k*mean))
			up.cells[base+i] = cell{sum: sent, tally: digest | uint64(k)}
			down.cells[base+i] = cell{sum: sent + delays, tally: digest | uint64(k)}
		}
		base += b.Rows
	}
	return up, down
}

func poisson(rng *rand.Rand, mean float64) float64 {
	k, product := 0.0, rng.Float64()
	for limit := math.Exp(-mean); product > limit; product *= rng.Float64() {
		k++
	}
	return k
}

// Sums of 40 bits wrap after 1,100 s: 10^7 packets of 80 ms wrap in every cell
// of the first bank, and clocks that are far apart in those of one packet.
func TestWrappedSumsAreUnwrapped(t *testing.T) {
	narrow := Config{Banks: [maxBanks]Bank{{Rows: 1024, Shift: 0}, {Rows: 1024, Shift: 3}, {Rows: 1024, Shift: 10}}, SumBits: 40}
	one := Config{Banks: [maxBanks]Bank{{Rows: 1024}}, SumBits: 40}
	const ms, s, day = 1e6, 1e9, 86400e9
	misled := 0
	for _, c := range []struct {
		name                     string
		config                   Config
		packets, mean, deviation float64
	}{
		{"80 ms", narrow, 1e7, 80 * ms, 20 * ms},
		{"1 s", narrow, 1e6, s, 0.3 * s},
		{"offset of 5 s", narrow, 1e7, 5*s + 100, 0.1 * ms},
		{"offset of -5 s", narrow, 1e7, -5*s + 100, 0.1 * ms},
		{"80 ms, one bank", one, 1e7, 80 * ms, 20 * ms},
		{"a year behind", DefaultConfig, 1e4, -365*day + 100, ms},
		{"280 years apart", DefaultConfig, 1e6, 102200 * day, ms},
		{"10 s", DefaultConfig, 1e7, 10 * s, 10 * s},
		{"nothing", DefaultConfig, 1e5, 0, 0},
	} {
		for seed := range uint64(4) {
			up, down := filled(t, c.config, c.packets, c.mean, c.deviation, seed)
			r, err := Estimate(up, down)
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
				continue
			}
			tolerance := 6*c.deviation/math.Sqrt(float64(r.N)) + math.Abs(c.mean)*1e-15
			if math.Abs(r.Mean-c.mean) > tolerance || math.Abs(r.StdDev-c.deviation) > 0.15*c.deviation {
				t.Errorf("%s: mean %v, deviation %v, want %v ± %v, %v", c.name, r.Mean, r.StdDev, c.mean, tolerance, c.deviation)
			}
			// Negative control: sums are taken for what their bits say.
			var total, packets float64
			for i := range up.sampled() {
				total += float64(estimate.SignExtend(down.cells[i].sum-up.cells[i].sum, int(c.config.SumBits)))
				packets += float64(up.cells[i].count())
			}
			if math.Abs(total/packets-c.mean) > 10*tolerance {
				misled++
			}
		}
	}
	if misled < 18 {
		t.Errorf("sums that are not unwrapped mislead only %d times of 36", misled)
	}
}

// Where nothing tells how often sums have wrapped, there is no mean.
func TestHopelessWrapping(t *testing.T) {
	one := Config{Banks: [maxBanks]Bank{{Rows: 1024}}, SumBits: 40}
	for _, c := range []struct{ packets, mean, deviation float64 }{{1e7, 80e9, 80e9}, {1e7, 1e9, 5e9}, {1e6, 1e12, 1e12}} {
		for seed := range uint64(5) {
			up, down := filled(t, one, c.packets, c.mean, c.deviation, seed)
			r, err := Estimate(up, down)
			if !errors.Is(err, ErrContradiction) || r.Mean != 0 || r.Sent == 0 {
				t.Errorf("%+v: %+v, %v; want counts and ErrContradiction", c, r, err)
			}
		}
	}
}
