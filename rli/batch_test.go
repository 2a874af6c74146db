package rli_test

import (
	"bytes"
	"testing"

	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/rli"
)

// TestUpdateBatch: packets that are told of together give what they give one by one.
func TestUpdateBatch(t *testing.T) {
	events, _ := pass(t, queue.RLIConfig, adaptive(), 20000, source(t, "poisson", 0.5, 4), nil)
	for _, m := range []rli.Method{rli.BusyAware, rli.Linear, rli.Left} {
		one, batched := receive(t, config(m), events), newReceiver(t, config(m))
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
			t.Errorf("%v: batches give another encoding", m)
		}
	}
}
