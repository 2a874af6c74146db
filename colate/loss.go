package colate

import (
	"fmt"

	"github.com/hoplag/hoplag/estimate"
)

// comparison is what two points say about one flow, and which part of it can
// be believed.
type comparison struct {
	up, down *Subvector
	config   *Config
	used     [MaxVectors]bool
	share    float64 // the part of all packets that the used vectors hold
}

// compare chooses the vectors to be believed (§1.4). A packet that was lost,
// or recorded in an epoch of one point alone, leaves its whole time stamp in
// one counter, which drowns all delays there; a vector is believed if both
// points recorded the same packets in it, which takes the same number and the
// same digest. The paper takes the most-sampled such vector and compares
// numbers alone; here all of them are used.
//
// Where none agrees, counters that count packets are believed one by one, if
// both points counted the same.
func compare(up, down *Subvector) (comparison, error) {
	if up.config != down.config {
		return comparison{}, fmt.Errorf("colate: %w: %+v and %+v", estimate.ErrMismatch, up.config, down.config)
	}
	if up.flow != down.flow {
		return comparison{}, fmt.Errorf("colate: %w: subvectors of flows %016x and %016x", estimate.ErrMismatch, up.flow, down.flow)
	}
	c := comparison{up: up, down: down, config: &up.config}
	for k := range c.config.Vectors {
		if agree(up.vectors[k], down.vectors[k]) {
			c.used[k] = true
			c.share += c.config.Share(k)
		}
	}
	if c.share > 0 {
		return c, nil
	}
	if up.epochs == 0 || down.epochs == 0 || up.counts == nil {
		return comparison{}, fmt.Errorf("colate: %w: no vector holds the same packets at both points (%d and %d epochs)",
			estimate.ErrNoSamples, up.epochs, down.epochs)
	}
	for k := range c.config.Vectors {
		c.used[k] = true
	}
	c.share = 1
	return c, nil
}

// agree reports whether two vectors recorded the same packets, some at least.
func agree(up, down Vector) bool {
	return up.Packets > 0 && up.Packets == down.Packets && up.Digest == down.Digest
}

// MostSampled returns the vector that the paper's rule chooses (§1.4): of
// those that hold as many packets at both points, the one that samples most;
// -1 if there is none. Vectors that lost as many packets as others brought in
// deceive it, unlike the digests that [Estimate] goes by.
func MostSampled(up, down *Subvector) int {
	for k := range min(up.config.Vectors, down.config.Vectors) {
		if n := up.vectors[k].Packets; n > 0 && n == down.vectors[k].Packets {
			return k
		}
	}
	return -1
}

// delays writes, for the counters of flow i that can be believed, the sum of
// the delays in nanoseconds and the number of packets (0 without CountBits),
// and returns how many there are. The counters of one number j are added up
// over the vectors in use, so that all are alike.
func (c *comparison) delays(i int, sums, counts []float64) int {
	m, size := c.config.PerFlow, len(c.up.at)
	modulus, unit := c.config.modulus(), c.config.Unit()
	n := 0
counters:
	for j := range m {
		var sum int64
		var count uint64
		for k := range c.config.Vectors {
			if !c.used[k] {
				continue
			}
			at := k*size + i*m + j
			if c.up.counts != nil {
				if c.up.counts[at] != c.down.counts[at] {
					continue counters
				}
				count += c.up.counts[at]
			}
			sum += estimate.Difference(c.up.sums[at], c.down.sums[at], modulus)
		}
		sums[n], counts[n] = float64(sum)*unit, float64(count)
		n++
	}
	return n
}
