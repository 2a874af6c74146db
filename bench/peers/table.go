package main

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/hoplag/hoplag/bench/speed"
)

// A block of the page is
//
//	<!-- table NAME UNIT... --> … <!-- end -->
//
// for a benchmark, or <!-- system --> … <!-- end --> for what it was measured on. A row is the second part of a
// benchmark's name. There is a column for each value of the third part, if there is one, and unit.
var (
	block  = regexp.MustCompile(`(?s)(<!-- (?:table (\S+) ([^>]+)|system) -->\n).*?(<!-- end -->)`)
	system = regexp.MustCompile(`(?m)^(?:goos|goarch|cpu): (.*)$`)
)

// fill replaces what the blocks of a page hold by the output of go test -bench. Tables of benchmarks that did
// not run stay.
func fill(page, output, goVersion string) string {
	results := speed.Parse(output)
	return block.ReplaceAllStringFunc(page, func(old string) string {
		m := block.FindStringSubmatch(old)
		lines := table(results, m[2], strings.Fields(m[3]))
		if m[2] == "" {
			var on []string
			for _, line := range system.FindAllStringSubmatch(output, -1) {
				on = append(on, strings.TrimSpace(line[1]))
			}
			lines = []string{"Measured on " + strings.Join(append(on, goVersion), ", ") + "."}
		}
		if lines == nil {
			return old
		}
		return m[1] + "\n" + strings.Join(lines, "\n") + "\n\n" + m[4]
	})
}

// table returns the lines of a table of the benchmark's results, nil if it has none.
func table(results []speed.Result, benchmark string, units []string) (lines []string) {
	var rows, columns []string
	cells := map[[2]string]map[string]float64{}
	for _, one := range results {
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
	add := func(name string, cell func(column, unit string) string) {
		line := "| " + name + " |"
		for _, column := range columns {
			for _, unit := range units {
				line += " " + cell(column, unit) + " |"
			}
		}
		lines = append(lines, line)
	}
	if rows != nil {
		add("", func(column, unit string) string { return strings.TrimSpace(column + " " + unit) })
		add("---", func(string, string) string { return "---:" })
	}
	for _, row := range rows {
		add("`"+row+"`", func(column, unit string) string {
			if value, ok := cells[[2]string{row, column}][unit]; ok {
				return threeDigits(value)
			}
			return "–"
		})
	}
	return lines
}

// threeDigits formats x with three significant digits, or more before the point.
func threeDigits(x float64) string {
	for digits, limit := 0, 100.0; digits < 4; digits, limit = digits+1, limit/10 {
		if x >= limit {
			return strconv.FormatFloat(x, 'f', digits, 64)
		}
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}
