package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func outputOf(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	if err := run(t.Context(), args, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// From when a router becomes slow, the station names only segments of that router in every interval; before,
// none.
func TestSlowRouterIsFound(t *testing.T) {
	for _, args := range [][]string{{"-json"}, {"-json", "-upgrade", "8"}} {
		named := 0
		for line := range strings.Lines(outputOf(t, args...)) {
			var row struct {
				Interval     int
				Named, Exact []struct{ Name string }
			}
			if err := json.Unmarshal([]byte(line), &row); err != nil {
				t.Fatal(err)
			}
			exact := map[string]bool{}
			for _, s := range row.Exact {
				exact[s.Name] = true
			}
			for _, s := range row.Named {
				if named++; !exact[s.Name] {
					t.Errorf("%v: interval %d: %s is named, true are %v", args, row.Interval, s.Name, row.Exact)
				}
			}
		}
		if named < 10 {
			t.Errorf("%v: segments are named %d times", args, named)
		}
	}
}

// Without readings of the clocks an excess is that of the round trip, and marked as such.
func TestRoundTripsAreMarked(t *testing.T) {
	for args, want := range map[string]bool{"0": true, "8": false} {
		if out := outputOf(t, "-upgrade", args); strings.Contains(out, "µs both ways") != want {
			t.Errorf("-upgrade %s: %s", args, out)
		}
	}
}

func TestMapOfAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ring.weights")
	ring := "a b 1\nb c 1\nc d 1\nd a 1\nb a 1\nc b 1\nd c 1\na d 1\n"
	if err := os.WriteFile(file, []byte(ring), 0o644); err != nil {
		t.Fatal(err)
	}
	if out := outputOf(t, "-map", file, "-flows", "4"); !strings.Contains(out, "map         4 routers") {
		t.Error(out)
	}
	if err := run(t.Context(), []string{"-map", os.DevNull}, io.Discard, io.Discard); err == nil {
		t.Error("a map without links passes")
	}
}
