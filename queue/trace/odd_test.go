package trace

import (
	"errors"
	"math/rand/v2"
	"testing"
)

// Constant times do not fill the memory.
func TestPairHoldsSoMuch(t *testing.T) {
	heavy(t)
	still := make([]int64, maxHeld+1000)
	for i := range still {
		still[i] = 5
	}
	p := NewPair(capture(t, 1, append(still, 4)...), capture(t, 1, 1))
	n := 0
	var err error
	for err == nil {
		if _, _, err = p.Next(); err == nil {
			n++
		}
		if held := len(p.sides[Ingress].window.heap); held > maxHeld {
			t.Fatalf("%d packets held", held)
		}
	}
	if !errors.Is(err, ErrTime) || n != len(still)+1 {
		t.Errorf("%d packets, %v", n, err)
	}
}

// Nor do frames, whatever the order of large and small ones.
func TestPairHoldsSoManyBytes(t *testing.T) {
	heavy(t)
	rng := rand.New(rand.NewPCG(5, 5))
	var w window
	for range 4_000 {
		for w.full() {
			w.take()
		}
		w.add(Record{Time: rng.Int64(), Frame: make([]byte, []int{40, maxFrame}[rng.IntN(2)])})
	}
	held := 0
	for i := range w.heap {
		held += len(w.heap[i].Frame)
	}
	if w.bytes != held || held > maxHeldBytes+maxFrame {
		t.Errorf("%d bytes are held, counted as %d", held, w.bytes)
	}
}
