package speed

import (
	"slices"
	"testing"
)

func TestReaderGoesRound(t *testing.T) {
	var seen []int
	r := reader{stream: 10, at: 7, loop: func(from, to int) {
		for i := from; i < to; i++ {
			seen = append(seen, i)
		}
	}}
	r.perPacket(2)
	r.perPacket(13)
	want := []int{7, 8, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1}
	if !slices.Equal(seen, want) {
		t.Errorf("read %v, want %v", seen, want)
	}
}

// The path runs as often as the benchmark says it did, and the floor enough to be timed.
func BenchmarkCounts(b *testing.B) {
	var path, floor int
	Compare(b, 1000, 0,
		func(from, to int) { path += to - from },
		func(from, to int) { floor += to - from })
	if path != b.N || floor < b.N {
		b.Fatalf("%d packets of the path and %d of the floor, want %d", path, floor, b.N)
	}
}
