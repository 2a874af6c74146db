package heap

import (
	"math/rand/v2"
	"slices"
	"testing"
)

type number int

func (a number) Before(b number) bool { return a < b }

// In whatever order values come and go, the first is the least.
func TestHeap(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var h Heap[number]
	var slow []number
	for step := range 20_000 {
		v := number(r.IntN(1000))
		switch r.IntN(5) {
		case 0, 1:
			h.Push(v)
			slow = append(slow, v)
		case 2:
			if len(h) > 0 {
				h.Replace(v)
				slow[0] = v
			}
		default:
			if len(h) > 0 {
				if got := h.Pop(); got != slow[0] {
					t.Fatalf("step %d: %d popped, want %d", step, got, slow[0])
				}
				slow = slow[1:]
			}
		}
		slices.Sort(slow)
		if len(h) != len(slow) || len(h) > 0 && h[0] != slow[0] {
			t.Fatalf("step %d: first of %d, want of %d", step, len(h), len(slow))
		}
	}
}
