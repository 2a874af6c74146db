package speed

import (
	"regexp"
	"strconv"
	"strings"
)

// A Result is one line of what go test -bench prints: a benchmark and its metrics by unit.
type Result struct {
	Name    string // without "Benchmark" and the number of processors
	Metrics map[string]float64
}

var processors = regexp.MustCompile(`-\d+$`)

// Parse reads the output of go test -bench, and skips lines that are not results.
func Parse(output string) []Result {
	var all []Result
	for line := range strings.Lines(output) {
		name, rest, found := strings.Cut(strings.TrimSpace(line), "\t")
		name, found2 := strings.CutPrefix(strings.TrimSpace(name), "Benchmark")
		if !found || !found2 {
			continue
		}
		r := Result{processors.ReplaceAllString(name, ""), map[string]float64{}}
		fields := strings.Fields(rest) // how often it ran; pairs follow
		for i := 1; i+1 < len(fields); i += 2 {
			if value, err := strconv.ParseFloat(fields[i], 64); err == nil {
				r.Metrics[fields[i+1]] = value
			}
		}
		all = append(all, r)
	}
	return all
}
