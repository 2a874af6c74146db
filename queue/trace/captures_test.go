package trace

import (
	"bytes"
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
