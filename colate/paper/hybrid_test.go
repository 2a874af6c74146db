package paper

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

func TestHybrid(t *testing.T) {
	for _, tt := range []struct {
		c      Config
		narrow uint8
	}{
		{Config{Counters: 50, PerFlow: 4, Bits: 32, TimeBits: 12, Vectors: 1}, 14},
		{Config{Counters: 50, PerFlow: 4, Bits: 32, TimeBits: 12, Vectors: 1}, 8}, // time stamps wider than narrow counters
		{Config{Counters: 50, PerFlow: 4, Bits: 63, TimeBits: 40, Vectors: 1}, 31},
	} {
		h, err := NewHybrid(tt.c, tt.narrow)
		if err != nil {
			t.Fatal(err)
		}
		r, _ := New(tt.c)
		rng := rand.New(rand.NewPCG(1, 1))
		const packets = 3000
		for range packets {
			f, p, at := hashing.Flow(rng.Uint64N(20)), hashing.Packet(rng.Uint64()), rng.Int64()
			h.Update(f, p, at)
			if r.Update(f, p, at) != nil {
				t.Fatalf("%+v: an epoch ended", tt.c)
			}
		}
		for i := range tt.c.Counters {
			want := r.Current().Counter(0, i)
			if got := h.Sum(i); got != want {
				t.Fatalf("%+v, %d narrow bits: counter %d is %d, want %d", tt.c, tt.narrow, i, got, want)
			}
		}
		fast, slow := h.Traffic()
		if fast != packets || slow > packets || slow == 0 {
			t.Errorf("%+v, %d narrow bits: %d fast updates, %d slow", tt.c, tt.narrow, fast, slow)
		}
		// Where a time stamp fits a narrow counter, that carries once for each
		// time it is filled.
		if tt.c.TimeBits <= tt.narrow {
			carries := uint64(0)
			for i := range tt.c.Counters {
				carries += h.Sum(i) >> tt.narrow
			}
			if slow != carries {
				t.Errorf("%+v, %d narrow bits: %d slow updates, want %d", tt.c, tt.narrow, slow, carries)
			}
		}
	}
}

func TestHybridErrors(t *testing.T) {
	good := Config{Counters: 50, PerFlow: 4, Bits: 40, TimeBits: 30, Vectors: 1}
	vectors := good
	vectors.Vectors = 2
	for _, tt := range []struct {
		c      Config
		narrow uint8
	}{{good, 0}, {good, 32}, {good, 7}, {vectors, 20}, {Config{}, 20}} {
		if _, err := NewHybrid(tt.c, tt.narrow); !errors.Is(err, estimate.ErrConfig) {
			t.Errorf("%+v, %d narrow bits: %v, want an ErrConfig", tt.c, tt.narrow, err)
		}
	}
}
