package trace

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"
)

// open opens a capture of the shared data, and skips the test where there is
// none.
func open(t testing.TB, name ...string) *Reader {
	t.Helper()
	file, err := os.Open(dataPath(t, name...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	r, err := NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func dataPath(t testing.TB, name ...string) string {
	t.Helper()
	path := filepath.Join(append([]string{"..", "..", "..", "shared", "data"}, name...)...)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("captures that do not ship with the project: %v", err)
	}
	return path
}

// Captures made to break dissectors: their frames are absurd, their files
// mostly are not.
func TestCapturesThatBreakDissectors(t *testing.T) {
	dir := dataPath(t, "encapsulation", "tcpdump")
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	clean, packets, untimed := 0, 0, 0
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		want, end := reference(content)
		recs, err := read(bytes.NewReader(content))
		if err != nil {
			t.Logf("%s: %v, after %d packets", entry.Name(), err, len(recs))
		} else {
			clean++
		}
		if len(recs) != len(want) || endingOf(err) != end {
			t.Errorf("%s: %d packets, %v; want %d, %s", entry.Name(), len(recs), err, len(want), end)
			continue
		}
		for i, rec := range recs {
			if !same(rec, want[i]) {
				t.Errorf("%s: packet %d: %v, want %v", entry.Name(), i+1, rec, want[i])
			}
			if rec.Time == NoTime {
				untimed++
			}
		}
		packets += len(recs)
	}
	t.Logf("%d files, %d of them read to a clean end; %d packets, %d of them without a possible time",
		len(entries), clean, packets, untimed)
}

func TestISPCapture(t *testing.T) {
	r := open(t, "encapsulation", "isp_vlan_10k_ns.pcap.gz")
	packets := 0
	for rec, err := range r.All() {
		if err != nil {
			t.Fatal(err)
		}
		if len(rec.Frame) > 64 || rec.Length < len(rec.Frame) {
			t.Errorf("%d of %d bytes, in a capture of snap length 64", len(rec.Frame), rec.Length)
		}
		packets++
	}
	if packets != 10_000 {
		t.Errorf("%d packets, want 10000", packets)
	}
}

// Nothing is lost in the switch, so that the mean delay is the difference of
// the mean times, whichever packet is which.
func TestSwitchPair(t *testing.T) {
	p := NewPair(open(t, "switch", "ingress.pcap"), open(t, "switch", "egress.pcap"))
	var packets [2]int
	var sum int64
	for {
		point, rec, err := p.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if string(rec.Frame[12:14]) != "\x08\x00" {
			continue // the switch's own protocols, and ARP
		}
		packets[point]++
		// A sum of times would overflow; it is differences that count.
		const base = 1_697_200_000e9
		if point == Ingress {
			sum -= rec.Time - base
		} else {
			sum += rec.Time - base
		}
	}
	if packets != [2]int{1000, 1000} {
		t.Errorf("%v packets, want 1000 at each point", packets)
	}
	if mean := float64(sum) / 1000; math.Abs(mean-4546.40) > 0.005 {
		t.Errorf("mean delay %.3f ns, want 4546.40", mean)
	}
}

// The truth of the two-point captures was found by another program. Matching
// packets by their bytes and length, where those are unique, must find it
// again.
func TestTwoPointPairs(t *testing.T) {
	heavy(t)
	for _, name := range []string{"tbf400m_512k", "htb2_reorder"} {
		t.Run(name, func(t *testing.T) {
			truth, err := os.ReadFile(dataPath(t, "twopoint", name, "truth.txt"))
			if err != nil {
				t.Fatal(err)
			}
			p := NewPair(open(t, "twopoint", name, "ingress.pcap.gz"), open(t, "twopoint", name, "egress.pcap.gz"))
			got := matchUnique(t, p)
			for point := range p.sides {
				if n := p.Unordered(Point(point)); n != 0 {
					t.Errorf("%d unordered at the %v", n, Point(point))
				}
			}
			var want matched
			var lost, duplicates, unordered, p50, p90, p99, p999 int64
			var lossPercent float64
			_, err = fmt.Sscanf(string(truth), "sent=%d rcvd=%d lost=%d (%f%%) duplicates_in_ingress=%d uniquely_matched=%d reorder_adjacent=%d\n"+
				"delay_ns min %d p50 %d p90 %d p99 %d p99.9 %d max %d mean %f",
				&want.sent, &want.received, &lost, &lossPercent, &duplicates, &want.unique, &unordered,
				&want.least, &p50, &p90, &p99, &p999, &want.most, &want.mean)
			if err != nil {
				t.Fatal(err)
			}
			if math.Abs(got.mean-want.mean) > 0.05 { // it is given to one decimal
				t.Errorf("mean delay %.2f ns, want %.1f", got.mean, want.mean)
			}
			got.mean = want.mean
			if got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

type matched struct {
	sent, received, unique int64
	least, most            int64 // delay of the packets that are unique at the ingress
	mean                   float64
}

func matchUnique(t *testing.T, p *Pair) matched {
	type identity struct {
		frame  string
		length int
	}
	type packet struct {
		in, out    int64
		seen, left int32
	}
	packets := make(map[identity]*packet, 1<<18)
	m := matched{least: math.MaxInt64}
	last := int64(math.MinInt64)
	for {
		point, rec, err := p.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if rec.Time < last {
			t.Fatalf("%v packet of %d after %d", point, rec.Time, last)
		}
		last = rec.Time
		known := packets[identity{string(rec.Frame), rec.Length}]
		if known == nil {
			known = new(packet)
			packets[identity{string(rec.Frame), rec.Length}] = known
		}
		if point == Ingress {
			m.sent++
			known.seen++
			known.in = rec.Time
		} else {
			m.received++
			known.left++
			known.out = rec.Time
		}
	}
	sum := 0.0
	for _, k := range packets {
		if k.seen == 1 && k.left == 1 {
			m.unique++
			m.least, m.most = min(m.least, k.out-k.in), max(m.most, k.out-k.in)
			sum += float64(k.out - k.in)
		}
	}
	m.mean = sum / float64(m.unique)
	return m
}
