package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const output = `goos: linux
BenchmarkLDAUpdate/two-8   	 100	  2.500 ns/op	  400.0 Mpkt/s	  2.00 bar-x	  3.00 x-floor	  0 B/op	  0 allocs/op
BenchmarkLDAUpdate/two-8   	 100	  2.500 ns/op	  400.0 Mpkt/s	  2.00 bar-x	  2.00 x-floor	  0 B/op	  0 allocs/op
BenchmarkLDAUpdate/two-8   	 100	  2.500 ns/op	  400.0 Mpkt/s	  2.00 bar-x	  2.20 x-floor	  0 B/op	  0 allocs/op
BenchmarkFrame-8 	 1	 10.0 ns/op	 0.5 x-floor
BenchmarkOther-8 	 1	 10.0 ns/op
PASS
`

// A written table reads back, and the lowest of several runs counts.
func TestRatios(t *testing.T) {
	lowest := parseRun(output, false)
	if got, median := lowest["BenchmarkLDAUpdate/two"], parseRun(output, true)["BenchmarkLDAUpdate/two"]; got != (ratio{2, 2}) ||
		median != (ratio{2.2, 2}) {
		t.Errorf("lowest %v and median %v, want 2 and 2.2 of 2", got, median)
	}
	text := string(table(lowest))
	if !strings.HasSuffix(text, "| `BenchmarkFrame` | 0.5 |  |\n| `BenchmarkLDAUpdate/two` | 2 | 2 |\n") {
		t.Errorf("table:\n%s", text)
	}
	if got := parseTable(text); len(got) != 2 || got["BenchmarkLDAUpdate/two"].floors != 2 {
		t.Errorf("read back: %v", got)
	}
	if slow := compare(io.Discard, parseTable(text), lowest); len(slow) != 0 {
		t.Errorf("%v are too high", slow)
	}
}

// A path that is slow three times fails, one that is slow once does not, and one that is not written fails.
func TestGuardBites(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	measured := func(runs ...map[string]ratio) func(bool) (map[string]ratio, error) {
		return func(bool) (map[string]ratio, error) {
			got := runs[0]
			if len(runs) > 1 {
				runs = runs[1:]
			}
			return got, nil
		}
	}
	is := func(floors float64) map[string]ratio { return map[string]ratio{"BenchmarkX/y": {floors: floors}} }
	if err := run(true, io.Discard, measured(is(2))); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		runs []map[string]ratio
		slow bool
	}{
		{[]map[string]ratio{is(2.9)}, false},
		{[]map[string]ratio{is(3.1)}, true},
		{[]map[string]ratio{is(9), is(9), is(2)}, false},
		{[]map[string]ratio{{"BenchmarkNew": {floors: 1}}}, true},
	} {
		if err := run(false, io.Discard, measured(c.runs...)); errors.Is(err, errSlow) != c.slow {
			t.Errorf("%v: %v, want slow %v", c.runs, err, c.slow)
		}
	}
}

// Every row of RATIOS.md is of a guarded benchmark.
func TestTableIsOfBenchmarks(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", file))
	if err != nil {
		t.Fatal(err)
	}
	ratios := parseTable(string(text))
	if len(ratios) < 20 {
		t.Errorf("%d ratios are written", len(ratios))
	}
	for name := range ratios {
		if !regexp.MustCompile(guarded).MatchString(strings.SplitN(name, "/", 2)[0]) {
			t.Errorf("%s is written and not guarded", name)
		}
	}
}
