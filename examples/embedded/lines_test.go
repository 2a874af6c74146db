package embedded

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestLines counts what each embedding does at both ends together: every line
// with a word on it in the functions of its file and of points.go. Signatures
// and structs, which what it is embedded in dictates, do not count.
func TestLines(t *testing.T) {
	points := codeLines(t, "points.go")
	for _, name := range []string{"wireguard.go", "mqtt.go", "grpc.go", "grpc_streams.go", "http.go", "rtp.go"} {
		own := codeLines(t, name)
		t.Logf("%-16s %2d lines", name, own+points)
		if own < 5 || own+points > 30 {
			t.Errorf("%s has %d lines, and points.go %d: want at most 30 together", name, own, points)
		}
	}
}

// codeLines counts the lines within functions.
func codeLines(t *testing.T, name string) (n int) {
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			begin, end := set.Position(f.Body.Lbrace).Line, set.Position(f.Body.Rbrace).Line
			for _, line := range lines[min(begin, end-1):end] {
				line, _, _ = strings.Cut(line, "//")
				if regexp.MustCompile(`\w`).MatchString(line) {
					n++
				}
			}
		}
	}
	return n
}
