package main

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/hashing"
)

// A report is what has to be kept of a message.
type report struct {
	time       int64
	packet     hashing.Packet
	flow, more uint64
}

// BenchmarkPassed is what a program pays to say that a message passes. The floor
// is what no way to do so can save: it reads the clock, adds to an atomic that
// nobody else wants, hashes a number, and stores a report. With pool, a sync.Pool
// gives each processor a log of its own, and that is most of the rest; without,
// processors that want the same cache line pay 50 ns each (the root's BenchmarkPassed).
func BenchmarkPassed(b *testing.B) {
	point := must(hoplag.NewPoint(hoplag.Config{Key: hoplag.NewKey("a secret of 26 characters.")}))
	defer point.Close()
	type log struct {
		n       atomic.Uint32
		reports [128]report
	}
	base, all := time.Now(), new(log)
	pool := sync.Pool{New: func() any { return new(log) }}
	keep := func(l *log, n uint32, id uint64) {
		l.reports[n%128] = report{time: int64(time.Since(base)), packet: hashing.Word(7, id)}
	}
	each := func(f func(id uint64)) loop {
		return func(from, to int) {
			for i := from; i < to; i++ {
				f(uint64(i))
			}
		}
	}
	for _, path := range []struct {
		name string
		bar  float64
		call func(id uint64)
	}{
		{"clock", 0, func(uint64) { hashed += uint64(time.Since(base)) }},
		{"pool", 0, func(id uint64) {
			l := pool.Get().(*log)
			n := l.n.Load()
			keep(l, n, id)
			l.n.Store(n + 1)
			pool.Put(l)
		}},
		{"PassedNumber", 1.33, point.PassedNumber},
		{"Passed", 1.33, func(id uint64) {
			var bytes [8]byte
			binary.LittleEndian.PutUint64(bytes[:], id)
			point.Passed(bytes[:])
		}},
	} {
		b.Run(path.name, func(b *testing.B) {
			compare(b, streamLength, path.bar, each(path.call), each(func(id uint64) { keep(all, all.n.Add(1), id) }))
		})
	}
}
