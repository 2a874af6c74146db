package rules

import (
	"bufio"
	"context"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestDocumentsNameTests looks for every test, with its package, experiment and file that the documents name.
func TestDocumentsNameTests(t *testing.T) {
	there, found, linked := map[string]bool{}, 0, 0
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(|Name:\s+"([a-z]+-[a-z0-9-]+)"`)
	allSources(t, func(s *sourceFile) {
		for _, m := range declared.FindAllStringSubmatch(s.text, -1) {
			there[path.Dir(s.name)+"."+m[1]], there[m[2]] = true, true
		}
	})
	named := regexp.MustCompile("`(?:([a-z/]+)\\.)?(Test\\w+)`|`((?:ours|real|lda|rli|lds|colate|mplane)-[a-z0-9-]+)`")
	links := regexp.MustCompile(`\]\(([^):#]+)[^):]*\)`)
	for _, name := range slices.Concat(must(filepath.Glob("*.md")), must(filepath.Glob("docs/*.md")), must(filepath.Glob("*/*/*.md"))) {
		for _, link := range links.FindAllStringSubmatch(read(t, name), -1) {
			linked++
			if _, err := os.Stat(filepath.Join(filepath.Dir(name), link[1])); err != nil {
				t.Errorf("%s has a link to nothing: %v", name, err)
			}
		}
		for _, m := range named.FindAllStringSubmatch(read(t, name), -1) {
			found++
			beside := m[1] == "" && (there[path.Dir(filepath.ToSlash(name))+"."+m[2]] || there["internal/rules."+m[2]])
			if m[2] != "" && !there[m[1]+"."+m[2]] && !beside || !there[m[3]] {
				t.Errorf("%s names %s, which is not there", name, m[0])
			}
		}
	}
	if found < 20 || linked < 10 {
		t.Errorf("the documents name %d tests and experiments, and %d files: they are not found", found, linked)
	}
}

// TestREADMEProgram builds the README's program as it stands, and runs it until it has reported twice.
func TestREADMEProgram(t *testing.T) {
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(read(t, "README.md"), -1)
	if len(blocks) != 1 || !strings.HasPrefix(blocks[0][1], "package main\n") {
		t.Fatalf("%d pieces of Go in the README, want one program", len(blocks))
	}
	program := blocks[0][1]
	if testing.Short() {
		t.Skip("it is run for two seconds")
	}
	free, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Skip(err)
	}
	address := free.Addr().String()
	free.Close()
	dir := t.TempDir()
	binary, source := filepath.Join(dir, "program.exe"), filepath.Join(dir, "main.go")
	if err := os.WriteFile(source, []byte(strings.ReplaceAll(program, "localhost:7070", address)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gofmt", "-l", source).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("the README's program is not formatted: %v %s", err, out)
	}
	if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", binary, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	command := exec.CommandContext(ctx, binary)
	out := must(command.StdoutPipe())
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer command.Wait()
	defer cancel()
	reports := 0
	for lines := bufio.NewScanner(out); reports < 2 && lines.Scan(); {
		if regexp.MustCompile(`^client → server  [\d.]+ ms \(.* to .*\), .*sent [1-9]`).MatchString(lines.Text()) {
			reports++
		}
	}
	if reports < 2 {
		t.Errorf("the README's program reported %d times", reports)
	}
}

// TestREADME looks for the programs that the README names, and how long it is.
func TestREADME(t *testing.T) {
	text := read(t, "README.md")
	_, programs, _ := strings.Cut(text, "**Programs** in `examples`: ")
	programs, _, _ = strings.Cut(programs, ". Each")
	all := must(filepath.Glob("examples/*"))
	if strings.Count(programs, "`") != 2*len(all)-2 { // all but internal
		t.Errorf("the README names the programs %s, want %q", programs, all)
	}
	for _, name := range all {
		if name != "examples/internal" && !strings.Contains(programs, "`"+filepath.Base(name)+"`") {
			t.Errorf("the README does not name %s among its programs", name)
		}
	}
	if lines := strings.Count(text, "\n"); lines > 120 {
		t.Errorf("the README has %d lines, want 120 or fewer", lines)
	}
	for _, want := range []string{"go get " + module + "`", "git clone https://" + module + " && cd hoplag\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("the README does not say %q", want)
		}
	}
	for _, name := range must(filepath.Glob("docs/*.svg")) {
		if !strings.Contains(read(t, name), "prefers-color-scheme:dark") {
			t.Errorf("%s is for light pages only", name)
		}
	}
}

// TestFigures looks up what the documents say of accuracy and speed in the generated pages: rows of the README
// in the results and in the comparison with others, and every percentage that METHODS.md says was measured.
func TestFigures(t *testing.T) {
	results, readme, found := read(t, "bench/RESULTS.md"), read(t, "README.md"), [3]int{}
	accuracy := regexp.MustCompile("(?m)^\\| .* \\| ([^|]+) \\| ([^|]+) \\| ([^|]+) \\| `([a-z0-9-]+)` \\|$")
	for _, row := range accuracy.FindAllStringSubmatch(readme, -1) {
		found[0]++
		pairs := append(regexp.MustCompile(`([\d.]+ %) → ([\d.]+ %)`).FindAllStringSubmatch(row[3], -1), []string{"", row[1], row[2]})
		if len(pairs) < 2 {
			t.Errorf("the README has no typical figures beside those of %s", row[4])
		}
		for _, p := range pairs {
			if !holdsBoth(sectionOf(results, row[4]), p[1], p[2]) {
				t.Errorf("no result of %s says %s and %s", row[4], p[1], p[2])
			}
		}
	}
	speeds := regexp.MustCompile(`(?m)^\| .* \| ([\d.; ]+) \| [\d.; ]+ \|$`)
	for _, row := range speeds.FindAllStringSubmatch(readme, -1) {
		for figure := range strings.SplitSeq(row[1], "; ") {
			if found[1]++; !strings.Contains(read(t, "bench/peers/README.md"), "| "+figure+" |") {
				t.Errorf("bench/peers/README.md has no %s", figure)
			}
		}
	}
	for _, part := range strings.Split(read(t, "METHODS.md"), "**Measured.**")[1:] {
		part, _, _ = strings.Cut(strings.ReplaceAll(part, "**It\nloses**", "**It loses**"), "**It loses**")
		sections := ""
		for _, name := range regexp.MustCompile("`([a-z0-9-]+)`").FindAllStringSubmatch(part, -1) {
			sections += sectionOf(results, name[1])
		}
		for _, figure := range regexp.MustCompile(`[\d.]+\s%`).FindAllString(part, -1) {
			found[2]++
			if !holdsBoth(strings.ReplaceAll(sections, "\n", " "), strings.ReplaceAll(figure, "\n", " "), "") {
				t.Errorf("METHODS.md says %q, and no result of the experiments beside it does", figure)
			}
		}
	}
	if found[0] < 4 || found[1] < 6 || found[2] < 10 {
		t.Errorf("%d rows of accuracy, %d speeds and %d figures of METHODS.md were found", found[0], found[1], found[2])
	}
	if holdsBoth("- What. Paper: 1.2 %; here: 3 %.", "1.2 %", "0.3 %") {
		t.Error("the comparison finds what is not there")
	}
}

// sectionOf returns the results of an experiment, if there are any.
func sectionOf(results, experiment string) string {
	section, _, ok := strings.Cut(results, "bench -seed 1 "+experiment+"`</sub>")
	if !ok {
		return ""
	}
	return section[strings.LastIndex(section, "\n### "):]
}

// holdsBoth reports whether a line of the results has both figures, whole.
func holdsBoth(section, theirs, ours string) bool {
	has := func(line, figure string) bool {
		return regexp.MustCompile(`(^|[^\d.])` + regexp.QuoteMeta(figure)).MatchString(line)
	}
	for line := range strings.Lines(section) {
		if has(line, theirs) && has(line, ours) {
			return true
		}
	}
	return false
}

func read(t *testing.T, name string) string {
	t.Helper()
	return string(must(os.ReadFile(name)))
}

// Every cell of SECURITY.md's table has a figure and the name of a test or an experiment, which must exist.
func TestEveryCellHasATest(t *testing.T) {
	rows, cells := 0, 0
	for line := range strings.Lines(read(t, "SECURITY.md")) {
		row := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") || strings.TrimSpace(row[0]) == "" {
			continue
		}
		rows++
		if len(row) != 5 {
			t.Errorf("%d cells in the row of %q, want 5", len(row), row[0])
		}
		for i, cell := range row[1:] {
			cells++
			named := regexp.MustCompile("`(([a-z/]+\\.)?Test[A-Za-z0-9]+|ours-[a-z-]+)`")
			if text := named.ReplaceAllString(cell, ""); text == cell || !strings.ContainsAny(text, "0123456789") {
				t.Errorf("column %d of %q has no test, or no figure: %s", i+1, strings.TrimSpace(row[0]), cell)
			}
		}
	}
	if rows < 8 || cells < 32 {
		t.Errorf("%d rows with %d cells: the table is not found", rows, cells)
	}
}
