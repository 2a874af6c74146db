package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The page has what was run, and keeps what it had of the rest.
func TestResults(t *testing.T) {
	file := filepath.Join(t.TempDir(), "RESULTS.md")
	page := func(args ...string) string {
		dir := t.TempDir()
		for _, args := range [][]string{append([]string{"-out", dir}, args...), {"-out", dir, "-results", file}} {
			if _, _, err := commanded(coins(), args...); err != nil {
				t.Fatal(err)
			}
		}
		return contents(t, filepath.Dir(file))["RESULTS.md"]
	}
	first := page("coin-1", "die")
	for _, want := range []string{
		"## Coins\n\n### One\n\n\\*What was asked.\\* Half.\n\n- Heads. Paper: 0.5; here: 0\\.\\d{1,4}. It holds.\n",
		"## Dice\n\n### Six\n", "<sub>`go run ./bench -seed 1 die`</sub>\n$",
	} {
		if !regexp.MustCompile(want).MatchString(first) {
			t.Errorf("the page lacks %q:\n%s", want, first)
		}
	}
	second := page("-seed", "2", "coin-1", "coin-2")
	one, six := sections(first)["coin-1"], sections(first)["die"]
	if strings.Contains(first, "Two") || !strings.Contains(second, "Two") || strings.Contains(second, one) || !strings.HasSuffix(second, six) {
		t.Errorf("the pages are\n%s\nand\n%s", first, second)
	}
}

// The page is unchanged where a result is not of a full run.
func TestResultsRefused(t *testing.T) {
	dir := t.TempDir()
	if _, _, err := commanded(coins(), "-out", dir, "-quick", "coin-2"); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "RESULTS.md")
	if _, _, err := commanded(coins(), "-out", dir, "-results", file); err == nil || !strings.Contains(err.Error(), "is a quick run") {
		t.Error(err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("a page was written")
	}
}

// A verdict is no kinder than its figures: what is said to hold, or to be better, is within the bar beside it.
func TestVerdictsAreNoKinder(t *testing.T) {
	text, err := os.ReadFile("RESULTS.md")
	if err != nil {
		t.Fatal(err)
	}
	if n, wrong := kinder(string(text)); n < 50 || len(wrong) > 0 || strings.Contains(string(text), "NaN") {
		t.Errorf("of %d verdicts these are kinder than their figures:\n%s", n, strings.Join(wrong, "\n"))
	}
	if _, wrong := kinder("- Error. Paper: < 3 %; here: 3.2 %. It holds.\n- Share. To beat: at least 95 %; here: 91 %. Better.\n" +
		"- Error; our aim: at most 3 %. To beat: 8 %; here: 3.2 %. It holds.\n- Error. Paper: 10–12 %; here: 9 % / 11 %. Differs: lower.\n" +
		"- Flows above 100. Paper: about 3 %; here: 3.2 %. Differs: lower.\n"); len(wrong) != 5 {
		t.Errorf("%d of 5 verdicts that are too kind are found", len(wrong))
	}
}

// bar matches a figure that is said to keep to a limit, and replicated one said to be lower than the paper's.
var (
	bar        = regexp.MustCompile(`(at most|≤|<|at least|≥|>) ([\d.]+) %.*; here: ([\d.]+) %.*\. (Better|It holds)\.$`)
	replicated = regexp.MustCompile(`(Paper): (?:about )?([\d.]+)(?:–[\d.]+)? %; here: ([\d.]+) %(?: / ([\d.]+) %)?\. Differs: lower\.$`)
)

// kinder returns the number of lines with a bar, and those whose verdict is kinder than their figures.
func kinder(text string) (bars int, wrong []string) {
	for line := range strings.Lines(text) {
		m := bar.FindStringSubmatch(strings.TrimSpace(line))
		if lower := replicated.FindStringSubmatch(strings.TrimSpace(line)); lower != nil {
			m = lower
		}
		if m == nil || strings.Contains(m[0], " against ") || strings.Contains(m[0], " of it)") {
			continue
		}
		bars++
		want, _ := strconv.ParseFloat(m[2], 64)
		got, _ := strconv.ParseFloat(m[3], 64)
		if ahead, err := strconv.ParseFloat(m[4], 64); err == nil {
			got = max(got, ahead)
		}
		if least := strings.Contains("at least ≥ >", m[1]); least && got < want || !least && got > want {
			wrong = append(wrong, strings.TrimSpace(line))
		}
	}
	return bars, wrong
}
