package lds_test

import (
	"errors"
	"io"
	"io/fs"
	"math"
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
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return must(trace.NewReader(f))
}

// seen is what really happened to a flow: packets are matched exactly, those
// with identical bytes in order.
type seen struct {
	sent, received int
	delays         float64
}

// replay shows the two points the packets of a set, and returns what is true of
// its flows, and the mean of all delays.
func replay(t *testing.T, set string) (up, down *lds.Sketch, flows map[hashing.Flow]*seen, average float64) {
	pair := trace.NewPair(capture(t, set, "ingress.pcap.gz"), capture(t, set, "egress.pcap.gz"))
	up, down = must(lds.New(lds.DefaultConfig)), must(lds.New(lds.DefaultConfig))
	waiting := map[hashing.Packet][]int64{}
	flows = map[hashing.Flow]*seen{}
	var total, received float64
	for {
		point, rec, err := pair.Next()
		if errors.Is(err, io.EOF) {
			return up, down, flows, total / received
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
		if len(waiting[p]) == 0 {
			t.Fatal("a packet left that had not come")
		}
		delay := float64(rec.Time - waiting[p][0])
		waiting[p] = waiting[p][1:]
		flows[f].received++
		flows[f].delays += delay
		total += delay
		received++
	}
}

// TestRealCaptures: real packets through real queues, with losses, reordering
// and identical packets. The bar is the project's own: the median error of
// flows of 100 packets or more is at most 5 %.
func TestRealCaptures(t *testing.T) {
	for _, set := range []string{"tbf400m_512k", "tbf300m_2m", "htb2_reorder"} {
		t.Run(set, func(t *testing.T) {
			up, down, flows, average := replay(t, set)
			var keys []hashing.Flow
			for f := range flows {
				keys = append(keys, f)
			}
			slices.Sort(keys)
			var records []joint.FlowRecord
			for _, f := range keys {
				records = append(records, joint.FlowRecord{Flow: f, Packets: float64(flows[f].sent)})
			}
			decoded := must(lds.Decode(t.Context(), up, down, records, joint.Options{}))
			var one, all, mean []float64
			for i, f := range keys {
				x := flows[f]
				if x.sent < 100 || x.received == 0 {
					continue
				}
				truth := x.delays / float64(x.received)
				r, err := lds.Estimate(up, down, f)
				if err != nil && !errors.Is(err, estimate.ErrNoSamples) {
					t.Fatal(err)
				}
				if r.Sent < uint64(x.sent) && err == nil {
					t.Errorf("flow of %d packets: %d sent", x.sent, r.Sent)
				}
				one = append(one, estimate.RelativeError(r.Mean, truth)) // 100 % without a usable cell
				all = append(all, estimate.RelativeError(decoded.Mean[i], truth))
				mean = append(mean, estimate.RelativeError(average, truth))
			}
			if len(one) < 100 {
				t.Fatalf("%d flows of 100 packets or more: the test shows nothing", len(one))
			}
			const bar = 0.05
			if got := median(one); got > bar {
				t.Errorf("median error %.4f", got)
			}
			if got := median(all); got > bar {
				t.Errorf("median error of joint decoding %.4f", got)
			}
			// Negative control: the mean of all packets for every flow.
			if got := median(mean); got <= bar {
				t.Errorf("the mean of all would do: %.4f", got)
			}
			t.Logf("%d flows, median errors: Estimate %.4f, Decode %.4f, mean of all %.2f", len(one), median(one), median(all), median(mean))
		})
	}
}

func median(x []float64) float64 {
	x = slices.Clone(x)
	slices.Sort(x)
	if len(x) == 0 {
		return math.Inf(1)
	}
	return x[len(x)/2]
}
