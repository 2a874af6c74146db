package hoplag

import (
	"fmt"
	"testing"
	"time"

	"github.com/hoplag/hoplag/hashing"
)

// BenchmarkPair is what a record costs who compares many pairs of points, most
// of whose memory is in no cache: one second in three nothing passes, else 2,000
// packets in a cut, of which one in a hundred is lost.
func BenchmarkPair(b *testing.B) {
	c := Config{Key: "a key of a benchmark"}.withDefaults()
	const cuts, packets, delay = 60, 2000, int64(5e6)
	path := newShardedPath(c, 1, 1, 1, cuts)
	for cut := 10; cut < cuts-10; cut++ {
		for i := range packets {
			id := cut*packets + i
			packet := hashing.Packet(hashing.Word(c.seed(), uint64(id)))
			at := (pathBegin+int64(cut))*int64(c.Cut) + int64(i)*int64(c.Cut)/packets
			path.whole[0][cut].add([]entry{{time: at, packet: packet}})
			if id%100 != 0 {
				at += delay
				path.whole[1][at/int64(c.Cut)-pathBegin].add([]entry{{time: at, packet: packet}})
			}
		}
	}
	var records [2][cuts][]byte
	for cut := range cuts {
		for point := range records {
			records[point][cut] = path.record(1, cut, path.whole[point][cut])
		}
	}
	for _, pairs := range []int{1, 100} {
		b.Run(fmt.Sprintf("pairs=%d", pairs), func(b *testing.B) {
			b.ReportAllocs()
			all := make([]*Pair, pairs)
			reports := 0
			for i := range b.N {
				cut, k, point := i/2/pairs%cuts, i/2%pairs, i%2
				if cut == 0 && point == 0 {
					all[k] = must(NewPair(c, "a", "b"))
				}
				all[k].At(path.ended(cut).Add(time.Millisecond))
				if err := all[k].take(point, "", records[point][cut]); err != nil {
					b.Fatal(err)
				}
				for r, ok := all[k].Next(); ok; r, ok = all[k].Next() {
					reports++
					_ = r
				}
			}
			b.ReportMetric(float64(reports)/float64(b.N), "reports/op")
		})
	}
}
