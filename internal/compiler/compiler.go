// Package compiler lets a test ask what the Go compiler makes of the package
// under test: which functions it can inline, and where it checks bounds. Code
// that runs for every packet must not be behind a call.
package compiler

import (
	"bytes"
	"math"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Notes holds what the compiler says about the package in the current
// directory.
type Notes struct{ text string }

// Look builds the package under test and returns the compiler's notes. It skips
// the test if there is no go command.
func Look(t testing.TB) Notes {
	t.Helper()
	command, err := exec.LookPath("go")
	if err != nil {
		t.Skip("needs the go command")
	}
	out, err := exec.Command(command, "build", "-gcflags=-m -d=ssa/check_bce", ".").CombinedOutput()
	if n := string(out); err != nil || !strings.Contains(n, "Found Is") || !strings.Contains(n, ": can inline ") {
		t.Fatalf("%v, or the compiler says nothing of bounds or of inlining:\n%s", err, n)
	}
	return Notes{string(out)}
}

// Inlined reports whether the compiler can inline a function. The name of a
// method is "Type.Method" or "(*Type).Method".
func (n Notes) Inlined(name string) bool { return strings.Contains(n.text, ": can inline "+name+"\n") }

// WantInlined fails the test for every function that cannot be inlined.
func (n Notes) WantInlined(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		if !n.Inlined(name) {
			t.Errorf("%s cannot be inlined", name)
		}
	}
}

// BoundsChecks returns the compiler's notes of where code checks a bound in a file, or in a function
// or method of it: IsInBounds for an index, IsSliceInBounds for a slice expression.
func (n Notes) BoundsChecks(t testing.TB, file, function string) (all []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	found := regexp.MustCompile(`(?m)^func (\(.*\) )?` + function + `\b`).FindIndex(text)
	if err != nil || found == nil {
		t.Fatalf("no %q in %s: %v", function, file, err)
	}
	from, to := 1, math.MaxInt
	if function != "" {
		body, _, _ := bytes.Cut(text[found[0]:], []byte("\n}\n"))
		from += bytes.Count(text[:found[0]], []byte("\n"))
		to = from + bytes.Count(body, []byte("\n"))
	}
	notes := regexp.MustCompile(`(?m)^\S*?` + regexp.QuoteMeta(file) + `:(\d+):\d+: Found (IsInBounds|IsSliceInBounds)$`)
	for _, m := range notes.FindAllStringSubmatch(n.text, -1) {
		if line, _ := strconv.Atoi(m[1]); line >= from && line <= to {
			all = append(all, m[0])
		}
	}
	return all
}
