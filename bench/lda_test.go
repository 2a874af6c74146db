package main

import (
	"testing"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/lda/control"
)

// streams are the packets of a large and of a small working set.
func streams(b *testing.B, f func(b *testing.B, packets []hashing.Packet)) {
	b.Run("stream-16MiB", func(b *testing.B) { f(b, packetStream()) })
	b.Run("stream-64KiB", func(b *testing.B) { f(b, packetStream()[:1<<13]) })
}

// BenchmarkLDAUpdate is one packet at a time, with its own timestamp. The aggregator is 32 KiB with two banks of 1,024
// cells, 80 KiB with the default's four, of which the first takes most packets.
func BenchmarkLDAUpdate(b *testing.B) {
	for _, c := range []struct {
		name   string
		config lda.Config
		bar    float64
	}{
		{"2banks", twoBanks, 2.0},
		{"default-4banks", lda.DefaultConfig, 0},
	} {
		b.Run(c.name, func(b *testing.B) {
			streams(b, func(b *testing.B, packets []hashing.Packet) {
				a := must(lda.New(c.config))
				compare(b, len(packets), c.bar, func(from, to int) {
					t := int64(from)
					for i, p := range packets[from:to] {
						a.Update(p, t+int64(i))
					}
				}, cellFloor(packets))
			})
		})
	}
}

// BenchmarkLDABatch is UpdateBatch, and what is left of it where there is one bank, in an array whose size the compiler
// knows. To choose the bank takes four instructions of 13 for a packet, and two check bounds; the floor has nine, and
// processors take as many a cycle of one kind as of the other.
func BenchmarkLDABatch(b *testing.B) {
	inBursts(b, 1.6, must(lda.New(twoBanks)).UpdateBatch)
	b.Run("one-bank", func(b *testing.B) {
		cells := new([1024]struct{ sum, tally uint64 })
		inBursts(b, 0, func(packets []hashing.Packet, t int64) {
			for _, p := range packets {
				c := &cells[p%1024]
				c.sum += uint64(t)
				c.tally += uint64(p)>>32<<32 | 1
			}
		})
	})
}

// inBursts is bursts of 32 packets with one timestamp, and so is the floor.
func inBursts(b *testing.B, bar float64, update func([]hashing.Packet, int64)) {
	streams(b, func(b *testing.B, packets []hashing.Packet) {
		floor := cellFloor(packets)
		compare(b, len(packets), bar, func(from, to int) {
			for ; from < to; from += burst {
				update(packets[from:min(from+burst, to)], int64(from))
			}
		}, func(from, to int) {
			for ; from < to; from += burst {
				floor(from, min(from+burst, to))
			}
		})
	})
}

// BenchmarkLDASender updates through the state machine that ends intervals.
func BenchmarkLDASender(b *testing.B) {
	streams(b, func(b *testing.B, packets []hashing.Packet) {
		s := must(control.NewSender(twoBanks, 1, 1500))
		must(s.Start(nil))
		compare(b, len(packets), 0, func(from, to int) {
			t := int64(from)
			for i, p := range packets[from:to] {
				s.Update(p, t+int64(i))
			}
		}, cellFloor(packets))
	})
}
