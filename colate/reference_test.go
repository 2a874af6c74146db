package colate

import (
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/hashing"
)

// reference is a recorder as §3.1 and §1.4 describe it, with a number for
// every counter and no thought of speed. It keeps all its epochs.
type reference struct {
	config Config
	epochs []referenceEpoch
}

type referenceEpoch struct {
	sums, counts map[[2]int]uint64 // by vector and counter
	packets      map[int]uint64    // by vector
	digests      map[int]uint64
	fill         map[int]uint64
	first, last  int64
}

func newReferenceEpoch() referenceEpoch {
	return referenceEpoch{
		sums: map[[2]int]uint64{}, counts: map[[2]int]uint64{},
		packets: map[int]uint64{}, digests: map[int]uint64{}, fill: map[int]uint64{},
	}
}

func (r *reference) update(f hashing.Flow, p hashing.Packet, t int64) {
	c := r.config
	// Vector k with probability 1/2, 1/4, and so on, the rest in the last.
	vector := 0
	for vector < c.Vectors-1 && uint64(p)>>(63-vector)&1 == 0 {
		vector++
	}
	j := uint64(uint32(p)) * uint64(c.PerFlow) >> 32
	h := uint64(uint32(hashing.Mix(uint64(f)^c.Identity, j))) * uint64(c.Counters) >> 32
	cell := [2]int{vector, int(h)}

	sumBits := int(c.Bits - c.CountBits)
	unit := int64(1) << c.Shift
	clock := t / unit
	if t%unit < 0 {
		clock-- // towards the past
	}
	stampBits := int(c.TimeBits)
	if stampBits == 0 {
		stampBits = sumBits
	}
	stamp := uint64(clock) % (1 << stampBits)

	if len(r.epochs) == 0 {
		r.epochs = append(r.epochs, newReferenceEpoch())
	}
	e := &r.epochs[len(r.epochs)-1]
	fills := uint64(1)
	if c.TimeBits != 0 {
		fills = stamp
	}
	full := c.Threshold != 0 && e.fill[vector]+fills > c.Threshold
	full = full || c.TimeBits != 0 && e.sums[cell]+stamp >= 1<<sumBits
	full = full || c.CountBits != 0 && e.counts[cell]+1 >= 1<<c.CountBits
	if full {
		r.epochs = append(r.epochs, newReferenceEpoch())
		e = &r.epochs[len(r.epochs)-1]
	}
	if len(e.packets) == 0 {
		e.first, e.last = t, t
	}
	e.first, e.last = min(e.first, t), max(e.last, t)
	e.sums[cell] = (e.sums[cell] + stamp) % (1 << sumBits)
	e.counts[cell]++
	e.packets[vector]++
	e.digests[vector] += uint64(p)
	e.fill[vector] += fills
}

// equal compares an epoch of a recorder with the reference's.
func (r *referenceEpoch) equal(t *testing.T, e *Epoch) {
	t.Helper()
	c := e.Config()
	if first, last, ok := e.Span(); !ok || first != r.first || last != r.last {
		t.Errorf("span %d to %d (%v), want %d to %d", first, last, ok, r.first, r.last)
	}
	for k := range c.Vectors {
		if got, want := e.Vector(k), (Vector{r.packets[k], r.digests[k], r.fill[k]}); got != want {
			t.Errorf("vector %d: %+v, want %+v", k, got, want)
		}
		for i := range c.Counters {
			sum, count := e.Counter(k, i)
			want := r.counts[[2]int{k, i}]
			if c.CountBits == 0 {
				want = 0
			}
			if sum != r.sums[[2]int{k, i}] || count != want {
				t.Fatalf("counter %d of vector %d: sum %d of %d packets, want %d of %d", i, k, sum, count, r.sums[[2]int{k, i}], want)
			}
		}
	}
}

// configs are the shapes a recorder can have, small.
var configs = map[string]Config{
	"wraps":         {Counters: 50, PerFlow: 4, Bits: 24, Vectors: 1},
	"wraps, counts": {Counters: 50, PerFlow: 4, Bits: 30, CountBits: 6, Vectors: 1, Identity: 7},
	"wraps, limit":  {Counters: 50, PerFlow: 4, Bits: 24, Vectors: 1, Threshold: 300},
	"paper":         {Counters: 50, PerFlow: 4, Bits: 19, TimeBits: 15, Shift: 3, Vectors: 1, Threshold: 1 << 20},
	"paper, loss":   {Counters: 50, PerFlow: 4, Bits: 19, TimeBits: 15, Shift: 3, Vectors: 3, Threshold: 1 << 20},
	"32 bits":       {Counters: 51, PerFlow: 2, Bits: 32, CountBits: 8, TimeBits: 20, Vectors: 2},
	"wide":          {Counters: 51, PerFlow: 6, Bits: 63, CountBits: 5, TimeBits: 55, Vectors: 8},
	"wide, wraps":   {Counters: 51, PerFlow: 6, Bits: 33, Vectors: 1},
	"default":       {Counters: 51, PerFlow: 6, Bits: 52, CountBits: 12, Vectors: 1, Threshold: 700},
	"default, full": {Counters: 51, PerFlow: 6, Bits: 40, CountBits: 4, Vectors: 1},
	"default, unit": {Counters: 51, PerFlow: 6, Bits: 40, CountBits: 8, Vectors: 1, Shift: 10},
}

// record sends random packets to a recorder, and calls each with every epoch
// that ends and with the last.
func record(t testing.TB, c Config, packets int, each func(*Epoch), also func(hashing.Flow, hashing.Packet, int64)) {
	r, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	now := int64(-1_000_000) // the clock's zero is passed on the way
	for range packets {
		f, p := hashing.Flow(rng.Uint64N(30)), hashing.Packet(rng.Uint64())
		now += rng.Int64N(2000)
		r.Update(f, p, now)
		if also != nil {
			also(f, p, now)
		}
		if r.Pending() {
			e := r.Take()
			each(e)
			e.Reset()
			if err := r.Give(e); err != nil {
				t.Fatal(err)
			}
		}
	}
	each(r.Current())
	if r.Overruns() != 0 {
		t.Errorf("%d overruns", r.Overruns())
	}
}

func TestReference(t *testing.T) {
	for name, c := range configs {
		t.Run(name, func(t *testing.T) {
			slow := &reference{config: c}
			var epochs []*Epoch
			record(t, c, 4000, func(e *Epoch) {
				data, err := e.MarshalBinary()
				if err != nil {
					t.Fatal(err)
				}
				kept := new(Epoch)
				if err := kept.UnmarshalBinary(data); err != nil {
					t.Fatal(err)
				}
				epochs = append(epochs, kept)
			}, slow.update)
			if len(epochs) != len(slow.epochs) {
				t.Fatalf("%d epochs, want %d", len(epochs), len(slow.epochs))
			}
			if ends := c.Threshold != 0 || c.CountBits != 0 && c.CountBits < 8 || c.TimeBits == 15; ends && len(epochs) < 2 {
				t.Errorf("no epoch ended: the test tests nothing")
			}
			for i := range epochs {
				slow.epochs[i].equal(t, epochs[i])
			}
		})
	}
}
