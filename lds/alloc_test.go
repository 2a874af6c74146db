package lds

import (
	"testing"

	"github.com/hoplag/hoplag/hashing"
)

func TestNothingAllocates(t *testing.T) {
	for name, c := range shapes() {
		a, b := fill(t, c, packets(61, 500, 20))
		for what, f := range map[string]func(){
			"Update":         func() { a.Update(1, 2, 3) },
			"UpdateWeighted": func() { a.UpdateWeighted(1, 2, 3, 4) },
			"Merge":          func() { _ = a.Merge(b) },
			"Estimate":       func() { _, _ = Estimate(b, b, hashing.Flow(hashing.Word(1, 0))) },
			"Packets":        func() { a.Packets(1) },
			"Reset":          func() { a.Reset() },
		} {
			if n := testing.AllocsPerRun(20, f); n > 0 {
				t.Errorf("%s: %s allocates %v times", name, what, n)
			}
		}
	}
}
