package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hoplag/hoplag/bench/experiment"
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
		"go run ./bench -seed 1 \\\n        coin-1 die\n", "go run ./bench -seed 1 \\\n        coin-2 coin-10\n",
		"## Coins\n\n### One\n\n*What was asked.* Half.\n\n- Heads. Paper: 0.5; here: " + plotted(t, dir, 1) + ". It holds.\n",
		"## Dice\n\n### Six\n", "<sub>`go run ./bench -seed 1 die`</sub>",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	if strings.Contains(page, "Aces") || strings.Contains(page, "## Speed") {
		t.Error("the page has what was not measured")
	}
	if err := os.WriteFile(filepath.Join(dir, "speed.txt"), []byte(strings.ReplaceAll(spoken, "LDA/two|banks", "LDABatch")),
		0o600); err != nil {
		t.Fatal(err)
	}
	page, err := resultsPage(coins(), dir)
	if err != nil || !strings.Contains(page, "| benchmark | ns/op | Mpkt/s | of the least | allocs/op |\n"+
		"| --- | ---: | ---: | ---: | ---: |\n| LDABatch | 1.2 |") {
		t.Errorf("the page lacks the speed: %v\n%s", err, page)
	}
}

// The page is unchanged where a result is not of a full run, not of one seed,
// or not to be had from the project alone.
func TestResultsRefused(t *testing.T) {
	outside := coins()
	outside[1].Measure = func(run *experiment.Run) {
		run.Claim("heads", "0.5", "0.5", experiment.AsGood)
		run.Outside("../a/capture")
	}
	for want, run := range map[string][]string{
		"is a quick run": {"-quick", "coin-2"}, "has seed 2": {"-seed", "2", "coin-2"}, "../a/capture": {"coin-2"},
	} {
		dir := t.TempDir()
		if _, _, err := commanded(coins(), "-out", dir, "coin-1"); err != nil {
			t.Fatal(err)
		}
		all := coins()
		if strings.HasPrefix(want, "..") {
			all = outside
		}
		if _, _, err := commanded(all, append(run, "-out", dir)...); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, "RESULTS.md")
		if _, _, err := commanded(all, "-out", dir, "-results", file); err == nil || !strings.Contains(err.Error(), want) {
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
