package main

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"
)

var measure = flag.Bool("measure", false, "measure the costs again, and write costs.csv and docs/SCALE.md")

// page returns docs/SCALE.md before, within and after its tables.
func page(t *testing.T) (before, tables, after string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/SCALE.md")
	before, rest, ok := strings.Cut(string(text), "<!-- go run ./bench/scale -->\n")
	tables, after, ok2 := strings.Cut(rest, "<!-- end -->")
	if err != nil || !ok || !ok2 {
		t.Fatalf("no place for tables, %v", err)
	}
	return before, tables, after
}

// The page says what the program prints, byte for byte.
func TestPage(t *testing.T) {
	before, tables, after := page(t)
	var out bytes.Buffer
	pages(&out, read(measured))
	if *measure {
		text := before + "<!-- go run ./bench/scale -->\n" + out.String() + "<!-- end -->" + after
		if err := os.WriteFile("../../docs/SCALE.md", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if tables != out.String() {
		t.Errorf("docs/SCALE.md has other tables than go run ./bench/scale")
	}
}

// With known costs, a collector with as much work as it can do keeps up, and one
// with a tenth more falls behind by a tenth.
func TestSimulate(t *testing.T) {
	c := costs{"µs to take a record": {1: 0}, "µs to report": {1: 2e4}} // 100 pairs a second and collector
	for pairs, want := range map[int]float64{50: 0.5, 100: 1, 110: 1 + 0.1*120} {
		s := simulate(network{pairs: pairs, rate: 1}, c, 1, 0)
		if got := s.age(1); got < want-0.11 || got > want+0.11 {
			t.Errorf("%d pairs: the oldest report is %.2f s old, want %.2f", pairs, got, want)
		}
	}
	if s := simulate(network{pairs: 60, rate: 1}, c, 2, 1); s.age(1) < 10 || s.age(0.5) > 1 || s.greatest > 0.7 {
		t.Errorf("one of two fails: ages up to %.1f s, load %.2f", s.age(1), s.greatest)
	}
}
