package lds

import (
	"bytes"
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// keyedTraffic is flows of Pareto sizes through two sketches, and what is true
// of each.
func keyedTraffic(t testing.TB, c KeyedConfig, flows int, loss float64, seed uint64) (up, down *Keyed, truth map[hashing.Flow]PeeledFlow) {
	t.Helper()
	var err error
	if up, err = NewKeyed(c); err != nil {
		t.Fatal(err)
	}
	if down, err = NewKeyed(c); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(seed, 9))
	truth = map[hashing.Flow]PeeledFlow{}
	for i := range flows {
		f := hashing.Flow(hashing.Word(seed, uint64(i)))
		key, _ := keyOf(f)
		one := PeeledFlow{Key: key, Whole: true}
		var sum float64
		for range int(min(5000, math.Pow(1-r.Float64(), -1/0.9))) {
			p, sent, delay := hashing.Packet(r.Uint64()), r.Int64N(1e9), 1000+r.Int64N(1e6)
			up.Update(f, p, sent)
			one.Sent++
			if r.Float64() < loss {
				one.Lost++
				one.Whole = false
				continue
			}
			down.Update(f, p, sent+delay)
			one.Received++
			sum += float64(delay)
		}
		if one.Whole {
			one.Mean = sum / float64(one.Sent)
		}
		truth[key] = one
	}
	return up, down, truth
}

// Up to the flows that it is for, a sketch gives back all of them: packets and
// losses exactly, means where nothing was lost, the slowest first.
func TestPeelIsComplete(t *testing.T) {
	for _, flows := range []int{180, 2100, 8900} {
		for _, loss := range []float64{0, 0.01} {
			c := KeyedConfig{Flows: flows}
			up, down, truth := keyedTraffic(t, c, flows, loss, uint64(flows))
			got, err := Peel(up, down)
			if err != nil || !got.Complete || got.LeftSent+got.LeftReceived != 0 || len(got.Flows) != len(truth) {
				t.Fatalf("%d of %d flows, complete %v, %v", len(got.Flows), len(truth), got.Complete, err)
			}
			for i, f := range got.Flows {
				want := truth[f.Key]
				mean := want.Mean
				want.Mean, f.Mean = 0, f.Mean-mean
				if math.Abs(f.Mean) > 1e-6*mean {
					t.Errorf("mean off by %v of %v", f.Mean, mean)
				}
				f.Mean = 0
				if f != want {
					t.Errorf("%+v, want %+v", f, want)
				}
				if i > 0 && got.Flows[i].Whole && got.Flows[i].Mean > got.Flows[i-1].Mean {
					t.Errorf("flow %d is slower than the one before", i)
				}
			}
		}
	}
}

// Beyond that, what it gives back is right, and it says that it is not all.
func TestPeelBeyondItsLimit(t *testing.T) {
	c := KeyedConfig{Flows: 4400}
	for _, flows := range []int{5500, 8000, 40_000} {
		up, down, truth := keyedTraffic(t, c, flows, 0.001, 5)
		got, err := Peel(up, down)
		if err != nil || got.Complete || got.LeftSent == 0 || len(got.Flows) >= flows {
			t.Errorf("%d flows: %d given back, complete %v, %d packets left, %v", flows, len(got.Flows), got.Complete, got.LeftSent, err)
		}
		for _, f := range got.Flows {
			if want := truth[f.Key]; f.Sent != want.Sent || f.Received != want.Received || f.Whole != want.Whole {
				t.Fatalf("%d flows: %+v, want %+v", flows, f, want)
			}
		}
	}
}

// The mean of two keys in a cell is no key that belongs there, even where the keys
// are neighbours: nothing is given back but flows that were there.
func TestPeelInventsNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	for range 300 {
		s := mustKeyed(t, KeyedConfig{Flows: 1})
		there := map[hashing.Flow]bool{}
		first := hashing.Flow(rng.Uint64())
		for i := range hashing.Flow(400) { // in any order, all too many for the sketch
			f := first + (2*i+1)<<(64-keyBits)
			key, _ := keyOf(f)
			there[key] = true
			s.Update(f, hashing.Packet(rng.Uint64()), 0)
		}
		flows, _ := s.peel()
		for key := range flows {
			if !there[key] {
				t.Fatalf("%#x was not there", key)
			}
		}
	}
	for a := range hashing.Flow(1000) { // the mean of two is elsewhere in the first row
		s := mustKeyed(t, KeyedConfig{Flows: 26_950})
		i, _, _ := s.places(a << 20)
		j, _, _ := s.places((a + 2) << 20)
		if i == j {
			t.Fatalf("neighbours %d and %d share a cell of the first row", a, a+2)
		}
	}
}

