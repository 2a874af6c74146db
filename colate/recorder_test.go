package colate

import (
	"bytes"
	"errors"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// configs are the shapes a recorder can have, small.
var configs = map[string]Config{
	"narrow":     {Counters: 50, PerFlow: 4, Bits: 24, CountBits: 6, DigestBits: 8, Period: 100_000, Identity: 7},
	"counts":     {Counters: 51, PerFlow: 3, Bits: 30, CountBits: 4, DigestBits: 4, Period: 70_001},
	"unit":       {Counters: 300, PerFlow: 6, Bits: 40, CountBits: 8, DigestBits: 10, Period: 1 << 20, Shift: 10},
	"wide":       {Counters: 601, PerFlow: 6, Bits: 64, CountBits: 5, DigestBits: 24, Period: maxPeriod, Shift: 3},
	"samples":    {Counters: 257, PerFlow: 10, OneIn: 3, Samples: 50, Bits: 60, CountBits: 12, DigestBits: 12, Period: 1 << 40},
	"as default": {Counters: 257, PerFlow: 20, Bits: 64, CountBits: 14, DigestBits: 20, Period: 60e9, Shift: 8},
}

// reference is a recorder as §3.1 describes it and Config says, with big numbers for every counter and no thought of speed.
type reference struct {
	config Config
	cells  map[int]*big.Int
	n      uint64
	start  int64
}

func (r *reference) update(f hashing.Flow, p hashing.Packet, t int64) {
	c := r.config
	j := uint64(uint32(p)) * uint64(c.PerFlow) >> 32
	h := uint64(uint32(hashing.Mix(uint64(f)^c.Identity, j))) * uint64(c.Counters) >> 32
	floor := func(x, by int64) int64 {
		if x%by < 0 {
			return x/by - 1
		}
		return x / by
	}
	if r.n == 0 {
		r.start = floor(t, c.Period) * c.Period
	}
	r.n++
	// One packet more, beside its digest, beside its time.
	add := big.NewInt(floor(t+int64(uint64(p)%(1<<c.Shift)), 1<<c.Shift))
	add.Lsh(add, uint(c.DigestBits))
	add.Add(add, new(big.Int).SetUint64(uint64(p)>>(64-c.DigestBits)))
	add.Lsh(add, uint(c.CountBits))
	add.Add(add, big.NewInt(1))
	if r.cells[int(h)] == nil {
		r.cells[int(h)] = new(big.Int)
	}
	cell := r.cells[int(h)]
	cell.Add(cell, add)
	cell.Mod(cell, new(big.Int).Lsh(big.NewInt(1), uint(c.Bits)))
}

// some gives random packets to each.
func some(c Config, packets int, each func(hashing.Flow, hashing.Packet, int64)) {
	rng := rand.New(rand.NewPCG(1, 2))
	now := int64(-1_000_000) // the clock's zero is passed on the way
	for range packets {
		now += rng.Int64N(2000)
		each(hashing.Flow(rng.Uint64N(30)), hashing.Packet(rng.Uint64()), now)
	}
}

func TestReference(t *testing.T) {
	for name, c := range configs {
		slow := &reference{config: c, cells: map[int]*big.Int{}}
		r, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		epochs := 1
		check := func() {
			for i := range c.Counters {
				want := uint64(0)
				if slow.cells[i] != nil {
					want = slow.cells[i].Uint64()
				}
				if got := r.word(i); got != want {
					t.Fatalf("%s: counter %d is %#x, want %#x", name, i, got, want)
				}
			}
			start, end, ok := r.Span()
			if !ok || start != slow.start || end != start+c.Period || r.packets != slow.n {
				t.Fatalf("%s: %d packets from %d to %d, want %d from %d", name, r.packets, start, end, slow.n, slow.start)
			}
		}
		some(c, 3000, func(f hashing.Flow, p hashing.Packet, now int64) {
			over := slow.n > 0 && now >= slow.start+c.Period
			if r.Due(now) != over {
				t.Fatalf("%s: due at %d: %v, want %v", name, now, r.Due(now), over)
			}
			if over {
				check()
				r.Reset()
				slow.cells, slow.n = map[int]*big.Int{}, 0
				epochs++
			}
			r.Update(f, p, now)
			slow.update(f, p, now)
		})
		check()
		if c.Period < 1e6 && epochs < 5 {
			t.Errorf("%s: %d epochs, so the test tests little", name, epochs)
		}
	}
}

// Packets that come a little late, and those that a stepping clock brings.
func TestDue(t *testing.T) {
	c := configs["narrow"]
	r, _ := New(c)
	before := r.Due(5) || r.Due(-1e15) // which has not begun
	r.Update(1, 2, 250_000)
	for at, want := range map[int64]bool{
		200_000: false, 299_999: false, 300_000: true, 1e15: true, 199_999: false, 100_000: false, 99_999: true, -1e15: true,
	} {
		if r.Due(at) != want || before {
			t.Errorf("an epoch from 200,000 to 300,000 is over at %d: %v", at, !want)
		}
	}
}

// Shards of one point, merged in any order, are one recorder, and sample the same packets.
func TestShards(t *testing.T) {
	for name, c := range configs {
		c.Period = maxPeriod
		whole, _ := New(c)
		merged, _ := New(c)
		var shards [3]*Recorder
		for i := range shards {
			shards[i], _ = New(c)
		}
		some(c, 1000, func(f hashing.Flow, p hashing.Packet, now int64) {
			now += 2_000_000
			whole.Update(f, p, now)
			shards[p%3].Update(f, p, now)
			shards[p%3].Update(f+1, p+1, now)
			whole.Update(f+1, p+1, now)
		})
		for _, i := range []int{2, 0, 1} {
			if err := merged.Merge(shards[i]); err != nil {
				t.Fatal(err)
			}
		}
		before := encoded(t, whole)
		if string(encoded(t, merged)) != string(before) {
			t.Errorf("%s: merged shards are not the whole", name)
		}
		empty, _ := New(c)
		earlier, _ := New(c)
		earlier.Update(1, 2, -5)
		c.Identity++
		other, _ := New(c)
		for _, r := range []*Recorder{other, earlier} {
			if err := merged.Merge(r); !errors.Is(err, estimate.ErrMismatch) {
				t.Errorf("%s: merging what is unlike: %v", name, err)
			}
		}
		if err := merged.Merge(empty); err != nil || string(encoded(t, merged)) != string(before) {
			t.Errorf("%s: merging nothing: %v", name, err)
		}
	}
}

func TestConfig(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"Samples":            func(c *Config) { c.Samples = 0 },
		"PerFlow":            func(c *Config) { c.PerFlow = 1 },
		"PerFlow, too large": func(c *Config) { c.PerFlow = maxPerFlow + 1 },
		"Counters":           func(c *Config) { c.Counters = c.PerFlow },
		"Counters, too many": func(c *Config) { c.Counters = maxCounters + 1 },
		"Bits":               func(c *Config) { c.Bits = 65 },
		"CountBits":          func(c *Config) { c.CountBits = 3 },
		"DigestBits":         func(c *Config) { c.DigestBits = 33 },
		"no room for a sum":  func(c *Config) { c.Bits = c.CountBits + c.DigestBits + 7 },
		"Shift":              func(c *Config) { c.Shift = c.CountBits + c.DigestBits + 1 },
		"Period":             func(c *Config) { c.Period = 0 },
		"Period, too long":   func(c *Config) { c.Period = maxPeriod + 1 },
	} {
		c := DefaultConfig
		change(&c)
		if _, err := New(c); !errors.Is(err, estimate.ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Bursts are as if their packets came one by one, also the first of an epoch.
func TestUpdateBatch(t *testing.T) {
	for name, c := range configs {
		var flows []hashing.Flow
		var packets []hashing.Packet
		one, _ := New(c)
		bursts, _ := New(c)
		some(c, 100, func(f hashing.Flow, p hashing.Packet, _ int64) {
			flows, packets = append(flows, f), append(packets, p)
			one.Update(f, p, 5)
		})
		bursts.UpdateBatch(flows[:70], packets[:70], 5)
		bursts.UpdateBatch(flows[70:], packets[70:], 5)
		if !bytes.Equal(encoded(t, bursts), encoded(t, one)) {
			t.Errorf("%s: bursts are not recorded as their packets are", name)
		}
	}
}

func TestRecorderAllocations(t *testing.T) {
	r, _ := New(configs["as default"])
	flows, packets := make([]hashing.Flow, 40), make([]hashing.Packet, 40)
	buffer := encoded(t, r)
	if n := testing.AllocsPerRun(100, func() {
		r.Update(1, 2, 3)
		r.UpdateBatch(flows, packets, 3)
		r.Due(5)
		r.Reset()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if n := testing.AllocsPerRun(100, func() { buffer, _ = r.AppendBinary(buffer[:0]) }); n > 1 {
		t.Errorf("%v allocations to encode, want one for a block", n)
	}
}
