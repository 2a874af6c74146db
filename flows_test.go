package hoplag

import (
	"context"
	"encoding/binary"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hoplag/hoplag/hashing"
)

// Each flow has its own delay, and the report finds it, although packets cross
// every cut; the slowest come first.
func TestFollowFlows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLink(t, Config{Key: "k", Flows: 100}, 0)
		defer l.close()
		delay := func(flow int) time.Duration { return time.Duration(1+flow) * time.Millisecond }
		names := map[hashing.Flow]int{}
		for flow := range 40 {
			name := l.a.Load().Flow([]byte{byte(flow)})
			names[name] = flow
			l.all.Go(func() {
				for i := 0; l.ctx.Err() == nil; i++ {
					id := binary.BigEndian.AppendUint32([]byte{byte(flow)}, uint32(i))
					l.a.Load().PassedIn(name, id)
					l.all.Go(func() {
						time.Sleep(delay(flow))
						l.b.PassedIn(name, id)
					})
					time.Sleep(7 * time.Millisecond)
				}
			})
		}
		for _, r := range l.reports(3)[1:] {
			if n := len(r.Forth.Flows) + r.Forth.UnknownFlows; n != 40 || r.Forth.UnknownFlows > 4 {
				t.Fatalf("%d flows, %d of them unknown", n, r.Forth.UnknownFlows)
			}
			right := 0
			for i, f := range r.Forth.Flows {
				if want := delay(names[f.Flow]).Seconds() * 1e9; math.Abs(f.Mean/want-1) < 0.01 {
					right++
				}
				if i > 0 && f.Mean > r.Forth.Flows[i-1].Mean {
					t.Errorf("flow %d comes after a faster one", i)
				}
			}
			// The median of the flows shares no cell.
			if right < 30 {
				t.Errorf("%d of 40 flows are right to 1 %%", right)
			}
			if slowest := names[r.Forth.Flows[0].Flow]; slowest < 35 {
				t.Errorf("flow %d is the slowest", slowest)
			}
		}
	})
}

// A flow that always has dozens of packets on their way loses one in fifty, and
// the counters never see it without any. Reports do not say that it lost none.
func TestFlowLosesAmongPacketsOnTheirWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLink(t, Config{Key: "k", Flows: 100}, 0)
		defer l.close()
		name := l.a.Load().Flow([]byte("busy"))
		l.all.Go(func() {
			for i := 0; l.ctx.Err() == nil; i++ {
				id := binary.BigEndian.AppendUint32(nil, uint32(i))
				l.a.Load().PassedIn(name, id)
				if i%50 > 0 {
					l.all.Go(func() {
						time.Sleep(45 * time.Millisecond)
						l.b.PassedIn(name, id)
					})
				}
				time.Sleep(time.Millisecond)
			}
		})
		for _, r := range l.reports(6)[1:] {
			if len(r.Forth.Flows) != 1 {
				t.Fatalf("%d flows", len(r.Forth.Flows))
			}
			// Of 1,000 packets, 20. As far as the counters know, all that was sent in
			// eight cuts may be on its way at either end.
			if f := r.Forth.Flows[0]; f.Lost < 20 || f.Lost > 20+45+8*100 || f.Overdue > 20 || f.Sent < 990 || f.Sent > 1010 {
				t.Errorf("%d to %d of %d lost, really 20", f.Overdue, f.Lost, f.Sent)
			}
		}
	})
}

// Points that do not agree on the flows say so.
func TestFlowsMismatch(t *testing.T) {
	c := quick
	c.Flows = 100
	a := newTestPoint(t, c, "a")
	c.Flows = 200
	b := newTestPoint(t, c, "b")
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for r := range b.FollowOver(ctx, func(_ context.Context, request []byte) ([]byte, error) { return a.Answer(request) }) {
		a.PassedIn(1, []byte("x"))
		if r.Err != nil {
			t.Log(r.Err)
			return
		}
	}
}
