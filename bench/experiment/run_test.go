package experiment

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// execute runs an experiment and returns what it found.
func execute(run Run, measure func(*Run)) (Result, error) {
	return (&Experiment{Name: "coin-1", Measure: measure}).Execute(&run)
}

// An error ends the run wherever it comes up, and nothing is found.
func TestTry(t *testing.T) {
	broken := errors.New("the coin is on its edge")
	toss := func() (int, error) { return 0, broken }
	for name, measure := range map[string]func(*Run){
		"Try":   func(run *Run) { Try(toss()) },
		"Check": func(run *Run) { Check(broken) },
	} {
		after := false
		result, err := execute(Run{}, func(run *Run) {
			run.Note("before")
			measure(run)
			after = true
		})
		if !errors.Is(err, broken) || after || result.Notes != nil {
			t.Errorf("%s: error %v, went on %v, notes %v", name, err, after, result.Notes)
		}
	}
	if Try(2, nil) != 2 {
		t.Error("a value is lost")
	}
	defer func() {
		if recover() != "a bug" {
			t.Error("a panic that is none of Try's does not show")
		}
	}()
	execute(Run{}, func(*Run) { panic("a bug") })
}

// Findings keep the order in which they are reported, and tables may grow after others have begun.
func TestFound(t *testing.T) {
	measure := func(run *Run) {
		first := run.Table("Title", "x", "y")
		run.Table("")
		run.Picture(Picture{File: "a.svg"})
		first.Row(1, []string{"2"})
		run.Note("one", "two")
		run.Note("3")
		run.Beats("b", 0.1, 0.2)
		run.Within("w", "< 3 %", 0.04, 0.03, 0.1)
		run.Between("B", "20–50 %", 0.1, 0.2, 0.5, 0.1)
		run.Between("n", "20–50 %", 0.52, 0.2, 0.5, 0.1)
		run.Within("v", "< 3 %", 0.032, 0.03, 0.1)
		run.Between("a", "about 20 %", 0.21, 0.15, 0.25, 0)
		run.Between("-", "20–50 %", math.NaN(), 0.2, 0.5, 0.1)
		run.Holds("h", "yes", "yes", true)
		run.Meets("k", "yes", "no", false)
		run.Claim("c", "p", "o", AsGood)
	}
	want := Result{
		Claims: []*Claim{
			{What: "b", Paper: "20 %", Ours: "10 %", Verdict: Win},
			{What: "w", Paper: "< 3 %", Ours: "4 %", Verdict: Loss},
			{What: "B", Paper: "20–50 %", Ours: "10 %", Verdict: Lower},
			{What: "n", Paper: "20–50 %", Ours: "52 %", Verdict: Nearly},
			{What: "v", Paper: "< 3 %", Ours: "3.2 %", Verdict: Nearly},
			{What: "a", Paper: "about 20 %", Ours: "21 %", Verdict: AsGood},
			{What: "-", Paper: "20–50 %", Ours: "-", Verdict: DoesNotHold},
			{What: "h", Paper: "yes", Ours: "yes", Verdict: AsGood},
			{What: "k", Paper: "yes", Ours: "no", Verdict: Loss},
			{What: "c", Paper: "p", Ours: "o", Verdict: AsGood},
		},
		Pictures: []Picture{{File: "a.svg"}},
		Tables:   []*Table{{Title: "Title", Columns: []string{"x", "y"}, Rows: [][]string{{"1", "2"}}}, {}},
		Notes:    []string{"one", "two", "3"},
	}
	got, err := execute(Run{}, measure)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
	// A quick run finds the same, without verdicts.
	for i := range want.Claims {
		want.Claims[i].Verdict = ""
	}
	got, _ = execute(Run{Quick: true}, measure)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
