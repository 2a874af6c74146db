package rules

import (
	"go/ast"
	"os/exec"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// inlined are the functions that run for every packet, or for every packet of a full buffer: a call costs as
// much as the work.
var inlined = map[string]string{
	"hashing": "Row Sampled Threshold Mix Word short finish finishFlow mix sipRound isPlain4 isPlain6 halves (*Tunnels).mayLead",
	"lda":     "(*Aggregator).Update add", "lda/control": "(*Sender).Update (*Receiver).Update",
	"lds":    "(*cell).add split flowWord home tally sampling",
	"colate": "(*Recorder).place (*Recorder).of (*Recorder).Due",
	"rli": "tag matches first (*table).mix (*table).guess (*table).fetch (*tracker).excess (*record).enter (*period).place scale " +
		"octave cellOf (*line).at round (*record).add",
}

// checked counts the bounds checks of functions, by file and name. In lda, Update checks the index of a cell,
// which depends on the hash, and UpdateBatch that of each of eight cells, of one, and where the rest begins.
// Digest checks only where it slices, for it has tested the length.
var checked = map[string]int{"lda/aggregator.go Update": 1, "lda/aggregator.go UpdateBatch": 10, "hashing/digest.go": 0}

// TestInlined asks the compiler. The control: two functions that are too long must be found not to be inlined.
func TestInlined(t *testing.T) {
	if strconv.IntSize < 64 {
		t.Skip("a hash takes two registers, and its operations are calls")
	}
	args := []string{"build", "-gcflags=-m -d=ssa/check_bce"}
	for pkg := range inlined {
		args = append(args, "./"+pkg)
	}
	out, err := exec.Command("go", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	notes := map[string]string{} // by package
	for _, part := range strings.Split(string(out), "# "+module+"/") {
		pkg, rest, _ := strings.Cut(part, "\n")
		notes[pkg] = rest
	}
	is := func(pkg, name string) bool { return strings.Contains(notes[pkg], ": can inline "+name+"\n") }
	for pkg, names := range inlined {
		for _, name := range strings.Fields(names) {
			if !is(pkg, name) {
				t.Errorf("%s.%s cannot be inlined", pkg, name)
			}
		}
	}
	if is("hashing", "Digest") || is("rli", "(*table).find") {
		t.Error("what is too long is said to be inlined")
	}
	found := map[string]int{}
	allSources(t, func(s *sourceFile) {
		if s.isTest() || inlined[path.Dir(s.name)] == "" {
			return
		}
		check := regexp.MustCompile(`(?m)^\S*?` + path.Base(s.name) + `:(\d+):\d+: Found (IsInBounds|IsSliceInBounds)$`)
		for _, m := range check.FindAllStringSubmatch(notes[path.Dir(s.name)], -1) {
			line := must(strconv.Atoi(m[1]))
			found[s.name+strings.TrimPrefix(m[2], "IsInBounds")]++
			for _, d := range s.file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && s.line(f.Pos()) <= line && line <= s.line(f.End()) {
					found[s.name+" "+f.Name.Name]++
				}
			}
		}
	})
	for of, want := range checked {
		if found[of] != want {
			t.Errorf("%s checks %d bounds, want %d", of, found[of], want)
		}
	}
}
