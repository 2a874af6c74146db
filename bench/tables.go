package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/hoplag/hoplag/bench/experiment"
)

// A table in a Markdown file stands between two markers:
//
//	<!-- bench:lda-4 -->          claims and verdicts of an experiment
//	<!-- bench:lda-4/sample -->   one of its tables
//	<!-- bench:headlines ours- --> headline claims, and every loss, of the experiments whose name matches
//	<!-- bench:speed LDA|Floor --> benchmarks, those whose name matches
//	<!-- bench:peers -->          the same of bench/peers
//	...
//	<!-- /bench -->
//
// What is between them is replaced by what the results on disk say, with the
// command, seed and configuration they come from. Speed is read from speed.txt
// and peers.txt in the directory of the results: what go test -bench printed.
var (
	opening = regexp.MustCompile(`^<!-- bench:([a-z0-9-]+)(?:/([a-z0-9-]+))?(?: (.+?))? -->$`)
	closing = "<!-- /bench -->"
)

// benchmarks are the names that mean speed, and the commands behind them.
var benchmarks = map[string]string{
	"speed": "go test -run '^$' -bench . -benchtime 0.5s ./bench | tee out/speed.txt",
	"peers": "(cd bench/peers && go test -run '^$' -bench . -benchtime 0.5s .) | tee out/peers.txt",
}

// rewriteTables replaces all tables of a file, or, if anything is wrong, none.
func rewriteTables(all []experiment.Experiment, file, dir string, stdout io.Writer) error {
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	text, rewritten, err := replaceTables(all, string(old), dir)
	if err != nil {
		return fmt.Errorf("%s is unchanged: %w", file, err)
	}
	for _, name := range rewritten {
		fmt.Fprintln(stdout, name)
	}
	if len(rewritten) == 0 {
		return fmt.Errorf("%s has no marker such as <!-- bench:lda-4 -->", file)
	}
	if text == string(old) {
		return nil
	}
	return os.WriteFile(file, []byte(text), 0o644)
}

// replaceTables returns the text with every table replaced, and their names.
func replaceTables(all []experiment.Experiment, text, dir string) (string, []string, error) {
	var out strings.Builder
	var names []string
	var problems []error
	inside, fenced := "", false
	for line := range strings.Lines(text) {
		plain := strings.TrimRight(line, "\r\n")
		if inside == "" && strings.HasPrefix(plain, "```") {
			fenced = !fenced // markers in examples are not markers
		}
		switch {
		case inside != "" && plain == closing:
			inside = ""
			out.WriteString(line)
		case inside != "" && opening.MatchString(plain):
			return "", nil, fmt.Errorf("%s begins before %s ends", plain, inside)
		case inside != "":
		case !fenced && strings.HasPrefix(plain, "<!-- bench:"):
			inside = plain
			out.WriteString(line)
			m := opening.FindStringSubmatch(plain)
			if m == nil {
				problems = append(problems, fmt.Errorf("%s: want <!-- bench:NAME -->, <!-- bench:NAME/TABLE --> or <!-- bench:speed PATTERN -->", plain))
				continue
			}
			table, err := markdownFor(all, dir, m[1], m[2], m[3])
			if err != nil {
				problems = append(problems, fmt.Errorf("%s: %w", plain, err))
			}
			names = append(names, strings.TrimSuffix(strings.TrimPrefix(plain, "<!-- bench:"), " -->"))
			out.WriteString(table)
		default:
			out.WriteString(line)
		}
	}
	if inside != "" {
		problems = append(problems, fmt.Errorf("%s has no %s", inside, closing))
	}
	return out.String(), names, errors.Join(problems...)
}

// markdownFor is the table that a marker asks for.
func markdownFor(all []experiment.Experiment, dir, name, table, pattern string) (string, error) {
	if command, ok := benchmarks[name]; ok {
		if table != "" {
			return "", fmt.Errorf("%s has no tables by name: want %s PATTERN", name, name)
		}
		return speedTable(filepath.Join(dir, name+".txt"), command, pattern)
	}
	if name == "headlines" {
		if table != "" {
			return "", fmt.Errorf("headlines has no tables by name: want headlines PATTERN")
		}
		return headlines(all, dir, pattern)
	}
	if pattern != "" {
		return "", fmt.Errorf("only headlines, speed and peers take a pattern")
	}
	r, err := experiment.Load(dir, name)
	if experiment.Missing(err) {
		return "", fmt.Errorf("no result of %s in %s: go run ./bench %s", name, dir, name)
	}
	if err != nil {
		return "", err
	}
	var out strings.Builder
	if table == "" {
		rows := make([][]string, 0, len(r.Claims))
		for _, c := range r.Claims {
			rows = append(rows, []string{c.What, c.Paper, c.Ours, string(c.Verdict)})
		}
		markdown(&out, []string{"what", "paper", "measured", "verdict"}, rows, false)
	} else {
		i := slices.IndexFunc(r.Tables, func(t experiment.Table) bool { return t.Name == table })
		if i < 0 {
			return "", fmt.Errorf("%s has no table %q", name, table)
		}
		markdown(&out, r.Tables[i].Columns, r.Tables[i].Rows, true)
	}
	var config bytes.Buffer
	if err := json.Compact(&config, r.Config); err != nil {
		return "", fmt.Errorf("%s: Config: %w", name, err)
	}
	fmt.Fprintf(&out, "\n<details><summary><sub><code>%s</code>: seed %d, configuration</sub></summary>\n\n```json\n%s\n```\n\n</details>\n", r.Command(), r.Seed, strings.TrimSpace(config.String()))
	return out.String(), nil
}

