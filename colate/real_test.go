package colate

import (
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/traffic"
	"github.com/hoplag/hoplag/queue/trace"
)

// captured are the IP packets of a pair of captures. Identical ones are matched in order.
func captured(t *testing.T, name string) (all []passage) {
	t.Helper()
	readers := [2]*trace.Reader{}
	for i, side := range []string{"ingress", "egress"} {
		f, err := os.Open(filepath.Join("..", "..", "shared", "data", "twopoint", name, side+".pcap.gz"))
		if err != nil {
			t.Skipf("needs captures that are not part of the project: %v", err)
		}
		defer f.Close()
		if readers[i], err = trace.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	pair, waiting := trace.NewPair(readers[0], readers[1]), map[hashing.Packet][]int{}
	var frame hashing.Frame
	const seed = 9
	for {
		point, rec, err := pair.Next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if frame.Parse(rec.Link, rec.Frame) != nil {
			continue
		}
		packet := frame.Digest(seed)
		if point == trace.Ingress {
			waiting[packet] = append(waiting[packet], len(all))
			all = append(all, passage{Flow: frame.Tuple.Flow(seed), Packet: packet, Sent: rec.Time, Lost: true})
		} else if sent := waiting[packet]; len(sent) > 0 {
			all[sent[0]].At, all[sent[0]].Lost = rec.Time, false
			waiting[packet] = sent[1:]
		}
	}
}

// Intervals hold on real queues, with real loss, for as many of 1,000 flows as
// they say, where the clock cuts every so often and where it does not.
func TestRealCoverage(t *testing.T) {
	long(t)
	for name, period := range map[string]int64{"tbf300m_2m": maxPeriod, "htb2_reorder": 1e9} {
		t.Run(name, func(t *testing.T) {
			w := world{config: cutAt(period)}
			w.config.Counters = 455_334
			epochs, arrived := w.cut(t, captured(t, name))
			list := traffic.Truths(arrived, 5)
			list = list[:min(len(list), 1000)]
			w.follow(t, epochs, recordsOf(list)).held(t, list, 0, math.Inf(1)).want(t, name, len(list)*9/10)
		})
	}
}
