package colate

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

func TestConfig(t *testing.T) {
	for _, tt := range []struct {
		change func(*Config)
		want   string // in the error
	}{
		{func(c *Config) { c.PerFlow = 1 }, "PerFlow is 1"},
		{func(c *Config) { c.PerFlow = 7 }, "PerFlow is 7, want an even number"},
		{func(c *Config) { c.PerFlow = MaxPerFlow + 2 }, "PerFlow is 4098"},
		{func(c *Config) { c.Counters = c.PerFlow }, "Counters is 20"},
		{func(c *Config) { c.Counters = MaxCounters + 1 }, "Counters is"},
		{func(c *Config) { c.Bits = 7 }, "Bits is 7, want 8 to 63"},
		{func(c *Config) { c.Bits = 64 }, "Bits is 64"},
		{func(c *Config) { c.CountBits = 25 }, "CountBits is 25"},
		{func(c *Config) { c.Bits, c.CountBits = 8, 8 }, "CountBits is 8, want 0 to 24 and below Bits, 8"},
		{func(c *Config) { c.Shift = MaxShift + 1 }, "Shift is 41"},
		{func(c *Config) { c.TimeBits = 41 }, "TimeBits is 41, want 0, or up to the sum's width, 40"},
		{func(c *Config) { c.TimeBits, c.Threshold = 10, 1022 }, "Threshold is 1022"},
		{func(c *Config) { c.Vectors = 0 }, "Vectors is 0"},
		{func(c *Config) { c.Vectors = 9 }, "Vectors is 9, want 1 to 8"},
	} {
		c := DefaultConfig
		tt.change(&c)
		_, err := New(c)
		if !errors.Is(err, estimate.ErrConfig) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want an ErrConfig with %q", c, err, tt.want)
		}
		if _, err := NewSubvector(c); !errors.Is(err, estimate.ErrConfig) {
			t.Errorf("%+v: NewSubvector: %v, want an ErrConfig", c, err)
		}
	}
	if _, err := New(DefaultConfig); err != nil {
		t.Errorf("DefaultConfig: %v", err)
	}
}

func TestShares(t *testing.T) {
	for vectors := 1; vectors <= MaxVectors; vectors++ {
		c, sum := Config{Vectors: vectors}, 0.0
		for k := range vectors {
			sum += c.Share(k)
		}
		if sum != 1 {
			t.Errorf("%d vectors share %v of the packets", vectors, sum)
		}
	}
}

