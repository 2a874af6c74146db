package main

import (
	"math/bits"
	"runtime"
	"testing"

	"github.com/hoplag/hoplag/bench/speed"
	"github.com/hoplag/hoplag/colate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lds"
)

// BenchmarkLDSUpdate updates one cell in each of 4 rows of 17,500 cells, 1.1 MiB. The floor updates four among
// as many cells, by the same hashes.
func BenchmarkLDSUpdate(b *testing.B) {
	packets, flows := speed.Packets(), speed.Flows()
	cells := make([]speed.FloorCell, lds.DefaultConfig.Rows*lds.DefaultConfig.Columns)
	n := uint64(len(cells))
	floor := func(from, to int) {
		t, packets := uint64(from), packets[from:to]
		for i, f := range flows[from:to] {
			p, t := uint64(packets[i]), t+uint64(i)
			cells[hashing.Row(uint64(f), n)].Add(t)
			cells[hashing.Row(uint64(f)>>32, n)].Add(t)
			cells[hashing.Row(p, n)].Add(t)
			cells[hashing.Row(p>>32, n)].Add(t)
		}
	}
	b.Run("4x17500-1MiB-cells-alone", func(b *testing.B) {
		cells := make([]speed.FloorCell, len(cells))
		speed.Compare(b, speed.StreamLength, 0, func(from, to int) {
			t, packets := uint64(from), packets[from:to]
			for i, f := range flows[from:to] {
				fourCells(cells, uint64(lds.DefaultConfig.Columns), f, packets[i], t+uint64(i))
			}
		}, floor)
	})
	plain := lds.DefaultConfig
	plain.Rates = [lds.MaxRows]float64{1, 1, 1, 1}
	banks := plain
	banks.Rates = [lds.MaxRows]float64{1, 1, 0.1, 0.01}
	spread := lds.DefaultConfig
	spread.Spread = 5
	spread.Rates = [lds.MaxRows]float64{1, 0.5, 0.1, 0.01}
	for _, c := range []struct {
		name   string
		config lds.Config
		bar    float64
	}{
		{"4x17500-1MiB", plain, 1.55},
		{"4x17500-1MiB-banks", banks, 1.5},
		{"4x17500-1MiB-spread5-banks", spread, 2.5},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := must(lds.New(c.config))
			speed.Compare(b, speed.StreamLength, c.bar, func(from, to int) {
				t, packets := int64(from), packets[from:to]
				for i, f := range flows[from:to] {
					s.Update(f, packets[i], t+int64(i))
				}
			}, floor)
		})
	}
}

// fourCells is Update without sampling, on four rows of which only the program that runs knows the size.
//
//go:noinline
func fourCells(cells []speed.FloorCell, columns uint64, f hashing.Flow, p hashing.Packet, t uint64) {
	first, rest := bits.Mul64(uint64(f), columns)
	second, _ := bits.Mul64(rest, columns)
	third, rest := bits.Mul64(uint64(f)*0xd1342543de82ef95, columns)
	fourth, _ := bits.Mul64(rest, columns)
	tally := uint64(p)<<32 | 1
	w, x, y, z := &cells[first], &cells[columns+second], &cells[2*columns+third], &cells[3*columns+fourth]
	add := func(c *speed.FloorCell) { c.Sum += t; c.Count += tally }
	add(w)
	add(x)
	add(y)
	add(z)
}