func TestKeyedCodecAndMerge(t *testing.T) {
	c := KeyedConfig{Identity: 7, Flows: 80}
	up, down, _ := keyedTraffic(t, c, 60, 0, 3)
	b := encode(t, up)
	if len(b) != c.EncodedSize() {
		t.Errorf("%d bytes, want %d", len(b), c.EncodedSize())
	}
	var back Keyed
	if err := back.UnmarshalBinary(b); err != nil || !bytes.Equal(encode(t, &back), b) || back.Config() != c {
		t.Errorf("%+v, %v", back.Config(), err)
	}
	for n := range b {
		if err := back.UnmarshalBinary(b[:n]); !errors.Is(err, estimate.ErrEncoding) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	beyond := bytes.Clone(b)
	beyond[5+8+16+4+16] = 0xff
	if err := back.UnmarshalBinary(reseal(beyond)); !errors.Is(err, estimate.ErrEncoding) {
		t.Errorf("keys beyond their modulus: %v", err)
	}
	// Two shards are one point.
	one, two, whole := mustKeyed(t, c), mustKeyed(t, c), mustKeyed(t, c)
	for i := range uint64(500) {
		f, p := hashing.Flow(hashing.Word(1, i%7)), hashing.Word(2, i)
		whole.Update(f, p, int64(i))
		if i%3 == 0 {
			one.Update(f, p, int64(i))
		} else {
			two.Update(f, p, int64(i))
		}
	}
	if err := one.Merge(two); err != nil || !bytes.Equal(encode(t, one), encode(t, whole)) {
		t.Errorf("shards differ from the whole: %v", err)
	}
	one.Reset()
	one.UpdateBatch([]hashing.Flow{1, 2}, []hashing.Packet{3, 4}, 5)
	two.Reset()
	two.Update(1, 3, 5)
	two.Update(2, 4, 5)
	if !bytes.Equal(encode(t, one), encode(t, two)) {
		t.Error("a batch differs from its packets")
	}
	one.Reset()
	if !bytes.Equal(encode(t, one), encode(t, mustKeyed(t, c))) {
		t.Error("Reset left something")
	}
	other := mustKeyed(t, KeyedConfig{Flows: 81})
	if err := one.Merge(other); !errors.Is(err, estimate.ErrMismatch) {
		t.Error(err)
	}
	if _, err := Peel(up, other); !errors.Is(err, estimate.ErrMismatch) {
		t.Error(err)
	}
	if _, err := Peel(one, mustKeyed(t, c)); !errors.Is(err, estimate.ErrNoSamples) {
		t.Error(err)
	}
	_ = down
}

func mustKeyed(t testing.TB, c KeyedConfig) *Keyed {
	t.Helper()
	s, err := NewKeyed(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The arithmetic of keys is that of whole numbers of any size.
func TestKeyArithmetic(t *testing.T) {
	prime := big.NewInt(keyPrime)
	r := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		a, b := r.Uint64N(keyPrime), r.Uint64N(keyPrime)
		want := new(big.Int).Mul(new(big.Int).SetUint64(a), new(big.Int).SetUint64(b))
		if got := multiplyKeys(a, b); got != want.Mod(want, prime).Uint64() {
			t.Fatalf("%d × %d is %d, want %d", a, b, got, want)
		}
		if a > 0 && multiplyKeys(a, invertKey(a)) != 1 {
			t.Fatalf("1/%d is %d", a, invertKey(a))
		}
		c := keyedCell{keys: a}
		c.add(0, 0, b)
		if want := (a + b) % keyPrime; c.keys != want {
			t.Fatalf("%d + %d is %d", a, b, c.keys)
		}
	}
}

func BenchmarkPeel(b *testing.B) {
	up, down, _ := keyedTraffic(b, KeyedConfig{Flows: 26_950}, 26_950, 0, 2)
	for b.Loop() {
		if got, err := Peel(up, down); err != nil || !got.Complete {
			b.Fatal(err)
		}
	}
}
