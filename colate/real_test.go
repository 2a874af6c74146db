package colate

import (
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/queue/trace"
)

// A realFlow is what became of a flow between two real points.
type realFlow struct {
	flow   hashing.Flow
	delays estimate.Moments // of the packets that arrived, identical ones in order
}

// replay gives a capture pair's IP packets to both points and returns what
// really happened.
func replay(t *testing.T, name string, update func(point trace.Point, flow hashing.Flow, packet hashing.Packet, at int64)) []*realFlow {
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
		if readers[i], err = trace.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	pair := trace.NewPair(readers[0], readers[1])
	waiting := map[hashing.Packet][]int64{}
	flows := map[hashing.Flow]*realFlow{}
	var frame hashing.Frame
	const seed = 9
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
		update(point, flow, packet, rec.Time)
		if point == trace.Ingress {
			waiting[packet] = append(waiting[packet], rec.Time)
			continue
		}
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
// they say, where the clock cuts every so often and where it does not.
func TestRealCoverage(t *testing.T) {
	if testing.Short() {
		t.Skip("statistics of one goroutine, which take long")
	}
	for name, period := range map[string]int64{"tbf300m_2m": maxPeriod, "htb2_reorder": 1e9} {
		t.Run(name, func(t *testing.T) { realCoverage(t, name, period) })
	}
}

func realCoverage(t *testing.T, name string, period int64) {
	c := Config{Counters: 455_334, PerFlow: 20, Bits: 64, CountBits: 14, DigestBits: 20, Period: period}
	epochs := map[int64]*[2]*Recorder{}
	flows := replay(t, name, func(point trace.Point, flow hashing.Flow, packet hashing.Packet, at int64) {
		pair := epochs[at/period]
		if pair == nil {
			pair = new([2]*Recorder)
			for i := range pair {
				pair[i], _ = New(c)
			}
			epochs[at/period] = pair
		}
		pair[point].Update(flow, packet, at)
	})
	var asked []*realFlow
	var records []joint.FlowRecord
	for _, f := range flows {
		if f.delays.N() >= 5 && len(asked) < 1000 {
			asked = append(asked, f)
			records = append(records, joint.FlowRecord{Flow: f.flow, Packets: float64(f.delays.N())})
		}
	}
	a, err := newAccumulator(c, records)
	if err != nil {
		t.Fatal(err)
	}
	for _, start := range slices.Sorted(maps.Keys(epochs)) {
		if err := a.add(epochs[start][0], epochs[start][1]); err != nil {
			t.Fatal(err)
		}
	}
	hits, none := 0, 0
	var relative, widths []float64
	for i, f := range asked {
		r, err := a.ask(i)
		if err != nil {
			none++
			continue
		}
		interval := r.MeanInterval(0.95)
		if interval.Contains(f.delays.Mean()) {
			hits++
		}
		relative = append(relative, estimate.RelativeError(r.Mean, f.delays.Mean()))
		widths = append(widths, (interval.High-interval.Low)/2/f.delays.Mean())
	}
	n := len(asked) - none
	median, _ := estimate.NewEmpirical(relative).Quantile(0.5)
	width, _ := estimate.NewEmpirical(widths).Quantile(0.5)
	t.Logf("%d flows: %.1f %% hold, median error %.2f %%, half width %.1f %%, %d without an answer",
		n, 100*float64(hits)/float64(n), 100*median, 100*width, none)
	// A true coverage as stated would fail once in 10,000.
	if limit := 0.95*float64(n) + estimate.NormalQuantile(1e-4)*math.Sqrt(float64(n)*0.95*0.05); float64(hits) < limit {
		t.Errorf("%d of %d intervals hold, want %.0f", hits, n, limit)
	}
	if none > len(asked)/10 {
		t.Errorf("%d of %d flows without an answer", none, len(asked))
	}
}