// small is a recorder of which an epoch is over after three packets.
func small(t *testing.T) *Recorder {
	r, err := New(Config{Counters: 10, PerFlow: 2, Bits: 20, Vectors: 1, Threshold: 3})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestHandover(t *testing.T) {
	r := small(t)
	send := func(n int) {
		for range n {
			r.Update(1, 2, 3)
		}
	}
	if r.Rotate(); r.Pending() {
		t.Error("an empty epoch ended")
	}
	if send(3); r.Pending() || r.Take() != nil {
		t.Error("pending before there was a packet too many")
	}
	if send(1); !r.Pending() {
		t.Fatal("not pending after it")
	}
	full := r.Take()
	if full.Packets() != 3 || r.Current().Packets() != 1 || r.Pending() {
		t.Errorf("%d packets handed over, %d recorded, pending %v; want 3, 1, false", full.Packets(), r.Current().Packets(), r.Pending())
	}
	if err := r.Give(full); !errors.Is(err, ErrFull) {
		t.Errorf("giving back what is not empty: %v", err)
	}
	full.Reset()
	if err := r.Give(full); err != nil {
		t.Error(err)
	}
	if err := r.Give(full); !errors.Is(err, ErrFull) {
		t.Errorf("giving back twice: %v", err)
	}
	other, _ := New(Config{Counters: 11, PerFlow: 2, Bits: 20, Vectors: 1})
	if err := r.Give(other.Current()); !errors.Is(err, estimate.ErrMismatch) {
		t.Errorf("giving another's: %v", err)
	}
}

func TestOverrun(t *testing.T) {
	r := small(t)
	for range 3 + 3 + 1 {
		r.Update(1, 2, 3)
	}
	// The first three wait, the next three found no room, the last goes on.
	if r.Overruns() != 1 || r.Take().Packets() != 3 || r.Current().Packets() != 1 {
		t.Errorf("%d overruns, %d packets recorded", r.Overruns(), r.Current().Packets())
	}
	r.Reset()
	if r.Overruns() != 0 || r.Current().Packets() != 0 || r.Pending() {
		t.Error("Reset left something")
	}
}

func TestResetReturnsPending(t *testing.T) {
	r := small(t)
	for range 4 {
		r.Update(1, 2, 3)
	}
	r.Reset()
	for range 4 {
		r.Update(1, 2, 3)
	}
	if r.Overruns() != 0 || !r.Pending() || r.Take().Packets() != 3 {
		t.Error("the recorder has lost an epoch to Reset")
	}
}

func encoded(t testing.TB, e *Epoch) []byte {
	t.Helper()
	data, err := e.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A point's packets give the same epoch in any order and from any number of
// shards.
func TestOrderAndShards(t *testing.T) {
	for name, c := range configs {
		c.Threshold, c.CountBits = 0, min(c.CountBits, 5) // epochs that hold all
		c.Bits, c.TimeBits = max(c.Bits, 28), min(c.TimeBits, 12)
		type packet struct {
			f hashing.Flow
			p hashing.Packet
			t int64
		}
		rng := rand.New(rand.NewPCG(3, 4))
		packets := make([]packet, 100)
		for i := range packets {
			packets[i] = packet{hashing.Flow(rng.Uint64()), hashing.Packet(rng.Uint64()), rng.Int64()}
		}
		recorder := func() *Recorder {
			r, err := New(c)
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		one, shuffled, a, b := recorder(), recorder(), recorder(), recorder()
		for i, p := range packets {
			one.Update(p.f, p.p, p.t)
			if i%3 == 0 {
				a.Update(p.f, p.p, p.t)
			} else {
				b.Update(p.f, p.p, p.t)
			}
		}
		rng.Shuffle(len(packets), func(i, j int) { packets[i], packets[j] = packets[j], packets[i] })
		for _, p := range packets {
			shuffled.Update(p.f, p.p, p.t)
		}
		if err := a.Merge(b); err != nil {
			t.Fatal(err)
		}
		want := encoded(t, one.Current())
		if !bytes.Equal(encoded(t, shuffled.Current()), want) {
			t.Errorf("%s: another order, another epoch", name)
		}
		if !bytes.Equal(encoded(t, a.Current()), want) {
			t.Errorf("%s: two shards merged differ from one", name)
		}
	}
}

func TestMergeFull(t *testing.T) {
	a, b := small(t), small(t)
	for range 2 {
		a.Update(1, 2, 3)
		b.Update(1, 2, 3)
	}
	before := encoded(t, a.Current())
	if err := a.Current().Merge(b.Current()); !errors.Is(err, ErrFull) {
		t.Errorf("merging beyond the threshold: %v", err)
	}
	if !bytes.Equal(encoded(t, a.Current()), before) {
		t.Error("a failed merge changed the epoch")
	}
	if err := a.Merge(b); err != nil || !a.Pending() || a.Current().Packets() != 2 || a.Take().Packets() != 2 {
		t.Errorf("merging recorders: %v, want an epoch of 2 and another", err)
	}
	// A counter that cannot hold both.
	c := Config{Counters: 10, PerFlow: 2, Bits: 10, TimeBits: 10, Vectors: 1}
	x, _ := New(c)
	y, _ := New(c)
	x.Update(1, 2, 600)
	y.Update(1, 2, 600)
	if err := x.Current().Merge(y.Current()); !errors.Is(err, ErrFull) {
		t.Errorf("overflowing a counter: %v", err)
	}
	if err := x.Merge(a); !errors.Is(err, estimate.ErrMismatch) {
		t.Errorf("merging another Config: %v", err)
	}
}

// A batch is its packets one by one, wherever epochs end in it.
func TestUpdateBatchIsUpdate(t *testing.T) {
	for name, c := range configs {
		for _, size := range []int{1, 7, 32} {
			one, err := New(c)
			if err != nil {
				t.Fatal(err)
			}
			batch, _ := New(c)
			rng := rand.New(rand.NewPCG(8, 9))
			now, ended := int64(-50_000), 0
			for range 3000 / size {
				flows, packets := make([]hashing.Flow, size), make([]hashing.Packet, size+1)
				for i := range flows {
					flows[i], packets[i] = hashing.Flow(rng.Uint64N(30)), hashing.Packet(rng.Uint64())
				}
				now += rng.Int64N(5000) - 1000 // clocks are stepped back at times
				batch.UpdateBatch(flows, packets, now)
				for i, f := range flows {
					one.Update(f, packets[i], now)
				}
				if one.Pending() != batch.Pending() || one.Overruns() != batch.Overruns() {
					t.Fatalf("%s: batches of %d end their epochs elsewhere", name, size)
				}
				if a, b := one.Take(), batch.Take(); a != nil {
					ended++
					if !bytes.Equal(encoded(t, a), encoded(t, b)) {
						t.Fatalf("%s: batches of %d fill another epoch", name, size)
					}
					a.Reset()
					b.Reset()
					if err := errors.Join(one.Give(a), batch.Give(b)); err != nil {
						t.Fatal(err)
					}
				}
			}
			if !bytes.Equal(encoded(t, one.Current()), encoded(t, batch.Current())) {
				t.Errorf("%s: batches of %d leave another epoch", name, size)
			}
			if name == "wraps, limit" && ended == 0 {
				t.Errorf("%s: no epoch ended", name)
			}
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a flow without a packet was accepted")
		}
	}()
	r := small(t)
	r.UpdateBatch(make([]hashing.Flow, 3), make([]hashing.Packet, 2), 1)
}

func TestRecorderAllocations(t *testing.T) {
	c := configs["wraps, limit"]
	r, _ := New(c)
	other, _ := New(c)
	i := 0
	if n := testing.AllocsPerRun(1000, func() {
		i++
		r.Update(hashing.Flow(i), hashing.Packet(hashing.Mix(uint64(i), 1)), int64(i))
		if r.Pending() {
			e := r.Take()
			e.Reset()
			if r.Give(e) != nil {
				t.Fatal("not taken back")
			}
		}
	}); n != 0 {
		t.Errorf("Update and handover: %v allocations", n)
	}
	r.Reset()
	flows, packets := make([]hashing.Flow, 32), make([]hashing.Packet, 32)
	if n := testing.AllocsPerRun(5, func() { r.UpdateBatch(flows, packets, 1) }); n != 0 {
		t.Errorf("UpdateBatch: %v allocations", n)
	}
	r.Reset()
	if n := testing.AllocsPerRun(10, func() {
		other.Update(1, 2, 3)
		if r.Merge(other) != nil {
			t.Fatal("not merged")
		}
		r.Reset()
	}); n != 0 {
		t.Errorf("Merge and Reset: %v allocations", n)
	}
}
