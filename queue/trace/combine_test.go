package trace

import (
	"errors"
	"math"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/queue"
)

func TestMergeScaleReplay(t *testing.T) {
	replayed := func(times ...int64) queue.Source {
		var packets []queue.Packet
		for i, at := range times {
			packets = append(packets, queue.Packet{Time: at, Seq: uint64(i), Tag: uint8(len(times))})
		}
		return Replay(packets)
	}
	merged := Merge(replayed(10, 20, 20, 50), replayed(5, 20), replayed())
	scaled := must(Scale(merged, 2.5))(t)
	var p queue.Packet
	for i, want := range []struct {
		time int64
		tag  uint8
		seq  uint64
	}{{5, 2, 0}, {17, 4, 0}, {42, 4, 1}, {42, 4, 2}, {42, 2, 1}, {117, 4, 3}} {
		if !scaled.Next(&p) || p.Time != want.time || p.Sent != want.time || p.Tag != want.tag || p.Seq != want.seq {
			t.Errorf("packet %d: %+v, want %+v", i, p, want)
		}
	}
	for range 2 {
		if scaled.Next(&p) {
			t.Errorf("%+v beyond the end", p)
		}
	}
	for _, factor := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		if _, err := Scale(merged, factor); !errors.Is(err, estimate.ErrConfig) {
			t.Errorf("factor %v: %v", factor, err)
		}
	}
}
