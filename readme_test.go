package hoplag

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestREADMECode holds every piece of Go in the README to a tested example:
// its lines stand, in order and but for indentation, in an example_test.go;
// and what it prints, if the README says so, in an example's Output.
func TestREADMECode(t *testing.T) {
	examples, err := filepath.Glob("*/example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	examples = append(examples, "example_test.go")
	var tested []string
	for _, name := range examples {
		tested = append(tested, flat(read(t, name)))
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```(\n\n```\n(.*?)```)?").FindAllStringSubmatch(read(t, "README.md"), -1)
	if len(blocks) == 0 {
		t.Error("the README has no example")
	}
	for _, block := range blocks {
		if !containsAny(tested, flat(block[1])) {
			t.Errorf("the README has code that is not in a tested example:\n%s", block[1])
		}
		if printed := block[3]; printed != "" && !containsAny(tested, "// Output:\n// "+strings.ReplaceAll(strings.TrimSpace(flat(printed)), "\n", "\n// ")+"\n") {
			t.Errorf("the README has output that is not a tested example's:\n%s", printed)
		}
	}
	if containsAny(tested, flat("up, err := lda.New(a configuration that does not exist)")) {
		t.Error("the comparison finds what is not there")
	}
}

// TestREADMECommands looks for the programs that the README runs.
func TestREADMECommands(t *testing.T) {
	runs := regexp.MustCompile(`go run (\./[\w/]+)`).FindAllStringSubmatch(read(t, "README.md"), -1)
	if len(runs) == 0 {
		t.Error("the README runs nothing")
	}
	for _, run := range runs {
		if files, err := filepath.Glob(filepath.Join(run[1], "*.go")); err != nil || len(files) == 0 {
			t.Errorf("the README runs %s, which is no program", run[1])
		}
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// flat is text without indentation and empty lines.
func flat(text string) string {
	var b strings.Builder
	for _, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line != "" {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

func containsAny(texts []string, part string) bool {
	for _, text := range texts {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}
