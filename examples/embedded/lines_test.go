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
// and structs, which what it is embedded in dictates, are in the second figure.
func TestLines(t *testing.T) {
	points, allPoints := codeLines(t, "points.go")
	for _, name := range []string{"wireguard.go", "mqtt.go", "grpc.go", "grpc_streams.go", "http.go", "rtp.go"} {
		own, all := codeLines(t, name)
		t.Logf("%-16s %2d lines, %2d with declarations", name, own+points, all+allPoints)
		if own < 5 || own+points > 30 {
			t.Errorf("%s has %d lines, and points.go %d: want at most 30 together", name, own, points)
		}
	}
}

// codeLines counts the lines within functions, and those of all declarations.
func codeLines(t *testing.T, name string) (within, all int) {
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution) // without comments
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	count := func(from, to int) (n int) { // lines, from 1
		for _, line := range lines[from-1 : to] {
			line, _, _ = strings.Cut(line, "//")
			if regexp.MustCompile(`\w`).MatchString(line) {
				n++
			}
		}
		return n
	}
	at := func(p token.Pos) int { return set.Position(p).Line }
	for _, d := range file.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.IMPORT {
			continue
		}
		all += count(at(d.Pos()), at(d.End()))
		if f, ok := d.(*ast.FuncDecl); ok {
			within += count(min(at(f.Body.Lbrace)+1, at(f.Body.Rbrace)), at(f.Body.Rbrace))
		}
	}
	return within, all
}
