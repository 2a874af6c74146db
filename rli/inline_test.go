package rli

import (
	"os/exec"
	"regexp"
	"strconv"
	"testing"
)

// What is done for every packet, or for every packet of a full buffer, is not
// behind a call, but for Update, settling and the search for a flow that was
// not where it was thought to be.
func TestInlining(t *testing.T) {
	if strconv.IntSize < 64 {
		t.Skip("a number of 64 bits takes two registers, and its operations are calls")
	}
	command, err := exec.LookPath("go")
	if err != nil {
		t.Skip("needs the go command")
	}
	out, err := exec.Command(command, "build", "-gcflags=-m", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	inlined := func(name string) bool {
		return regexp.MustCompile(`can inline ` + name + `\n`).Match(out)
	}
	for _, name := range []string{
		"tag", "matches", "first", "bump", `\(\*table\)\.mix`, `\(\*table\)\.guess`, `\(\*table\)\.fetch`,
		`\(\*period\)\.place`, `\(\*spread\)\.expect`, `\(\*line\)\.at`, "longer", "round",
		"magnitude", `\(\*wide\)\.add`, "bucketOf",
	} {
		if !inlined(name) {
			t.Errorf("%s cannot be inlined", name)
		}
	}
	if inlined(`\(\*table\)\.find`) {
		t.Error("the search for a flow is said to be inlined: the check sees anything")
	}
}
