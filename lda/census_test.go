package lda

import (
	"errors"
	"math"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// If all packets change between the points, that is the answer, with or without digests, and whatever cells
// happen to agree.
func TestAllPacketsChanged(t *testing.T) {
	translated := func(p hashing.Packet) hashing.Packet { return hashing.Word(9, uint64(p)) }
	plain := Config{Banks: [maxBanks]Bank{{Rows: 1024}}, SumBits: 64}
	for _, c := range []Config{DefaultConfig, plain} {
		for _, packets := range []int{300, 20_000, 200_000} {
			up, down := pair(t, c, traffic(1, 1, packets, 0.01, 0), translated)
			r, err := Estimate(up, down)
			if !errors.Is(err, ErrDifferent) || r.Sent != uint64(packets) || r.Received != down.Packets() ||
				r.Lost != r.Sent-r.Received || r.Extra != 0 {
				t.Errorf("%d packets: %+v, %v", packets, r, err)
			}
			// Negative control: as few packets pass both points in an extreme loss, a
			// flood, or where half are changed; but they are the same.
			half := func(p hashing.Packet) hashing.Packet {
				if p>>8&1 == 0 {
					return p
				}
				return translated(p)
			}
			for name, f := range map[string]struct {
				n           int
				loss, birth float64
				change      func(hashing.Packet) hashing.Packet
			}{"loss": {packets, 0.9, 0, same}, "flood": {10 * packets, 0, 0.9, same}, "half": {packets, 0, 0, half}} {
				up, down := pair(t, c, traffic(2, 2, f.n, f.loss, f.birth), f.change)
				if _, err := Estimate(up, down); errors.Is(err, ErrDifferent) {
					t.Errorf("%s of %d packets: %v", name, packets, err)
				}
			}
		}
	}
}

// Losses in cells that other packets join are counted.
func TestLossesBehindJoiners(t *testing.T) {
	const runs, packets = 10, 100_000
	for _, c := range []struct{ loss, join float64 }{{0.01, 0}, {0.01, 0.001}, {0.01, 0.01}, {0.1, 0.05}, {0.3, 0.001}, {0.001, 0.1}} {
		var told, counted estimate.Moments
		for seed := range uint64(runs) {
			up, down := pair(t, DefaultConfig, traffic(seed, seed, int(packets*(1+c.join)), c.loss, c.join/(1+c.join)), same)
			r, err := Estimate(up, down)
			if err != nil && !errors.Is(err, estimate.ErrNoSamples) {
				t.Fatal(err)
			}
			told.Add(r.Loss())
			counted.Add(float64(r.Lost) / float64(r.Sent))
		}
		off := func(m *estimate.Moments) bool { return math.Abs(m.Mean()-c.loss) > 5*math.Sqrt(m.Variance()/runs) }
		if off(&told) || c.join >= 0.01 && !off(&counted) {
			t.Errorf("%+v: %.4f, counted %.4f", c, told.Mean(), counted.Mean())
		}
	}
}
