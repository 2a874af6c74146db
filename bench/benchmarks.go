package main

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/hoplag/hoplag/bench/experiment"
)

// speedTable makes a table from the output of go test -bench, for the
// benchmarks whose names match.
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
	// Allocations come last, whatever else is reported.
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

// A benchmark is one line of a run, or several lines with one name.
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

// middle returns the median; of an even number, the upper of the two.
func middle(values []float64) float64 {
	return slices.Sorted(slices.Values(values))[len(values)/2]
}
