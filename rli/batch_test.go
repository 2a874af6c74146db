package rli_test

import (
	"bytes"
	"math"
	"testing"

	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/rli"
)

// TestUpdateBatch: packets that are told of together give what they give one by one.
func TestUpdateBatch(t *testing.T) {
	events, _ := pass(t, queue.RLIConfig, adaptive(), 20000, source(t, "poisson", 0.5, 4), nil)
	for i := range events {
		if events[i].kind == measured && i%1000 == 0 {
			events[i].bytes = []int{-1, math.MinInt32, 0}[i/1000%3]
		}
	}
	for name, adapt := range map[string]func(*rli.Config){
		"plain":   func(*rli.Config) {},
		"small":   func(c *rli.Config) { c.Buffer = min(c.Buffer, 7) },
		"sampled": func(c *rli.Config) { c.Sample, c.Hold = 0.5, 0.1 },
		"tuples":  func(c *rli.Config) { c.Tuples = true },
	} {
		for _, m := range []rli.Method{rli.BusyAware, rli.Linear, rli.Left} {
			c := config(m)
			adapt(&c)
			one, batched := receive(t, c, events), newReceiver(t, c)
			var batch []rli.Packet
			for i := range events {
				e := &events[i]
				if e.kind == measured {
					batch = append(batch, rli.Packet{Flow: e.flow, Bytes: e.bytes, Time: e.time})
					continue
				}
				batched.UpdateBatch(batch)
				batched.Reference(e.ref, e.time)
				batch = batch[:0]
			}
			batched.UpdateBatch(batch)
			batched.Flush()
			want, _ := one.MarshalBinary()
			if got, _ := batched.MarshalBinary(); !bytes.Equal(got, want) {
				t.Errorf("%s, %v: batches give another encoding", name, m)
			}
			if n := one.Counts(); n.Invalid == 0 || c.Buffer == 7 && n.Overflowed == 0 || c.Sample < 1 && n.Unsampled == 0 {
				t.Errorf("%s, %v: not all was tried: %+v", name, m, n)
			}
		}
	}
}
