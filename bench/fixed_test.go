package main

import (
	"math/bits"
	"testing"

	"github.com/hoplag/hoplag/lda"
)

// BenchmarkFixed is the Update of an Aggregator, whose cells are a slice, beside the same on arrays of fixed size, as one
// would write it where the Config is known at compile time. Then no index needs a check, but one check a packet, which is
// always predicted, costs nothing: both take 1.8 floors.
func BenchmarkFixed(b *testing.B) {
	packets, slices := packetStream()[:1<<13], must(lda.New(twoBanks))
	b.Run("slices", func(b *testing.B) {
		compare(b, len(packets), 0, func(from, to int) {
			for i, p := range packets[from:to] {
				slices.Update(p, int64(from+i))
			}
		}, cellFloor(packets))
	})
	arrays := new(struct {
		cells      [4096]struct{ sum, tally uint64 } // 2,064 of them are used
		base, mask [65]uint64                        // by the length of what a packet adds to a tally
	})
	for length := range arrays.base {
		arrays.base[length], arrays.mask[length] = uint64(min(1, (64-length)/3))<<10, 1023
	}
	b.Run("arrays", func(b *testing.B) {
		compare(b, len(packets), 0, func(from, to int) {
			for i, p := range packets[from:to] {
				low := uint64(uint32(p))
				tally := uint64(p) - low | 1
				length := bits.Len64(tally)
				c := &arrays.cells[(low&arrays.mask[length]+arrays.base[length])%4096]
				c.sum += uint64(from + i)
				c.tally += tally
			}
		}, cellFloor(packets))
	})
}
