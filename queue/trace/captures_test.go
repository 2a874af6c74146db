package trace

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

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
