package main

import (
	"testing"

	"github.com/hoplag/hoplag/lda"
)

// BenchmarkUnmarshal is what a collector does with each cell that points sent:
// decode it, add it to others, compare it. An operation is one cell of the
// default's 5,120, in which there are 2,000 packets; the floor copies the same
// bytes of memory, 16 a cell.
func BenchmarkUnmarshal(b *testing.B) {
	const packets, begin = 2000, 1_700_000_000e9
	a := must(lda.New(lda.DefaultConfig))
	for i, p := range packetStream()[:packets] {
		a.Update(p, begin+int64(i)*50_000)
	}
	encoded := must(a.MarshalBinary())
	packed := a.AppendPacked(nil, begin)
	words := a.AppendCells(nil)
	cells := len(words) / 2
	to := make([]uint64, len(words))
	floor := func(from, end int) {
		for ; from < end; from += cells {
			copy(to, words)
		}
	}
	// times calls f once for the cells of an aggregator.
	times := func(b *testing.B, f func()) {
		compare(b, 64*cells, 0, func(from, end int) {
			for ; from < end; from += cells {
				f()
			}
		}, floor)
	}
	into := must(lda.New(lda.DefaultConfig))
	b.Run("UnmarshalBinary", func(b *testing.B) {
		times(b, func() {
			if err := into.UnmarshalBinary(encoded); err != nil {
				b.Fatal(err)
			}
		})
	})
	b.Run("AddPacked", func(b *testing.B) {
		times(b, func() {
			if err := into.AddPacked(packed); err != nil {
				b.Fatal(err)
			}
		})
	})
	b.Run("AppendPacked", func(b *testing.B) { times(b, func() { packed = a.AppendPacked(packed[:0], begin) }) })
	b.Run("Accumulator", func(b *testing.B) {
		total, end := must(lda.NewAccumulator(lda.DefaultConfig)), int64(0)
		times(b, func() {
			end += 1e9
			if err := total.Add(end-1e9, end, a, a); err != nil {
				b.Fatal(err)
			}
		})
	})
}
