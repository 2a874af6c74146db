package trace

import (
	"testing"

	"github.com/hoplag/hoplag/queue"
)

func TestMergeReplay(t *testing.T) {
	replayed := func(times ...int64) queue.Source {
		var packets []queue.Packet
		for i, at := range times {
			packets = append(packets, queue.Packet{Time: at, Seq: uint64(i), Tag: uint8(len(times))})
		}
		return Replay(packets)
	}
	merged := Merge(replayed(10, 20, 20, 50), replayed(5, 20), replayed())
	var p queue.Packet
	for i, want := range []struct {
		time int64
		tag  uint8
		seq  uint64
	}{{5, 2, 0}, {10, 4, 0}, {20, 4, 1}, {20, 4, 2}, {20, 2, 1}, {50, 4, 3}} {
		if !merged.Next(&p) || p.Time != want.time || p.Sent != want.time || p.Tag != want.tag || p.Seq != want.seq {
			t.Errorf("packet %d: %+v, want %+v", i, p, want)
		}
	}
	for range 2 {
		if merged.Next(&p) {
			t.Errorf("%+v beyond the end", p)
		}
	}
}
