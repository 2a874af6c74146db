package trace

import (
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"time"
)

// backwards are n times in blocks of MaxBackstep, each from its end to its
// beginning.
func backwards(n int) []int64 {
	times := make([]int64, n)
	const block = 50_000
	for i := range times {
		times[i] = 1e18 + int64(i/block)*MaxBackstep + int64(block-i%block)*(MaxBackstep/block)
	}
	return times
}

// Packets come at a cost that does not grow with how far out of order they
// are. Sorting by insertion took 88 s for these.
func TestPairOutOfOrder(t *testing.T) {
	heavy(t)
	const packets = 160_000
	p := NewPair(capture(t, 1, backwards(packets)...), capture(t, 1, backwards(packets)...))
	start, n, last := time.Now(), 0, int64(0)
	for {
		_, rec, err := p.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if rec.Time < last {
			t.Fatalf("%d after %d", rec.Time, last)
		}
		last = rec.Time
		n++
	}
	if n != 2*packets {
		t.Errorf("%d packets, want %d", n, 2*packets)
	}
	if d := time.Since(start); d > time.Minute { // on a very busy machine
		t.Errorf("%v for %d packets", d, n)
	}
}

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
	for range 20_000 {
		for w.full() {
			w.giveBack(w.take().Frame)
		}
		w.add(Record{Time: rng.Int64(), Frame: make([]byte, []int{40, MaxFrame}[rng.IntN(2)])})
		sum := 0
		for _, b := range w.spare {
			sum += cap(b)
		}
		if w.bytes > maxHeldBytes+MaxFrame || sum > w.bytes {
			t.Fatalf("%d bytes, %d of them spare", w.bytes, sum)
		}
	}
	held := 0
	for _, h := range w.heap {
		held += cap(h.Frame)
	}
	for _, b := range w.spare {
		held += cap(b)
	}
	if held != w.bytes {
		t.Errorf("%d bytes, counted %d", held, w.bytes)
	}
}
