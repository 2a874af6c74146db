package colate

import (
	"fmt"
	"os/exec"
	"regexp"
	"testing"

	"github.com/hoplag/hoplag/bench/speed"
)

// BenchmarkQuery is the estimate of one flow from one epoch at each point, the
// gathering included.
func BenchmarkQuery(b *testing.B) {
	flows, packets := speed.Flows(), speed.Packets()
	counted := DefaultConfig
	counted.Threshold = 0
	for _, c := range []Config{{Counters: 455_334, PerFlow: 20, Bits: 32, Vectors: 1}, counted} {
		b.Run(fmt.Sprintf("%d-bits", c.Bits), func(b *testing.B) {
			up, err := New(c)
			if err != nil {
				b.Fatal(err)
			}
			down, _ := New(c)
			for i, f := range flows {
				up.Update(f, packets[i], int64(i))
				down.Update(f, packets[i], int64(i)+1000)
			}
			sender, _ := NewSubvector(c)
			receiver, _ := NewSubvector(c)
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				f := flows[i&(speed.StreamLength-1)]
				sender.Reset(f)
				receiver.Reset(f)
				if sender.Add(up.Current()) != nil || receiver.Add(down.Current()) != nil {
					b.Fatal("not added")
				}
				if _, err := Estimate(sender, receiver, 100); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// What Update and UpdateBatch call for every packet is inlined.
func TestInlining(t *testing.T) {
	command, err := exec.LookPath("go")
	if err != nil {
		t.Skip("needs the go command")
	}
	out, err := exec.Command(command, "build", "-gcflags=-m", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{"choice", "position", `\(\*Recorder\)\.Pending`} {
		if !regexp.MustCompile(`can inline ` + name + `\n`).Match(out) {
			t.Errorf("%s cannot be inlined", name)
		}
	}
}
