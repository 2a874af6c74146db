package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/internal/programs"
)

// coins are experiments that take no time, with all that a Result has.
func coins() []experiment.Experiment {
	toss := func(run *experiment.Run) {
		random := run.Rand("tosses")
		table := run.Table("", "toss", "heads")
		n := run.Pick(10, 100)
		for i := range n {
			table.Row(i, experiment.Number(random.Float64()))
		}
		run.Claim("heads", "0.5", table.Rows[1][1], experiment.AsGood)
	}
	return []experiment.Experiment{
		{Name: "coin-1", Group: "Coins", Title: "One", Claim: "Half.", Weight: 1, Measure: toss},
		{Name: "coin-2", Group: "Coins", Title: "Two", Claim: "Half.", Weight: 90, Measure: toss},
		{Name: "coin-10", Group: "Coins", Title: "Ten", Claim: "Half.", Weight: 2, Measure: toss},
		{Name: "die", Group: "Dice", Title: "Six", Claim: "A sixth.", Weight: 2, Measure: toss},
	}
}

// commanded runs the command and returns what it prints.
func commanded(all []experiment.Experiment, args ...string) (stdout, stderr string, err error) {
	var o, e bytes.Buffer
	err = command(context.Background(), all, args, &o, &e)
	return o.String(), e.String(), err
}

func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, name))
		files[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// The same seed gives the same bytes, however many experiments run at once.
func TestSameSeedSameBytes(t *testing.T) {
	one, two, other := t.TempDir(), t.TempDir(), t.TempDir()
	for dir, args := range map[string][]string{
		one:   {"-all", "-seed", "5", "-j", "1"},
		two:   {"-seed", "5", "-j", "3", "coin-*", "die"},
		other: {"-all", "-seed", "6"},
	} {
		if _, _, err := commanded(coins(), append([]string{"-out", dir}, args...)...); err != nil {
			t.Fatal(err)
		}
	}
	first := contents(t, one)
	if len(first) != 4 {
		t.Errorf("%d files of 4 experiments", len(first))
	}
	if diff := cmp.Diff(first, contents(t, two)); diff != "" {
		t.Errorf("two runs of one seed differ: %s", diff)
	}
	if another := contents(t, other); another["coin-1.md"] == strings.ReplaceAll(first["coin-1.md"], "-seed 5", "-seed 6") {
		t.Error("another seed gives the same")
	}
}

// Real experiments repeat, too, and heed the seed.
func TestExperimentsRepeat(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Chdir("..") // where the captures are
	var files []map[string]string
	for i, seed := range []string{"1", "1", "2"} {
		dir := t.TempDir()
		args := []string{"-quick", "-out", dir, "-seed", seed, "ours-lost", "ours-clock", "real-lda"}
		if _, _, err := commanded(experiments(), args[:len(args)-i/2]...); err != nil { // captures know no seed
			t.Fatal(err)
		}
		files = append(files, contents(t, dir))
	}
	if diff := cmp.Diff(files[0], files[1]); diff != "" {
		t.Errorf("two runs of one seed differ: %s", diff)
	}
	for _, name := range []string{"ours-lost", "ours-clock"} {
		if files[0][name+".md"] == strings.ReplaceAll(files[2][name+".md"], "-seed 2", "-seed 1") {
			t.Errorf("%s: two seeds give the same", name)
		}
	}
}

func TestList(t *testing.T) {
	stdout, _, err := commanded(coins())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Coins\n", "coin-2", "1m30s", "Dice", "-all"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("the list lacks %q:\n%s", want, stdout)
		}
	}
}

func TestChoose(t *testing.T) {
	for _, c := range []struct {
		args string
		want string // names, or the error
	}{
		{"coin-1", "coin-1"}, // not coin-10 too
		{"coin-*", "coin-1 coin-2 coin-10"},
		{"*-1*", "coin-1 coin-10"},
		{"die coin-2 coin-2", "coin-2 die"},
		{"coin-3", `no experiment "coin-3"`},
		{"dice coni-1", `no experiment "dice"`},
		{"[", "syntax error in pattern"},
	} {
		chosen, err := choose(coins(), strings.Fields(c.args))
		var names []string
		for _, e := range chosen {
			names = append(names, e.Name)
		}
		if err != nil {
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: error %v, want %q", c.args, err, c.want)
			}
			continue
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%s: %s, want %s", c.args, got, c.want)
		}
	}
}

func TestUsage(t *testing.T) {
	for args, want := range map[string]string{
		"-all coin-1":        "-all and \"coin-1\"",
		"-j 0 -all":          "-j is 0, want 1 to 1000",
		"-results R.md -all": "-results runs nothing",
		"-nonsense":          "flag provided but not defined",
		"nothing":            "no experiment",
	} {
		if _, _, err := commanded(coins(), strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", args, err, want)
		} else if !errors.Is(err, programs.ErrUsage) {
			t.Errorf("%s: %v is no error of the command line", args, err)
		}
	}
	_, stderr, err := commanded(coins(), "-h")
	if !errors.Is(err, flag.ErrHelp) || !strings.Contains(stderr, "pattern") || !strings.Contains(stderr, "-quick") {
		t.Errorf("-h: %v, %s", err, stderr)
	}
}

// An experiment that fails is named, and the others are still saved.
func TestFailure(t *testing.T) {
	all := coins()
	broken := errors.New("the coin is on its edge")
	all[1].Measure = func(run *experiment.Run) { experiment.Check(broken) }
	dir := t.TempDir()
	_, stderr, err := commanded(all, "-out", dir, "-all")
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "coin-2: the coin") {
		t.Errorf("error %v", err)
	}
	if !strings.Contains(stderr, "coin-2 FAILED") || !strings.Contains(stderr, "coin-1.md, after") || strings.Count(stderr, "\n") != 4 {
		t.Errorf("progress:\n%s", stderr)
	}
	if got := contents(t, dir); got["coin-10.md"] == "" || got["coin-2.md"] != "" {
		t.Error("not the right files")
	}
}

// Names are unique and fit for files, and everything has a title, a claim and a time.
func TestExperiments(t *testing.T) {
	seen := map[string]bool{}
	groups := map[string]bool{}
	last := ""
	var full, quick float64
	for _, e := range experiments() {
		if seen[e.Name] {
			t.Errorf("%s is there twice", e.Name)
		}
		seen[e.Name] = true
		if e.Group != last && groups[e.Group] {
			t.Errorf("%s: the group %q is in two pieces", e.Name, e.Group)
		}
		groups[e.Group] = true
		last = e.Group
		if strings.Trim(e.Name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			t.Errorf("%q is not a good name", e.Name)
		}
		if e.Title == "" || e.Claim == "" || e.Group == "" || e.Weight <= 0 {
			t.Errorf("%s lacks a title, a claim, a group or a time", e.Name)
		}
		full += e.Weight
		quick += e.Seconds(true)
	}
	const cores = 2
	if full > cores*1800 || quick > cores*120 {
		t.Errorf("%.0f s in full and %.0f s quick on one core, want half an hour and 2 minutes on two", full, quick)
	}
}