// headlines is a table of the headline claims in the results on disk, and of
// every loss, of the experiments whose names match, in the order of the list.
func headlines(all []experiment.Experiment, dir, pattern string) (string, error) {
	match, err := regexp.Compile(pattern)
	if err != nil {
		return "", err
	}
	var rows [][]string
	var first *experiment.Record
	for _, e := range all {
		if !match.MatchString(e.Name) {
			continue
		}
		r, err := experiment.Load(dir, e.Name)
		if experiment.Missing(err) {
			continue
		}
		if err != nil {
			return "", err
		}
		for _, c := range r.Claims {
			if !c.Headline && c.Verdict != experiment.Loss {
				continue
			}
			rows = append(rows, []string{"`" + e.Name + "`", c.What, c.Paper, c.Ours, string(c.Verdict)})
			if first == nil {
				first = r
			}
			if r.Seed != first.Seed || r.Quick != first.Quick {
				return "", fmt.Errorf("the results of %s and %s in %s are not of one seed and kind of run", first.Name, r.Name, dir)
			}
		}
	}
	if first == nil {
		return "", fmt.Errorf("no result with a headline in %s matches %q: go run ./bench -all", dir, pattern)
	}
	var out strings.Builder
	markdown(&out, []string{"experiment", "what", "paper", "measured", "verdict"}, rows, false)
	kind := ""
	if first.Quick {
		kind = " -quick"
	}
	fmt.Fprintf(&out, "\n<sub>`go run ./bench -seed %d%s -all`: seed %d; each configuration is in `out/EXPERIMENT.json`</sub>\n", first.Seed, kind, first.Seed)
	return out.String(), nil
}

// markdown writes a table, with all columns but the first to the right if they
// are numbers.
func markdown(out *strings.Builder, columns []string, rows [][]string, numbers bool) {
	row := func(cells []string) {
		for i, c := range cells {
			if i > 0 {
				out.WriteString(" | ")
			} else {
				out.WriteString("| ")
			}
			out.WriteString(strings.ReplaceAll(c, "|", `\|`))
		}
		out.WriteString(" |\n")
	}
	row(columns)
	rule := make([]string, len(columns))
	for i := range rule {
		rule[i] = "---"
		if numbers && i > 0 {
			rule[i] = "---:"
		}
	}
	row(rule)
	for _, r := range rows {
		row(r)
	}
}

// speedTable makes a table of what go test -bench printed, of the benchmarks
// whose names match.
func speedTable(file, command, pattern string) (string, error) {
	match, err := regexp.Compile(pattern)
	if err != nil {
		return "", err
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, command)
	}
	p, err := parseBenchmarks(data)
	if err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	p.lines = slices.DeleteFunc(p.lines, func(l benchmark) bool { return !match.MatchString(l.name) })
	if len(p.lines) == 0 {
		return "", fmt.Errorf("%s has no benchmark that matches %q", file, pattern)
	}
	var units []string // that any of them has, in order of appearance
	for _, l := range p.lines {
		for _, u := range l.units {
			if u != "B/op" && !slices.Contains(units, u) {
				units = append(units, u)
			}
		}
	}
	// Allocations last, whatever else is reported.
	slices.SortStableFunc(units, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	var rows [][]string
	for _, l := range p.lines {
		row := []string{l.name}
		for _, u := range units {
			cell := ""
			if values := l.values[u]; len(values) > 0 {
				cell = experiment.Number(middle(values))
			}
			row = append(row, cell)
		}
		rows = append(rows, row)
	}
	var out strings.Builder
	markdown(&out, append([]string{"benchmark"}, units...), rows, true)
	fmt.Fprintf(&out, "\n<sub>`%s`, on %s, %s/%s</sub>\n", command, p.cpu, p.goos, p.goarch)
	return out.String(), nil
}

func rank(unit string) int {
	if unit == "allocs/op" {
		return 1
	}
	return 0
}

// A benchmark is one line of a run, or several of one name.
type benchmark struct {
	name   string
	units  []string
	values map[string][]float64 // by unit
}

type benchmarkRun struct {
	goos, goarch, cpu string
	lines             []benchmark
}

// cores is what go test adds to a benchmark's name.
var cores = regexp.MustCompile(`-\d+$`)

// parseBenchmarks reads what go test -bench prints.
func parseBenchmarks(data []byte) (benchmarkRun, error) {
	p := benchmarkRun{goos: "unknown", goarch: "unknown", cpu: "an unknown CPU"}
	index := map[string]int{}
	s := bufio.NewScanner(bytes.NewReader(data))
	for s.Scan() {
		line := s.Text()
		if key, value, ok := strings.Cut(line, ": "); ok {
			switch key {
			case "goos":
				p.goos = value
			case "goarch":
				p.goarch = value
			case "cpu":
				p.cpu = value
			}
		}
		fields := strings.Fields(line)
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") || len(fields)%2 != 0 {
			continue
		}
		name := cores.ReplaceAllString(strings.TrimPrefix(fields[0], "Benchmark"), "")
		i, ok := index[name]
		if !ok {
			i = len(p.lines)
			index[name] = i
			p.lines = append(p.lines, benchmark{name: name, values: map[string][]float64{}})
		}
		b := &p.lines[i]
		for k := 2; k < len(fields); k += 2 {
			v, err := strconv.ParseFloat(fields[k], 64)
			if err != nil {
				return p, fmt.Errorf("%q: %w", line, err)
			}
			unit := fields[k+1]
			if len(b.values[unit]) == 0 {
				b.units = append(b.units, unit)
			}
			b.values[unit] = append(b.values[unit], v)
		}
	}
	return p, s.Err()
}

// middle is the median; of an even number, the upper of the two.
func middle(values []float64) float64 {
	return slices.Sorted(slices.Values(values))[len(values)/2]
}
