package lds_test

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lds"
	"github.com/hoplag/hoplag/queue/trace"
)

// capture opens one of a pair of captures, or skips the test.
func capture(t *testing.T, set, name string) *trace.Reader {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "..", "shared", "data", "twopoint", set, name))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("the captures are not here:", err)
	}
	t.Cleanup(func() { f.Close() })
	return must(trace.NewReader(must(f, err)))
}

// seen is what really happened to a flow: packets are matched exactly, those with identical bytes in order.
type seen struct {
	sent   int
	delays estimate.Moments
}

// replay passes a set's packets by the two points, and returns the truth about its flows and about all packets.
func replay(t *testing.T, set string) (up, down *lds.Sketch, flows map[hashing.Flow]*seen, all estimate.Moments) {
	pair := trace.NewPair(capture(t, set, "ingress.pcap.gz"), capture(t, set, "egress.pcap.gz"))
	up, down = must(lds.New(lds.DefaultConfig)), must(lds.New(lds.DefaultConfig))
	waiting := map[hashing.Packet][]int64{}
	flows = map[hashing.Flow]*seen{}
	for {
		point, rec, err := pair.Next()
		if errors.Is(err, io.EOF) {
			return up, down, flows, all
		}
		if err != nil {
			t.Fatal(err)
		}
		var frame hashing.Frame
		if frame.Parse(rec.Link, rec.Frame) != nil {
			continue // not IP
		}
		f, p := frame.Tuple.Flow(1), frame.Digest(1)
		if flows[f] == nil {
			flows[f] = &seen{}
		}
		if point == trace.Ingress {
			up.Update(f, p, rec.Time)
			flows[f].sent++
			waiting[p] = append(waiting[p], rec.Time)
			continue
		}
		down.Update(f, p, rec.Time)
		delay := float64(rec.Time - waiting[p][0])
		waiting[p] = waiting[p][1:]
		flows[f].delays.Add(delay)
		all.Add(delay)
	}
}

// TestRealCaptures: real packets through real queues, with losses, reordering and identical packets. The bar is the project's own:
// the median error of flows of 100 packets or more is at most 5 %. The mean of all packets, the control, is farther off.
func TestRealCaptures(t *testing.T) {
	for _, set := range []string{"tbf400m_512k", "htb2_reorder"} {
		up, down, flows, average := replay(t, set)
		keys := slices.Sorted(maps.Keys(flows))
		var records []joint.FlowRecord
		for _, f := range keys {
			records = append(records, joint.FlowRecord{Flow: f, Packets: float64(flows[f].sent)})
		}
		decoded := must(lds.Decode(t.Context(), up, down, records, joint.Options{}))
		var one, all, mean []float64
		for i, f := range keys {
			x := flows[f]
			if x.sent < 100 || x.delays.N() == 0 {
				continue
			}
			r, err := lds.Estimate(up, down, f)
			if err != nil && !errors.Is(err, estimate.ErrNoSamples) || err == nil && r.Sent < uint64(x.sent) {
				t.Errorf("flow of %d packets: %+v, %v", x.sent, r, err)
			}
			one = append(one, estimate.RelativeError(r.Mean, x.delays.Mean())) // 100 % without a usable cell
			all = append(all, estimate.RelativeError(decoded.Mean[i], x.delays.Mean()))
			mean = append(mean, estimate.RelativeError(average.Mean(), x.delays.Mean()))
		}
		if len(one) < 100 {
			t.Fatalf("%d flows of 100 packets or more: the test shows nothing", len(one))
		}
		const bar = 0.05
		a, b, control := median(one), median(all), median(mean)
		t.Logf("%s: %d flows, median errors: Estimate %.4f, Decode %.4f, mean of all %.2f", set, len(one), a, b, control)
		if a > bar || b > bar || control <= bar {
			t.Errorf("%s: median errors: Estimate %.4f, Decode %.4f, mean of all %.4f", set, a, b, control)
		}
	}
}

func median(x []float64) float64 {
	slices.Sort(x)
	return x[len(x)/2]
}
