package hashing_test

import (
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// What is called for every packet must be inlined: a call costs as much as
// the work.
func TestInlined(t *testing.T) {
	goCommand, err := exec.LookPath("go")
	if err != nil {
		t.Skipf("no go command to ask the compiler with: %v", err)
	}
	out, err := exec.Command(goCommand, "build", "-gcflags=-m -d=ssa/check_bce", ".").CombinedOutput()
	if err != nil {
		t.Skipf("the package does not build from here: %v", err)
	}
	names := []string{"Row", "LeadingZeros", "Sampled", "Threshold", "Sign", "Mix", "short", "finish", "mix", "multiply61", "SipHash.start", "(*Rabin).absorb"}
	if strconv.IntSize == 64 { // halves of words are too much code
		names = append(names, "Word", "sipRound")
	}
	for _, name := range names {
		if !strings.Contains(string(out), ": can inline "+name+"\n") {
			t.Errorf("%s is not inlined", name)
		}
	}
	if strings.Contains(string(out), ": can inline Digest\n") {
		t.Error("Digest is inlined: the check sees nothing, or the documentation is out of date")
	}
	// Nor may Digest check a bound, but where it slices: the compiler sees
	// that the length was looked at.
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "digest.go:") && strings.Contains(line, "Found IsInBounds") {
			t.Errorf("a bounds check: %s", line)
		}
	}
	if !strings.Contains(string(out), "Found IsInBounds") {
		t.Error("no bounds check in the whole package: the check sees nothing")
	}
}
