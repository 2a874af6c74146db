// Guard holds the speed of the data paths to what is written in bench/RATIOS.md: multiples of a floor that is
// measured in the same run, so that they mean the same on any machine. It fails where a path takes more than
// one and a half times its ratio in each of three runs, or has none.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/hoplag/hoplag/bench/speed"
	"github.com/hoplag/hoplag/internal/programs"
)

const (
	file = "bench/RATIOS.md"
	// guarded are the benchmarks whose floors do the same kind of work as they do.
	guarded = "^Benchmark(LDA(Update|Batch|Sender|Accumulator)|HeaderToLDA|Frame|Digest40|Flow|LDSUpdate|COLATEUpdate|Passed)$"
	slack   = 1.5
	tries   = 3
)

func main() {
	programs.Main("guard", func(_ context.Context, args []string, stdout, stderr io.Writer) error {
		f := programs.NewFlags("guard", "Guard fails where a path takes over 1.5 times its ratio in "+file+". Run it in the root.", stderr)
		write := f.Bool("write", false, "measure for three minutes, and write that file")
		if err := f.Parse(args); err != nil {
			return err
		}
		return run(*write, stdout, measure)
	})
}

// A ratio is what a path costs in floors, and may cost at most if it has a bar.
type ratio struct{ floors, bar float64 }

var errSlow = errors.New("slower than " + file + " says, or not in it; if that is meant to be, run it with -write")

// run measures, and compares or writes.
func run(write bool, out io.Writer, measure func(write bool) (map[string]ratio, error)) error {
	best, err := measure(write)
	if err != nil {
		return err
	}
	if write {
		return os.WriteFile(file, table(best), 0o644)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	want := parseTable(string(text))
	for try := 1; ; try++ {
		slow := compare(out, want, best)
		if len(slow) == 0 {
			return nil
		}
		if try == tries {
			return fmt.Errorf("%s: %w", strings.Join(slow, ", "), errSlow)
		}
		fmt.Fprintf(out, "again: %s\n", strings.Join(slow, ", "))
		again, err := measure(false)
		if err != nil {
			return err
		}
		for name, r := range again {
			if old, ok := best[name]; !ok || r.floors < old.floors {
				best[name] = r
			}
		}
	}
}

// compare prints the ratios and returns the names of those that are too high.
func compare(out io.Writer, want, got map[string]ratio) (slow []string) {
	for _, name := range slices.Sorted(maps.Keys(got)) {
		g, w := got[name], want[name]
		verdict := ""
		if w.floors == 0 || g.floors > slack*w.floors {
			verdict = "  TOO HIGH"
			slow = append(slow, name)
		}
		fmt.Fprintf(out, "%-60s %6.2f, written %6.2f%s\n", name, g.floors, w.floors, verdict)
	}
	return slow
}

func measure(write bool) (map[string]ratio, error) {
	args := []string{"test", "-run", "^$", "-bench", guarded, "-benchtime", "30ms", "-count", "3", "./bench", "."}
	if write {
		args[6], args[8] = "100ms", "7"
	}
	var out bytes.Buffer
	command := exec.Command("go", args...)
	command.Stdout, command.Stderr = &out, os.Stderr
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out.Bytes())
	}
	return parseRun(out.String(), write), nil
}

// parseRun reads the output of go test -bench: the lowest ratio of each benchmark, or the median to be written, since
// on a busy machine the floor may be what is disturbed.
func parseRun(text string, write bool) map[string]ratio {
	ratios, all := map[string]ratio{}, map[string][]float64{}
	for _, r := range speed.Parse(text) {
		if floors, ok := r.Metrics["x-floor"]; ok {
			name := "Benchmark" + r.Name
			list := append(all[name], floors)
			slices.Sort(list)
			all[name], ratios[name] = list, ratio{list[0], r.Metrics["bar-x"]}
			if write {
				ratios[name] = ratio{list[len(list)/2], r.Metrics["bar-x"]}
			}
		}
	}
	return ratios
}

const heading = `# What the data paths cost

Per packet, in multiples of the benchmark's floor in the same run: for most of them
a loop that adds a timestamp to one of 1,024 cells, chosen by a hash of the same
stream, and counts it (about 0.5 ns; package ` + "`bench/speed`" + `). The bar is what was
aimed at. ` + "`go run ./bench/guard -write`" + ` made this table;
` + "`go run ./bench/guard`" + ` fails where a path takes 1.5 times as long as it says.

Rows with ` + "`-alone`" + `, ` + "`known-banks`" + `, ` + "`stored`" + ` and ` + "`pool`" + ` are lower bounds: for LDA banks of sizes
that the compiler knows, for LDS four cells without samples, for a digest (and header to
cell, which adds an update) 40 bytes, for a frame to copy what was found before and hash it,
for ` + "`Passed`" + ` a log for each processor that goes to cells, for COLATE hash and word of known widths. Its bar
was 2.5, and bursts of hash and word alone take 2.6. One by one it misses its bar by 3 %, and four rows of frames, of which hashing takes 10
to 16 floors, miss theirs by 1 to 3 %. Other floors: for ` + "`Passed`" + ` a clock, an atomic, a hash and a store, 26 ns if nothing else
runs, and the bar is 15 ns more than the clock, which both rows miss by 7 %; for ` + "`LDAAccumulator`" + `, by cell and cut, a loop that
reads the same cells, and keeps and reads twice what passed. With 10,000 packets a cut it walks over one cell in eight, which has some on
their way. Where ` + "`LDABatch`" + ` misses its bar, so does its bound: on a host where known banks took 1.31 floors, bursts took 1.54.

| benchmark | floors | bar |
|---|---:|---:|
`

// table returns the text of the file.
func table(ratios map[string]ratio) []byte {
	text := []byte(heading)
	for _, name := range slices.Sorted(maps.Keys(ratios)) {
		r := ratios[name]
		bar := ""
		if r.bar > 0 {
			bar = fmt.Sprintf("%.3g", r.bar)
		}
		text = fmt.Appendf(text, "| `%s` | %.3g | %s |\n", name, r.floors, bar)
	}
	return text
}

var row = regexp.MustCompile("(?m)^\\| `(\\S+)` \\| (\\S+) \\|")

// parseTable returns the ratios in a text that table made.
func parseTable(text string) map[string]ratio {
	ratios := map[string]ratio{}
	for _, m := range row.FindAllStringSubmatch(text, -1) {
		if floors, err := strconv.ParseFloat(m[2], 64); err == nil {
			ratios[m[1]] = ratio{floors: floors}
		}
	}
	return ratios
}
