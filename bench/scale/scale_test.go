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

// Collectors are needed in proportion to the work, and the fullest has at least its share of the pairs, and
// little more where there are many.
func TestNetwork(t *testing.T) {
	c := costs{"µs to take a record": {1: 0}, "µs to report": {1: 2e4}} // 100 pairs a second and collector
	n := network{pairs: 70_000, rate: 1}
	if got := n.bounds(c)["processor"]; got < 999.9 || got > 1000.1 {
		t.Errorf("%g collectors, want 1,000 at a load of 0.7", got)
	}
	// 70 pairs a collector: a deviation of an eighth, and the fullest of 1,000 is some three above.
	if got := n.fullest(1000); got < 1.2 || got > 1.7 {
		t.Errorf("the fullest has %g of the mean", got)
	}
}
