// Package compiler lets a test ask what the Go compiler makes of the package
// under test: which functions it can inline, and where it checks bounds. Code
// that runs for every packet must not be behind a call.
package compiler

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Notes holds what the compiler says about the package in the current
// directory.
type Notes struct {
	text string
}

// Look builds the package under test and returns the compiler's notes. It skips
// the test if there is no go command.
func Look(t testing.TB) Notes {
	t.Helper()
	command, err := exec.LookPath("go")
	if err != nil {
		t.Skip("needs the go command")
	}
	out, err := exec.Command(command, "build", "-gcflags=-m -d=ssa/check_bce", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	n := Notes{string(out)}
	if !strings.Contains(n.text, "Found Is") || !strings.Contains(n.text, ": can inline ") {
		t.Fatalf("the compiler says nothing of bounds or of inlining:\n%s", out)
	}
	return n
}

// Inlined reports whether the compiler can inline a function. The name of a
// method is "Type.Method" or "(*Type).Method".
func (n Notes) Inlined(name string) bool {
	return strings.Contains(n.text, ": can inline "+name+"\n")
}

// WantInlined fails the test for every function that cannot be inlined.
func (n Notes) WantInlined(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		if !n.Inlined(name) {
			t.Errorf("%s cannot be inlined", name)
		}
	}
}

var boundsCheck = regexp.MustCompile(`(?m)^\S*?([^/\s]+\.go):(\d+):\d+: Found (IsInBounds|IsSliceInBounds)$`)

// A BoundsCheck is a place where the compiled code checks a bound.
type BoundsCheck struct {
	File  string
	Line  int
	Slice bool // of a slice expression, not of an index
}

// BoundsChecks returns the bounds checks of a file.
func (n Notes) BoundsChecks(file string) []BoundsCheck {
	var all []BoundsCheck
	for _, m := range boundsCheck.FindAllStringSubmatch(n.text, -1) {
		if m[1] == file {
			line, _ := strconv.Atoi(m[2]) // digits
			all = append(all, BoundsCheck{file, line, m[3] == "IsSliceInBounds"})
		}
	}
	return all
}

// BoundsChecksIn returns the bounds checks of a function or method in a file.
func (n Notes) BoundsChecksIn(t testing.TB, file, function string) []BoundsCheck {
	t.Helper()
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range parsed.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Name.Name != function {
			continue
		}
		from, to := set.Position(f.Pos()).Line, set.Position(f.End()).Line
		var all []BoundsCheck
		for _, c := range n.BoundsChecks(file) {
			if c.Line >= from && c.Line <= to {
				all = append(all, c)
			}
		}
		return all
	}
	t.Fatalf("no %s in %s", function, file)
	return nil
}
