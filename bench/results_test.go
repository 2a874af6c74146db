package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func TestResults(t *testing.T) {
	dir := t.TempDir()
	if _, _, err := commanded(coins(), "-out", dir, "coin-1", "die"); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "RESULTS.md")
	if _, _, err := commanded(coins(), "-out", dir, "-results", file); err != nil {
		t.Fatal(err)
	}
	page := contents(t, dir)["RESULTS.md"]
	for _, want := range []string{
		"go run ./bench -seed 1 \\\\\n        coin-1 die\n", "go run ./bench -seed 1 \\\\\n        coin-2 coin-10\n",
		"## Coins\n\n### One\n\n\\*What was asked.\\* Half.\n\n- Heads. Paper: 0.5; here: 0\\.\\d{1,4}. It holds.\n",
		"## Dice\n\n### Six\n", "<sub>`go run ./bench -seed 1 die`</sub>",
	} {
		if !regexp.MustCompile(want).MatchString(page) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	if strings.Contains(page, "Two") {
		t.Error("the page has what was not measured")
	}
}

// The page is unchanged where a result is not of a full run, or not of one seed.
func TestResultsRefused(t *testing.T) {
	for want, args := range map[string][]string{"is a quick run": {"-quick", "coin-2"}, "has seed 2": {"-seed", "2", "coin-2"}} {
		dir := t.TempDir()
		for _, args := range [][]string{{"coin-1"}, args} {
			if _, _, err := commanded(coins(), append(args, "-out", dir)...); err != nil {
				t.Fatal(err)
			}
		}
		file := filepath.Join(dir, "RESULTS.md")
		if _, _, err := commanded(coins(), "-out", dir, "-results", file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one that says %q", err, want)
		}
		if _, err := os.Stat(file); err == nil {
			t.Errorf("a page was written although it %s", want)
		}
	}
	if _, _, err := commanded(coins(), "-out", t.TempDir(), "-results", "nowhere.md"); err == nil {
		t.Error("a page was written of no result")
	}
}

// A verdict is no kinder than its figures: what is said to hold, or to be
// better, is within the bar beside it.
func TestVerdictsAreNoKinder(t *testing.T) {
	text, err := os.ReadFile("RESULTS.md")
	if err != nil {
		t.Fatal(err)
	}
	if n, wrong := kinder(string(text)); n < 50 || len(wrong) > 0 || strings.Contains(string(text), "NaN") {
		t.Errorf("of %d bars these are passed by, and said to hold:\n%s", n, strings.Join(wrong, "\n"))
	}
	if _, wrong := kinder("- Error. Paper: < 3 %; here: 3.2 %. It holds.\n- Share. To beat: at least 95 %; here: 91 %. Better.\n" +
		"- Error; our aim: at most 3 %. To beat: 8 %; here: 3.2 %. It holds.\n"); len(wrong) != 3 {
		t.Errorf("%d of 3 verdicts that are too kind are found", len(wrong))
	}
}

var bar = regexp.MustCompile(`(at most|≤|<|at least|≥|>) ([\d.]+) %.*; here: ([\d.]+) %.*\. (Better|It holds)\.$`)

// kinder returns the number of lines with a bar, and those whose verdict is
// kinder than their figures.
func kinder(text string) (bars int, wrong []string) {
	for line := range strings.Lines(text) {
		m := bar.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil || strings.Contains(m[0], " against ") || strings.Contains(m[0], " of it)") {
			continue
		}
		bars++
		want, _ := strconv.ParseFloat(m[2], 64)
		got, _ := strconv.ParseFloat(m[3], 64)
		if least := strings.Contains("at least ≥ >", m[1]); least && got < want || !least && got > want {
			wrong = append(wrong, strings.TrimSpace(line))
		}
	}
	return bars, wrong
}
