package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mostLines is how many lines an experiment may take on average, with all that
// its package measures with.
const mostLines = 216

// What a line of an experiment is for.
const (
	around   = "imports, comments and blank lines"
	asked    = "what is asked: names, claims, weights"
	told     = "what is told: figures, tables, notes, verdicts"
	given    = "what is given: types, constants, cases"
	measured = "what is measured: traffic, synopses, scores"
)

// Experiments weigh no more than the library: what they share is in packages of
// its own. go test -v ./bench -run Weight prints what their lines are.
func TestWeight(t *testing.T) {
	files, err := filepath.Glob("fig*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]int{}
	all := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		for _, kind := range weigh(t, name) {
			lines[kind]++
			all++
		}
	}
	for kind, n := range lines {
		t.Logf("%6d %s", n, kind)
	}
	n := len(experiments())
	t.Logf("%6d of %d experiments: %d each", all, n, all/n)
	if lines[asked] == 0 || lines[told] == 0 || lines[measured] == 0 {
		t.Error("not all kinds of lines were found")
	}
	if all > mostLines*n {
		t.Errorf("%d lines of %d experiments, want at most %d each", all, n, mostLines)
	}
}

// tells are the methods of a run, a figure and a table by which it tells what it found.
var tells = strings.Fields("Beats Between Claim Config Draw Figure Figures Holds Keeps Line Meets Note Notef Row Table Within")

// weigh says of each line of a file what it is for.
func weigh(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	kinds := slices.Repeat([]string{around}, strings.Count(string(text), "\n"))
	mark := func(n ast.Node, kind string) {
		for line := set.Position(n.Pos()).Line; line <= set.Position(n.End()).Line; line++ {
			kinds[line-1] = kind
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl:
			if n.Tok != token.IMPORT {
				mark(n, given)
			}
		case *ast.FuncDecl:
			mark(n, measured)
		case *ast.CompositeLit:
			if s, ok := n.Type.(*ast.SelectorExpr); ok && s.Sel.Name == "Experiment" {
				mark(n, asked)
			}
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok && slices.Contains(tells, s.Sel.Name) {
				mark(n, told)
			}
		}
		return true
	})
	for i, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "//") {
			kinds[i] = around
		}
	}
	return kinds
}