// BenchmarkCOLATEUpdate: 455,334 counters, 16 of them a flow's. The floor updates one among as many counters of
// the same size, by the same hashes. Each packet, or burst, checks whether the epoch is over. What Update adds
// to hash and word, a count, epoch, samples, and widths that are no constants, makes no measurable difference
// if any one is left out: most of the time goes into counters that are in no near cache, of which a processor
// reads fewer at once the more instructions there are between. UpdateBatch reads those of 32 packets one after the
// other: then it takes less than hash and word alone for one packet at a time, and a third more than those for a burst.
func BenchmarkCOLATEUpdate(b *testing.B) {
	packets, flows := speed.Packets(), speed.Flows()
	floor := counterFloor(packets, flows)
	r := must(colate.New(colate.DefaultConfig))
	const gap = 14_000 // ns between packets, of 70,000 a second
	b.Run("455334-counters-default-3.5MiB", func(b *testing.B) {
		speed.Compare(b, speed.StreamLength, 4.8, func(from, to int) {
			t, packets := int64(from), packets[from:to]
			for i, f := range flows[from:to] {
				now := (t + int64(i)) * gap
				if r.Due(now) {
					r.Reset()
				}
				r.Update(f, packets[i], now)
			}
		}, floor)
	})
	b.Run("455334-counters-bursts-3.5MiB", func(b *testing.B) {
		speed.Compare(b, speed.StreamLength, 3.3, func(from, to int) {
			for ; from < to; from += burst {
				now, end := int64(from)*gap, min(from+burst, to)
				if r.Due(now) {
					r.Reset()
				}
				r.UpdateBatch(flows[from:end], packets[from:end], now)
			}
		}, floor)
	})
	counters := make([]uint64, colate.DefaultConfig.Counters)
	b.Run("455334-counters-bursts-3.5MiB-hash-and-word-alone", func(b *testing.B) {
		speed.Compare(b, speed.StreamLength, 0, func(from, to int) {
			for ; from < to; from += burst {
				end := min(from+burst, to)
				hashAndWords(counters, flows[from:end], packets[from:end], int64(from))
			}
		}, floor)
	})
	b.Run("455334-counters-3.5MiB-hash-and-word-alone", func(b *testing.B) {
		speed.Compare(b, speed.StreamLength, 0, func(from, to int) {
			t, packets := int64(from), packets[from:to]
			for i, f := range flows[from:to] {
				hashAndWord(counters, f, packets[i], t+int64(i))
			}
		}, floor)
	})
}

// hashAndWords is hashAndWord for a burst, whose counters it fetches at once as UpdateBatch does.
//
//go:noinline
func hashAndWords(counters []uint64, flows []hashing.Flow, packets []hashing.Packet, t int64) {
	var at [burst]uint32
	seen, n := uint64(0), min(len(packets), len(at), len(flows))
	flows, packets = flows[:n], packets[:n]
	for i, p := range packets {
		at[i] = uint32(hashing.Row(hashing.Mix(uint64(flows[i]), hashing.Row(uint64(p), 16)), uint64(len(counters))))
	}
	for _, i := range at[:n] {
		seen |= counters[i]
	}
	runtime.KeepAlive(seen)
	for i, p := range packets {
		counters[at[i]] += uint64(t)>>9<<34 + uint64(p)>>44<<14 + 1
	}
}

// hashAndWord is the least that COLATE's counters take for a packet, of widths known when it is compiled: the keyed hash
// that finds the flow's counter, and a word of time, digest and count, behind a call, because that is too much to be
// inlined. It counts no packets, knows no epoch and samples nothing.
//
//go:noinline
func hashAndWord(counters []uint64, f hashing.Flow, p hashing.Packet, t int64) {
	at := hashing.Row(hashing.Mix(uint64(f), hashing.Row(uint64(p), 16)), uint64(len(counters)))
	counters[at] += uint64(t)>>9<<34 + uint64(p)>>44<<14 + 1
}

// counterFloor adds a timestamp to one random counter. It is not inlined, so that it is the same loop as anyone would write:
// within a larger function it takes twice as long.
//
//go:noinline
func counterFloor(packets []hashing.Packet, flows []hashing.Flow) speed.Loop {
	counters := make([]uint64, colate.DefaultConfig.Counters)
	n := uint64(len(counters))
	return func(from, to int) {
		t, packets := from, packets[from:to]
		for i, f := range flows[from:to] {
			counters[hashing.Row(uint64(f)^uint64(packets[i]), n)] += uint64(t + i)
		}
	}
}
