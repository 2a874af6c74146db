package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/hoplag/hoplag/bench/experiment"
)

// A table in a Markdown file lies between two markers:
//
//	<!-- bench:lda-4 -->          claims and verdicts of an experiment
//	<!-- bench:lda-4/sample -->   one of its tables or figures
//	<!-- bench:headlines ours- --> headline claims, and every loss, of the experiments whose name matches
//	<!-- bench:speed LDA|Floor --> benchmarks, those whose name matches
//	<!-- bench:peers -->          the same of bench/peers
//	...
//	<!-- /bench -->
//
// The results on disk replace what is between the markers, with the command,
// seed and configuration they come from. A figure is copied to bench/pictures
// beside the file. Speed is read from speed.txt and peers.txt, the output of
// go test -bench, in the directory of the results.
var (
	opening = regexp.MustCompile(`^<!-- bench:([a-z0-9-]+)(?:/([a-z0-9_-]+))?(?: (.+?))? -->$`)
	closing = "<!-- /bench -->"
)

// benchmarks lists the names that mean speed, and the commands behind them.
var benchmarks = map[string]string{
	"speed": "go test -run '^$' -bench . -benchtime 0.5s ./bench | tee out/speed.txt",
	"peers": "(cd bench/peers && go test -run '^$' -bench . -benchtime 0.5s .) | tee out/peers.txt",
}

// rewriteTables replaces all tables of a file or, if anything is wrong, none.
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
	for _, picture := range pictured.FindAllStringSubmatch(text, -1) {
		if err := copyPicture(filepath.Join(filepath.Dir(file), picture[1]), filepath.Join(dir, filepath.Base(picture[1]))); err != nil {
			return err
		}
	}
	if text == string(old) {
		return nil
	}
	return os.WriteFile(file, []byte(text), 0o644)
}

// pictured matches a reference to a picture that is a figure of an experiment.
var pictured = regexp.MustCompile(`\]\((bench/pictures/[a-z0-9_-]+\.svg)\)`)

func copyPicture(to, from string) error {
	svg, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return err
	}
	return os.WriteFile(to, svg, 0o644)
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
				problems = append(problems,
					fmt.Errorf("%s: want <!-- bench:NAME -->, <!-- bench:NAME/TABLE --> or <!-- bench:speed PATTERN -->", plain))
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

// markdownFor is the table or figure that a marker asks for.
func markdownFor(all []experiment.Experiment, dir, name, part, pattern string) (string, error) {
	if command, ok := benchmarks[name]; ok {
		if part != "" {
			return "", fmt.Errorf("%s has no tables by name: want %s PATTERN", name, name)
		}
		return speedTable(filepath.Join(dir, name+".txt"), command, pattern)
	}
	if name == "headlines" {
		if part != "" {
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
	table := slices.IndexFunc(r.Tables, func(t experiment.Table) bool { return t.Name == part })
	figure := slices.IndexFunc(r.Figures, func(f experiment.Drawn) bool { return f.Name == part })
	switch {
	case part == "":
		var rows [][]string
		for _, c := range r.Claims {
			rows = append(rows, claimCells(r, &c))
		}
		markdown(&out, claimColumns(r), rows, false)
	case table >= 0:
		markdown(&out, r.Tables[table].Columns, r.Tables[table].Rows, true)
	case figure >= 0:
		f := &r.Figures[figure]
		fmt.Fprintf(&out, "![%s](bench/pictures/%s)\n\n%s\n", f.Title, f.File, f.Caption)
	default:
		return "", fmt.Errorf("%s has no table or figure %q", name, part)
	}
	var config bytes.Buffer
	if err := json.Compact(&config, r.Config); err != nil {
		return "", fmt.Errorf("%s: Config: %w", name, err)
	}
	fmt.Fprintf(&out, "\n<details><summary><sub><code>%s</code>: seed %d, "+
		"configuration</sub></summary>\n\n```json\n%s\n```\n\n</details>\n", r.Command(), r.Seed, strings.TrimSpace(config.String()))
	return out.String(), nil
}

// claimColumns and claimCells are a table's of claims. Quick runs give no
// verdicts.
func claimColumns(r *experiment.Record) []string {
	columns := []string{"what", "paper", "measured", "verdict"}
	if r.Quick {
		columns = columns[:3]
	}
	return columns
}

func claimCells(r *experiment.Record, c *experiment.Claim) []string {
	cells := []string{c.What, c.Paper, c.Ours, string(c.Verdict)}
	return cells[:len(claimColumns(r))]
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
			rows = append(rows, append([]string{"`" + e.Name + "`"}, claimCells(r, &c)...))
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
	markdown(&out, append([]string{"experiment"}, claimColumns(first)...), rows, false)
	kind := ""
	if first.Quick {
		kind = " -quick"
	}
	fmt.Fprintf(&out, "\n<sub>`go run ./bench -seed %d%s -all`: seed %d; each configuration is in `out/EXPERIMENT.json`</sub>\n",
		first.Seed, kind, first.Seed)
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
