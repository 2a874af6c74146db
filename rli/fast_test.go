package rli

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/hashing"
)

// TestSums: the total of a batch is that of its packets one by one, whether its
// squares fit 64 bits or not.
func TestSums(t *testing.T) {
	random := rand.New(rand.NewPCG(13, 14))
	c := DefaultConfig
	c.Flows, c.Buffer = 100, 300
	for size := 1; size < 63; size++ {
		r, err := NewReceiver(c)
		if err != nil {
			t.Fatal(err)
		}
		var want record
		for range 5 {
			packets := r.buffer[:1+random.IntN(300)]
			for i := range packets {
				delay := int64(random.Uint64N(1<<size)) - 1<<size/2
				packets[i] = held{flow: hashing.Flow(random.Uint64N(100)), delay: delay}
				want.sum += delay
				want.squares.add(product(delay, delay))
			}
			want.tally += uint64(len(packets))
			r.record(packets, 0)
		}
		got := r.total
		if got.sum != want.sum || got.squares != want.squares || got.count() != want.count() {
			t.Errorf("delays of %d bits: %+v, want %+v", size, got, want)
		}
		flows := record{}
		for _, f := range r.flows.records {
			flows.merge(&f)
		}
		if flows.sum != want.sum || flows.squares != want.squares || flows.count() != want.count() {
			t.Errorf("delays of %d bits: flows have %+v, want %+v", size, flows, want)
		}
	}
}

// TestEnter: a gap counts once, and when no more gaps fit, packets still count.
func TestEnter(t *testing.T) {
	r := record{}
	for _, gap := range []uint32{4, 4, 6} {
		r.enter(1, gap, 3)
	}
	if r.error != 6*6+3*3 {
		t.Errorf("two errors of 3 in a gap and one in another: %v", r.error)
	}
	if r.count() != 3 || r.gaps() != 2 {
		t.Errorf("%d packets in %d gaps, want 3 in 2", r.count(), r.gaps())
	}
	r.tally = maxGaps<<countBits | 7
	if r.enter(1, 7, 0); r.count() != 8 || r.gaps() != maxGaps {
		t.Errorf("%d packets in %d gaps, want 8 in %d", r.count(), r.gaps(), maxGaps)
	}
}

// TestOctave: an octave is the length of the whole number of nanoseconds.
func TestOctave(t *testing.T) {
	random := rand.New(rand.NewPCG(15, 16))
	for i := range 100_000 {
		x := math.Ldexp(random.Float64(), random.IntN(62))
		if i%2 == 0 {
			x = math.Floor(x) - 1.0/4096
		}
		x = max(x, 0)
		if got, want := octave(x), min(bits.Len64(uint64(x+1.0/1024)), octaves-1); got != want {
			t.Fatalf("octave %d of %v, want %d", got, x, want)
		}
	}
}
