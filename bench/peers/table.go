package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/hoplag/hoplag/bench/speed"
)

// A run is the output of go test -bench.
type run struct {
	system  string // operating system, architecture, processor
	results []speed.Result
}

// parse reads the output of go test -bench.
func parse(output string) (run, error) {
	out := run{results: speed.Parse(output)}
	var system []string
	for line := range strings.Lines(output) {
		for _, key := range []string{"goos: ", "goarch: ", "cpu: "} {
			if value, ok := strings.CutPrefix(strings.TrimSpace(line), key); ok {
				system = append(system, value)
			}
		}
	}
	out.system = strings.Join(system, ", ")
	if len(out.results) == 0 {
		return out, errors.New("no benchmark in it")
	}
	return out, nil
}

// begin and end enclose each table; begin names a benchmark and says how to
// show it:
//
//	<!-- table NAME UNIT... -->
//
// A row is the second part of a benchmark's name. There is a column for each
// value of the third part, if there is one, and unit.
var begin = regexp.MustCompile(`^<!-- table (\S+) (.+) -->$`)

const (
	end      = "<!-- end -->"
	onSystem = "<!-- system -->"
)

// fill replaces what is between the markers of text. Tables of benchmarks that
// did not run stay.
func fill(text string, run run, goVersion string) (string, error) {
	var out []string
	inside := false
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if inside && line != end {
			continue
		}
		inside = false
		out = append(out, line)
		if line == onSystem {
			out = append(out, "", fmt.Sprintf("Measured on %s, %s.", run.system, goVersion), "")
			inside = true
		}
		if m := begin.FindStringSubmatch(line); m != nil {
			if table := run.table(m[1], strings.Fields(m[2])); table != nil {
				out = append(append(append(out, ""), table...), "")
				inside = true
			}
		}
	}
	if inside {
		return "", fmt.Errorf("%s is missing", end)
	}
	return strings.Join(out, "\n") + "\n", nil
}

// table returns the lines of a table of the benchmark's results, nil if it has
// none.
func (r *run) table(benchmark string, units []string) []string {
	var rows, columns []string
	cells := map[[2]string]map[string]float64{}
	for _, one := range r.results {
		name, rest, _ := strings.Cut(one.Name, "/")
		if name != benchmark {
			continue
		}
		row, column, _ := strings.Cut(rest, "/")
		if !slices.Contains(rows, row) {
			rows = append(rows, row)
		}
		if !slices.Contains(columns, column) {
			columns = append(columns, column)
		}
		cells[[2]string{row, column}] = one.Metrics
	}
	if rows == nil {
		return nil
	}
	head, rule := []string{""}, []string{"---"}
	for _, column := range columns {
		for _, unit := range units {
			head = append(head, strings.TrimSpace(column+" "+unit))
			rule = append(rule, "---:")
		}
	}
	lines := []string{tableRow(head), tableRow(rule)}
	for _, row := range rows {
		line := []string{"`" + row + "`"}
		for _, column := range columns {
			for _, unit := range units {
				value, ok := cells[[2]string{row, column}][unit]
				shown := "–"
				if ok {
					shown = threeDigits(value)
				}
				line = append(line, shown)
			}
		}
		lines = append(lines, tableRow(line))
	}
	return lines
}

func tableRow(cells []string) string {
	return "| " + strings.Join(cells, " | ") + " |"
}

// threeDigits formats x with three significant digits, or more before the
// point.
func threeDigits(x float64) string {
	for digits, limit := 0, 100.0; digits < 4; digits, limit = digits+1, limit/10 {
		if x >= limit {
			return strconv.FormatFloat(x, 'f', digits, 64)
		}
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}
