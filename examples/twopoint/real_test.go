package main

import (
	"bytes"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/queue/trace"
)

const seeds = 10

// passed is a packet at a point.
type passed struct {
	point  trace.Point
	time   int64
	packet packet
}

// load reads a capture pair that is kept beside the project, if it is there.
func load(t *testing.T, in, out string) []passed {
	t.Helper()
	data := filepath.Join("..", "..", "..", "shared", "data")
	in, out = filepath.Join(data, in), filepath.Join(data, out)
	if _, err := os.Stat(in); err != nil {
		t.Skipf("needs a capture that is not part of the project: %v", err)
	}
	c, err := open(in, out)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var all []passed
	for {
		point, rec, err := c.pair.Next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		p := passed{point: point, time: rec.Time}
		rec.Frame = bytes.Clone(rec.Frame)
		if err := p.packet.parse(rec); err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// measure feeds the packets to the program's meter.
func measure(t *testing.T, packets []passed, c lda.Config) row {
	t.Helper()
	m, err := newMeter(c, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range packets {
		if err := m.update(packets[i].point, packets[i].time, &packets[i].packet); err != nil {
			t.Fatal(err)
		}
	}
	r, err := m.report()
	if err != nil {
		t.Fatal(err)
	}
	return r.Intervals[0]
}

// The mean's error, averaged over the seeds, stays below the bound that the
// sampling deviation gives with the effective sample sizes of these captures.
func TestRealQueues(t *testing.T) {
	if testing.Short() {
		t.Skip("a lot to do in one goroutine")
	}
	for _, c := range []struct {
		name  string
		lost  float64
		exact float64 // mean in ns over all packets, where known beforehand
		bound float64
	}{
		{"tbf400m_512k", 840, 513370, 0.02},
		{"tbf300m_2m", 1101, 6657643, 0.02},
		{"htb2_reorder", 5488, 0, 0.05},
	} {
		t.Run(c.name, func(t *testing.T) {
			packets := load(t, "twopoint/"+c.name+"/ingress.pcap.gz", "twopoint/"+c.name+"/egress.pcap.gz")
			opt, err := parse(nil, io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			config := opt.config
			truth := measure(t, packets, config)
			if truth.Sent.Exact != 213228 || truth.Lost.Exact != c.lost {
				t.Errorf("exact: %v sent, %v lost, want 213228 and %v", truth.Sent.Exact, truth.Lost.Exact, c.lost)
			}
			if c.exact > 0 && math.Abs(truth.Mean.Exact-c.exact) > 0.5 {
				t.Errorf("exact mean %.1f, want %v", truth.Mean.Exact, c.exact)
			}
			var total float64
			for seed := range seeds {
				up, down := aggregate(t, packets, config, uint64(seed+1))
				r, err := lda.Estimate(up, down)
				if err != nil {
					t.Fatal(err)
				}
				if float64(r.Lost) != truth.Lost.Exact || r.Extra != 0 {
					t.Errorf("seed %d: %d lost and %d extra, exact %v and 0", seed+1, r.Lost, r.Extra, truth.Lost.Exact)
				}
				total += math.Abs(r.Mean-truth.Mean.Exact) / truth.Mean.Exact
			}
			t.Logf("mean error over %d seeds: %.3f %%", seeds, 100*total/seeds)
			if total/seeds > c.bound {
				t.Errorf("mean error over %d seeds is %.2f %%, want at most %v %%", seeds, 100*total/seeds, 100*c.bound)
			}
			if e := math.Abs(differenceOfSums(packets)-truth.Mean.Exact) / truth.Mean.Exact; e <= c.bound {
				t.Errorf("negative control: the difference of all sums, which losses spoil, passes: %.2f %%", 100*e)
			}
		})
	}
}

// aggregate feeds one aggregator at each point.
func aggregate(t *testing.T, packets []passed, c lda.Config, seed uint64) (up, down *lda.Aggregator) {
	t.Helper()
	var sides [2]*lda.Aggregator
	for i := range sides {
		a, err := lda.New(c)
		if err != nil {
			t.Fatal(err)
		}
		sides[i] = a
	}
	for i := range packets {
		p := &packets[i]
		sides[p.point].Update(p.packet.digest(seed), p.time)
	}
	return sides[trace.Ingress], sides[trace.Egress]
}

// differenceOfSums is the estimate without cells: the difference of the sums
// of all timestamps, by the number of packets received.
func differenceOfSums(packets []passed) float64 {
	var sums [2]float64
	var n float64
	for _, p := range packets {
		sums[p.point] += float64(p.time - packets[0].time)
		if p.point == trace.Egress {
			n++
		}
	}
	return (sums[1] - sums[0]) / n
}

// Where nothing is lost the mean is exact: both sides of a hardware switch,
// on one clock of 10 ns.
func TestRealSwitch(t *testing.T) {
	packets := load(t, "switch/ingress.pcap", "switch/egress.pcap")
	opt, err := parse(nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	packets = slices.DeleteFunc(packets, func(p passed) bool { return p.packet.other != nil })
	w := measure(t, packets, opt.config)
	if w.Sent.LDA != 1000 || w.Lost.LDA != 0 {
		t.Errorf("sent %v, lost %v, want 1000 and 0", w.Sent.LDA, w.Lost.LDA)
	}
	if math.Abs(w.Mean.LDA-4546.40) > 0.01 {
		t.Errorf("mean %v, want 4546.40", w.Mean.LDA)
	}
	if math.Abs(w.StdDev.Exact-45.207) > 0.001 {
		t.Errorf("exact deviation %v, want 45.207", w.StdDev.Exact)
	}
}

// All packets that the shipped captures lost are named, and none that came.
func TestLostPacketsAreNamed(t *testing.T) {
	r := decoded(t)
	if want := int(r.Intervals[0].Lost.Exact); len(r.Named) < want*95/100 || len(r.Named) > want || r.NamedWrongly > 0 {
		t.Errorf("%d named, %d wrongly, of %d lost", len(r.Named), r.NamedWrongly, want)
	}
}
