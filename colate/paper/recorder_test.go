package paper

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// Epochs are what §3.1 and §1.4 describe, with a number for every counter and
// no thought of speed, and end where the next packet has no room.
func TestReference(t *testing.T) {
	for name, c := range map[string]Config{
		"counters fill": {Identity: 7, Counters: 50, PerFlow: 4, Bits: 19, TimeBits: 15, Shift: 3, Vectors: 1},
		"threshold":     {Counters: 50, PerFlow: 4, Bits: 40, TimeBits: 15, Shift: 3, Vectors: 1, Threshold: 1 << 20},
		"vectors":       {Counters: 51, PerFlow: 6, Bits: 20, TimeBits: 15, Vectors: 3, Threshold: 1 << 20},
	} {
		r, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(1, 2))
		sums, fill, packets := map[[2]int]uint64{}, map[int]uint64{}, map[int]uint64{}
		ended, now := 0, int64(-1_000_000)
		for range 5000 {
			f, p := hashing.Flow(rng.Uint64N(30)), hashing.Packet(rng.Uint64())
			now += rng.Int64N(2000)
			vector := 0
			for vector < c.Vectors-1 && uint64(p)>>(63-vector)&1 == 0 {
				vector++
			}
			j := uint64(uint32(p)) * uint64(c.PerFlow) >> 32
			h := uint64(uint32(hashing.Mix(uint64(f)^c.Identity, j))) * uint64(c.Counters) >> 32
			cell := [2]int{vector, int(h)}
			clock := now / (1 << c.Shift)
			if now%(1<<c.Shift) < 0 {
				clock-- // towards the past
			}
			stamp := uint64(clock) % (1 << c.TimeBits)
			e := r.Update(f, p, now)
			full := sums[cell]+stamp >= 1<<c.Bits || c.Threshold != 0 && fill[vector]+stamp > c.Threshold
			if full != (e != nil) {
				t.Fatalf("%s: an epoch ended: %v, want %v", name, e != nil, full)
			}
			if full {
				ended++
				for at, sum := range sums {
					if got := e.Counter(at[0], at[1]); got != sum {
						t.Fatalf("%s: counter %v is %d, want %d", name, at, got, sum)
					}
				}
				for k := range c.Vectors {
					if got := e.Vector(k); got != (Vector{packets[k], fill[k]}) {
						t.Errorf("%s: vector %d: %+v, want %d packets that fill %d", name, k, got, packets[k], fill[k])
					}
				}
				clear(sums)
				clear(fill)
				clear(packets)
			}
			sums[cell] += stamp
			fill[vector] += stamp
			packets[vector]++
		}
		if ended < 2 {
			t.Errorf("%s: %d epochs ended, so the test tests little", name, ended)
		}
	}
}

func TestConfig(t *testing.T) {
	good := Config{Counters: 50, PerFlow: 4, Bits: 40, TimeBits: 30, Vectors: 1}
	for name, change := range map[string]func(*Config){
		"PerFlow":                func(c *Config) { c.PerFlow = 3 },
		"Counters":               func(c *Config) { c.Counters = 4 },
		"Counters, all together": func(c *Config) { c.Counters, c.Vectors = MaxCounters, 2 },
		"Bits":                   func(c *Config) { c.Bits = 64 },
		"Shift":                  func(c *Config) { c.Shift = 41 },
		"TimeBits":               func(c *Config) { c.TimeBits = 0 },
		"TimeBits over Bits":     func(c *Config) { c.TimeBits = 41 },
		"Threshold":              func(c *Config) { c.Threshold = 5 },
		"Vectors":                func(c *Config) { c.Vectors = 9 },
	} {
		c := good
		change(&c)
		if _, err := New(c); !errors.Is(err, estimate.ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := NewSubvector(c); !errors.Is(err, estimate.ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := New(good); err != nil {
		t.Error(err)
	}
	sum := 0.0
	for k := range 3 {
		sum += (&Config{Vectors: 3}).Share(k)
	}
	if sum != 1 {
		t.Errorf("three vectors record %v of the packets", sum)
	}
}

// A vector that lost a packet is not taken; one that lost as many as were
// brought in is.
func TestMostSampled(t *testing.T) {
	c := paperConfig
	c.Vectors = 3
	at := func(packets ...hashing.Packet) *Subvector {
		r, _ := New(c)
		for _, p := range packets {
			r.Update(1, p, 5)
		}
		s, _ := NewSubvector(c)
		if err := s.Add(r.Current()); err != nil {
			t.Fatal(err)
		}
		return s
	}
	for want, down := range map[int]*Subvector{0: at(1<<63, 1<<62), 1: at(1 << 62), -1: at(5)} {
		if got := MostSampled(at(1<<63, 1<<62), down); got != want {
			t.Errorf("vector %d, want %d", got, want)
		}
	}
	if got := MostSampled(at(1<<63), at(1<<63|1)); got != 0 {
		t.Errorf("a packet lost and another in its place: vector %d", got)
	}
	other := c
	other.Identity++
	s, _ := NewSubvector(other)
	r, _ := New(c)
	if err := s.Add(r.Current()); !errors.Is(err, estimate.ErrMismatch) {
		t.Errorf("adding an epoch of another Config: %v", err)
	}
}
