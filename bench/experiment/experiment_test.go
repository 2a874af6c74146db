package experiment

import (
	"math"
	"os"
	"path/filepath"
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
		ours, theirs float64
		printed      func(float64) string
		want         Verdict
	}{{1, 2, Percent, Win}, {0.019, 0.02, Percent, Win}, {0.01999, 0.02, Percent, AsGood}, {0.02001, 0.02, Percent, AsGood},
		{3, 2, Percent, Loss}, {math.NaN(), 2, Percent, Loss}, {math.NaN(), math.NaN(), Percent, Loss},
		{1204.1, 1204.4, Number, AsGood}, {1204.1, 1204.4, Percent, Win}} {
		if got := Judge(c.ours, c.theirs, c.printed); got != c.want {
			t.Errorf("Judge(%v, %v) = %s, want %s", c.ours, c.theirs, got, c.want)
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

// What is saved has all that was found, and the command that finds it again.
func TestSave(t *testing.T) {
	e := &Experiment{Name: "coin-1", Group: "Coins", Title: "Heads", Claim: "Half."}
	dir := t.TempDir()
	err := Save(dir, e, &Run{Seed: 7, Quick: true}, &Result{
		Claims: []*Claim{
			{What: "error of the mean", Paper: "< 4 %", Ours: "3 %", Verdict: AsGood}, {What: "another", Paper: "ours: none", Ours: "0"},
		},
		Pictures: []Picture{{Title: "First", Caption: "Caption.", File: "coin-1-a.svg", SVG: []byte("<svg/>")}},
		Tables:   []*Table{{Title: "Table", Columns: []string{"x", "y"}, Rows: [][]string{{"1", "2"}}}},
		Notes:    []string{"Note."},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"coin-1-a.svg": "<svg/>", "coin-1.md": "### Heads\n\n*What was asked.* Half.\n\n" +
		"- Error of the mean. Paper: < 4 %; here: 3 %. It holds.\n- Another. To beat: none; here: 0.\n\n" +
		"<sub>`go run ./bench -seed 7 -quick coin-1`</sub>\n\n![First](coin-1-a.svg)\nCaption.\n\n" +
		"Table\n\n| x | y |\n|---|---|\n| 1 | 2 |\n\nNote.\n"}
	for name, text := range want {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != text {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
	}
}
