package experiment

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestNumber(t *testing.T) {
	for want, x := range map[string]float64{
		"0": 0, "1.23": 1.234, "0.0012": 0.0012, "10": 10, "144": 144, "1,000": 1000, "10,000": 10_000, "-1,234,567": -1234567,
		"999": 999.4, "2.84e-12": 2.84e-12, "+Inf": math.Inf(1), "NaN": math.NaN(), "-Inf": math.Inf(-1),
	} {
		if got := Number(x); got != want {
			t.Errorf("Number(%v) = %s, want %s", x, got, want)
		}
	}
	for want, x := range map[string]float64{
		"0 %": 1e-12, "-": math.NaN(), "0.17 %": 0.0017, "3.1 %": 0.0312, "4 %": 0.04, "13 %": 0.131, "100 %": 1, "1,234 %": 12.34, "-20 %": -0.2,
	} {
		if got := Percent(x); got != want {
			t.Errorf("Percent(%v) = %s, want %s", x, got, want)
		}
	}
}

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		ours, claimed float64
		want          Verdict
	}{{1, 2, Win}, {1.9, 2, AsGood}, {2.1, 2, Nearly}, {3, 2, Loss}, {math.NaN(), 2, Loss}} {
		if got := Judge(c.ours, c.claimed, 0.1); got != c.want {
			t.Errorf("Judge(%v, %v) = %s, want %s", c.ours, c.claimed, got, c.want)
		}
	}
}

func TestRand(t *testing.T) {
	r, same, other := Run{Seed: 1}, Run{Seed: 1}, Run{Seed: 2}
	first := r.Rand("a").Uint64()
	if first != same.Rand("a").Uint64() {
		t.Error("one seed and purpose give two sequences")
	}
	if first == r.Rand("b").Uint64() || first == other.Rand("a").Uint64() || r.SeedOf("a") == r.SeedOf("b") ||
		r.SeedOf("a") == other.SeedOf("a") {
		t.Error("different seeds or purposes give one sequence")
	}
}

// everything is a result with all of its parts, and with numbers that JSON
// cannot hold.
func everything() *Result {
	return &Result{
		Claims:   []*Claim{{What: "error <of> the \"mean\"", Paper: "< 4 %", Ours: "3 %", Verdict: Win}},
		Pictures: []Picture{{Title: "First", Caption: "Caption.", File: "coin-1-a.svg", SVG: []byte("<svg/>")}},
		Tables:   []*Table{{Name: "t", Title: "Table", Columns: []string{"x", "y"}, Rows: [][]string{{"1", "2"}}}},
		Notes:    []string{"Note."},
		Config:   map[string]any{"packets": 10, "a": []int{1}},
	}
}

func TestSaveAndLoad(t *testing.T) {
	e := &Experiment{Name: "coin-1", Group: "Coins", Title: "Heads", Claim: "Half."}
	run := &Run{Seed: 7, Quick: true}
	dir := t.TempDir()
	if err := Save(dir, e, run, everything()); err != nil {
		t.Fatal(err)
	}
	r, err := Load(dir, "coin-1")
	if err != nil {
		t.Fatal(err)
	}
	if want := "go run ./bench -seed 7 -quick coin-1"; r.Command() != want {
		t.Errorf("command %q, want %q", r.Command(), want)
	}
	if r.Title != "Heads" || *r.Claims[0] != *everything().Claims[0] || r.Pictures[0].File != "coin-1-a.svg" ||
		r.Tables[0].Rows[0][1] != "2" || r.Notes[0] != "Note." {
		t.Errorf("loaded %+v", r)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "coin-1-a.svg")); err != nil || string(got) != "<svg/>" {
		t.Errorf("the picture is %q, %v", got, err)
	}
}

func TestLoadErrors(t *testing.T) {
	dir := t.TempDir()
	if _, err := Load(dir, "coin-1"); !Missing(err) {
		t.Errorf("error %v without a record", err)
	}
	for text, want := range map[string]string{"{": "unexpected end", `{"Name":"other"}`: `the record of "other"`} {
		if err := os.WriteFile(filepath.Join(dir, "coin-1.json"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(dir, "coin-1"); err == nil || Missing(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v of %s, want %q", err, text, want)
		}
	}
}
