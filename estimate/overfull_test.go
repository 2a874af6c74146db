package estimate_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/estimate"
)

// throw shares packets over cells by chance.
func throw(rng *rand.Rand, cells, packets int) []uint64 {
	counts := make([]uint64, cells)
	for range packets {
		counts[rng.IntN(cells)]++
	}
	return counts
}

func limitOf(counts []uint64) uint64 {
	var sum, greatest uint64
	for _, c := range counts {
		sum += c
		greatest = max(greatest, c)
	}
	return estimate.CountLimit(len(counts), sum, greatest, func(i int) uint64 { return counts[i] })
}

// Chance alone stays within the limit: 10^-6 of all groups have a cell beyond
// it, so that one in a few thousand would be a wonder.
func TestCountLimitLeavesChance(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine, for long under the race detector")
	}
	rng := rand.New(rand.NewPCG(12, 1))
	for _, load := range []float64{0.01, 0.3, 1, 10, 200} {
		for range 400 {
			counts := throw(rng, 256, int(load*256))
			limit := limitOf(counts)
			for _, c := range counts {
				if c > limit {
					t.Fatalf("load %v: %d packets in a cell by chance, limit %d", load, c, limit)
				}
			}
		}
	}
}

// The limit is as low as it says, however many packets are copies.
func TestCountLimitSeesCopies(t *testing.T) {
	rng := rand.New(rand.NewPCG(12, 2))
	const cells = 1024
	for _, load := range []float64{1, 10, 170} {
		for _, copies := range []uint64{1000, 1_000_000_000} {
			counts := throw(rng, cells, int(load*cells))
			counts[7] += copies
			counts[8] += copies / 2
			// The normal limit and a correction for the skewness.
			rarity := math.Log(cells * 1e6)
			said := load + math.Sqrt(2*load*rarity) + rarity
			if limit := float64(limitOf(counts)); limit > 1.1*said || limit < load+4*math.Sqrt(load) {
				t.Errorf("load %v, %d copies: limit %v, want about %v at most", load, copies, limit, said)
			}
		}
	}
}

func TestCountLimitOfNothing(t *testing.T) {
	if limit := limitOf(make([]uint64, 16)); limit != math.MaxUint64 {
		t.Errorf("empty cells: limit %d", limit)
	}
	if limit := limitOf(nil); limit != math.MaxUint64 {
		t.Errorf("no cells: limit %d", limit)
	}
}
