package colate_test

import (
	"compress/gzip"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/hoplag/hoplag/colate"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/queue/trace"
)

// A realFlow is what became of a flow between two real points.
type realFlow struct {
	flow   hashing.Flow
	delays estimate.Moments // of the packets that arrived, identical ones in order
}

// replay gives a capture pair's IP packets to two recorders and returns what
// really happened.
func replay(t *testing.T, name string, up, down *colate.Recorder) []*realFlow {
	t.Helper()
	folder := filepath.Join("..", "..", "shared", "data", "twopoint", name)
	if _, err := os.Stat(folder); err != nil {
		t.Skipf("needs captures that are not part of the project: %v", err)
	}
	readers := [2]*trace.Reader{}
	for i, side := range []string{"ingress", "egress"} {
		f, err := os.Open(filepath.Join(folder, side+".pcap.gz"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		if readers[i], err = trace.NewReader(z); err != nil {
			t.Fatal(err)
		}
	}
	pair := trace.NewPair(readers[0], readers[1])
	waiting := map[hashing.Packet][]int64{}
	flows := map[hashing.Flow]*realFlow{}
	var frame hashing.Frame
	seed := up.Config().Identity
	for {
		point, rec, err := pair.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := frame.Parse(rec.Link, rec.Frame); err != nil {
			continue
		}
		flow, packet := frame.Tuple.Flow(seed), frame.Digest(seed)
		if point == trace.Ingress {
			up.Update(flow, packet, rec.Time)
			waiting[packet] = append(waiting[packet], rec.Time)
			continue
		}
		down.Update(flow, packet, rec.Time)
		sent := waiting[packet]
		if len(sent) == 0 {
			continue
		}
		waiting[packet] = sent[1:]
		if flows[flow] == nil {
			flows[flow] = &realFlow{flow: flow}
		}
		flows[flow].delays.Add(float64(rec.Time - sent[0]))
	}
	var list []*realFlow
	for _, f := range flows {
		list = append(list, f)
	}
	slices.SortFunc(list, func(a, b *realFlow) int {
		if a.flow < b.flow {
			return -1
		}
		return 1
	})
	return list
}

// Intervals hold on real queues, with real loss, for as many of 1,000 flows as
// they say.
func TestRealCoverage(t *testing.T) {
	for _, name := range []string{"tbf400m_512k", "tbf300m_2m", "htb2_reorder"} {
		t.Run(name, func(t *testing.T) {
			c := colate.Config{Identity: 9, Counters: 455_334, PerFlow: 20, Bits: 52, CountBits: 16, Vectors: 1}
			up, err := colate.New(c)
			if err != nil {
				t.Fatal(err)
			}
			down, _ := colate.New(c)
			flows := replay(t, name, up, down)
			sender, _ := colate.NewSubvector(c)
			receiver, _ := colate.NewSubvector(c)
			n, hits, none := 0, 0, 0
			var relative, widths []float64
			for _, f := range flows {
				if n == 1000 {
					break
				}
				if f.delays.N() < 5 {
					continue
				}
				n++
				sender.Reset(f.flow)
				receiver.Reset(f.flow)
				if err := errors.Join(sender.Add(up.Current()), receiver.Add(down.Current())); err != nil {
					t.Fatal(err)
				}
				r, err := colate.Estimate(sender, receiver, f.delays.N())
				if err != nil {
					none++
					continue
				}
				if r.Interval.Contains(f.delays.Mean()) {
					hits++
				}
				relative = append(relative, estimate.RelativeError(r.Mean, f.delays.Mean()))
				widths = append(widths, (r.Interval.High-r.Interval.Low)/2/f.delays.Mean())
			}
			errorsOf, widthsOf := estimate.NewEmpirical(relative), estimate.NewEmpirical(widths)
			median, _ := errorsOf.Quantile(0.5)
			width, _ := widthsOf.Quantile(0.5)
			t.Logf("%d flows: %.1f %% hold, median error %.2f %%, half width %.1f %%, %d without an estimate",
				n, 100*float64(hits)/float64(n-none), 100*median, 100*width, none)
			// A true coverage as stated would fail once in 10,000.
			limit := colate.Confidence*float64(n-none) + estimate.NormalQuantile(1e-4)*math.Sqrt(float64(n)*colate.Confidence*(1-colate.Confidence))
			if float64(hits) < limit {
				t.Errorf("%d of %d intervals hold, want %.0f", hits, n-none, limit)
			}
			if none > n/20 {
				t.Errorf("%d of %d flows without an estimate", none, n)
			}
		})
	}
}
