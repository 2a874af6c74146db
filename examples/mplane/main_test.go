package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hoplag/hoplag/internal/programs"
)

func outputOf(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	if err := run(t.Context(), args, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// In every interval from when a router is slow, the station names segments of
// that router alone, and before it names none.
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

func TestMapOfAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ring.weights")
	ring := "a b 1\nb c 1\nc d 1\nd a 1\nb a 1\nc b 1\nd c 1\na d 1\n"
	if err := os.WriteFile(file, []byte(ring), 0o644); err != nil {
		t.Fatal(err)
	}
	if out := outputOf(t, "-map", file, "-flows", "4"); !strings.Contains(out, "4 routers, 8 links") {
		t.Error(out)
	}
}

func TestFlags(t *testing.T) {
	for want, args := range map[string][]string{
		"-flows is 0":           {"-flows", "0"},
		"-upgrade is -1":        {"-upgrade", "-1"},
		`argument "x"`:          {"x"},
		"flag provided but not": {"-x"},
	} {
		err := run(t.Context(), args, io.Discard, io.Discard)
		if !errors.Is(err, programs.ErrUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v, want %q", args, err, want)
		}
	}
	var help bytes.Buffer
	if err := run(t.Context(), []string{"-h"}, io.Discard, &help); !errors.Is(err, flag.ErrHelp) || !strings.Contains(help.String(), "-map") {
		t.Errorf("-h: error %v, says %s", err, &help)
	}
	if err := run(t.Context(), []string{"-map", "no such file"}, io.Discard, io.Discard); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

// A pipe that is closed ends the program with its error.
func TestOutputFails(t *testing.T) {
	r, w := io.Pipe()
	r.Close()
	if err := run(t.Context(), nil, w, io.Discard); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("error %v", err)
	}
}
