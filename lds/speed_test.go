package lds

import (
	"os/exec"
	"regexp"
	"testing"

	"github.com/hoplag/hoplag/bench/speed"
)

func BenchmarkEstimate(b *testing.B) {
	flows, packets := speed.Flows(), speed.Packets()
	up, down := newSketch(DefaultConfig), newSketch(DefaultConfig)
	for i, f := range flows {
		up.Update(f, packets[i], int64(i))
		down.Update(f, packets[i], int64(i)+1000)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if _, err := Estimate(up, down, flows[i&(speed.StreamLength-1)]); err != nil {
			b.Fatal(err)
		}
	}
}

// TestUpdateIsInlined: Update is one call, to add, and that makes none.
func TestUpdateIsInlined(t *testing.T) {
	gobin, err := exec.LookPath("go")
	if err != nil {
		t.Skip("needs the go command")
	}
	out, err := exec.Command(gobin, "build", "-gcflags=-m", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{`\(\*Sketch\)\.Update`, `\(\*cell\)\.add`, "split", "flowWord", "home", "tally", "sampling"} {
		if !regexp.MustCompile(`can inline ` + name + `\n`).Match(out) {
			t.Errorf("%s cannot be inlined", name)
		}
	}
	if newSketch(DefaultConfig).path == general {
		t.Error("DefaultConfig does not take a short path")
	}
}
