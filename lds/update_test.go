package lds

import (
	"bytes"
	"math/big"
	"math/rand/v2"
	"runtime/debug"
	"testing"

	"github.com/hoplag/hoplag/hashing"
)

var _ = debug.SetGCPercent(400) // tests make much that is soon garbage

// shapes are Configs that together take every path of the code: the unrolled one and the general one, with and
// without wrapping, sampling, odd rows.
func shapes() map[string]Config {
	base := Config{Rows: 4, Columns: 97, Spread: 1, Rates: [MaxRows]float64{1, 1, 1, 1}, Tolerance: 0.1, SumBits: 48, DigestBits: 16}
	with := func(change func(*Config)) Config { c := base; change(&c); return c }
	return map[string]Config{
		"plain":         base,
		"one row":       with(func(c *Config) { c.Rows, c.Rates = 1, [MaxRows]float64{1} }),
		"eight rows":    with(func(c *Config) { c.Rows, c.Rates = 8, [MaxRows]float64{1, 1, 1, 1, 1, 1, 1, 1} }),
		"spread":        with(func(c *Config) { c.Spread = 5 }),
		"spread is all": with(func(c *Config) { c.Columns, c.Spread = 7, 7 }),
		"banks":         with(func(c *Config) { c.Rates = [MaxRows]float64{1, 1, 0.1, 0.01} }),
		"sampled":       with(func(c *Config) { c.Spread, c.Rates = 5, [MaxRows]float64{1, 0.5, 0.1, 0.01} }),
		"three rows":    with(func(c *Config) { c.Rows, c.Rates = 3, [MaxRows]float64{0.7, 1, 0.3} }),
		"one column":    with(func(c *Config) { c.Columns = 1 }),
		"narrow":        with(func(c *Config) { c.SumBits, c.DigestBits, c.GreatestDelay = 33, 7, 1e6 }),
		"no digest":     with(func(c *Config) { c.DigestBits = 0 }),
	}
}

// passed is one packet at both points.
type passed struct {
	flow   hashing.Flow
	packet hashing.Packet
	sent   int64
	delay  int64
	lost   bool
}

// packets returns n scattered packets of some flows, sizes uneven.
func packets(seed uint64, n, flows int) []passed {
	r := rand.New(rand.NewPCG(seed, 1))
	out := make([]passed, n)
	for i := range out {
		f := r.IntN(r.IntN(flows) + 1)
		out[i] = passed{flow: hashing.Flow(hashing.Word(1, uint64(f))), packet: hashing.Packet(r.Uint64()),
			sent: r.Int64N(1e9), delay: 1000 + r.Int64N(1e6)}
	}
	return out
}

func fill(t testing.TB, c Config, stream []passed) (up, down *Sketch) {
	up, down = mustNew(t, c), mustNew(t, c)
	for _, p := range stream {
		up.Update(p.flow, p.packet, p.sent)
		if !p.lost {
			down.Update(p.flow, p.packet, p.sent+p.delay)
		}
	}
	return up, down
}

// skipShort leaves out the statistics of a single goroutine under the race detector.
func skipShort(t *testing.T) {
	if testing.Short() {
		t.Skip("statistics")
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func mustNew(_ testing.TB, c Config) *Sketch { return must(New(c)) }

// slowCell and slowSketch follow Fig. 5 to the letter, over maps.
type slowCell struct {
	S    int64
	N, D uint64
}

type slowSketch struct {
	Config
	cells map[[2]int]slowCell
}

// home takes the flow's word as a part of one, and multiplies it by the number of columns: the whole part is
// the even row's column, the rest is the part for the odd row.
func (s *slowSketch) home(i int, f hashing.Flow) int {
	rest := new(big.Int).SetUint64(uint64(f) * []uint64{1, 0xd1342543de82ef95, 0xaf251af3b0f025b5, 0xb564ef22ec7aece5}[i/2])
	whole := new(big.Int)
	for range 1 + i%2 {
		rest.Mul(rest, big.NewInt(int64(s.Columns)))
		whole.DivMod(rest, new(big.Int).Lsh(big.NewInt(1), 64), rest)
	}
	return int(whole.Int64())
}

func (s *slowSketch) update(p passed, t int64) {
	for i := range s.Rows {
		sampling := uint32(hashing.Mix(uint64(p.packet), MaxRows) >> 32)
		offset := hashing.Mix(uint64(p.packet), uint64(i/4)) >> (16 * (i % 4)) & 0xffff
		if float64(sampling) >= float64(hashing.Threshold(s.Rates[i])) {
			continue
		}
		at := [2]int{i, (s.home(i, p.flow) + int(offset)*s.Spread>>16) % s.Columns}
		c := s.cells[at]
		s.cells[at] = slowCell{c.S + t, c.N + 1, c.D + uint64(uint32(p.packet))}
	}
}

func TestUpdateIsFigure5(t *testing.T) {
	for name, c := range shapes() {
		slow, fast := &slowSketch{Config: c, cells: map[[2]int]slowCell{}}, mustNew(t, c)
		for _, p := range packets(1, 3000, 60) {
			slow.update(p, p.sent)
			fast.Update(p.flow, p.packet, p.sent)
		}
		for i, got := range fast.cells {
			want := slow.cells[[2]int{i / c.Columns, i % c.Columns}]
			if int64(got.sum) != want.S || uint64(got.count()) != want.N || uint32(got.digest()) != uint32(want.D) {
				t.Fatalf("%s: cell %d is %+v, want %+v", name, i, got, want)
			}
		}
	}
}

func TestMergedShardsAreOne(t *testing.T) {
	for name, c := range shapes() {
		t.Run(name, func(t *testing.T) {
			stream := packets(4, 2000, 50)
			whole, _ := fill(t, c, stream)
			r := rand.New(rand.NewPCG(4, 4))
			r.Shuffle(len(stream), func(i, j int) { stream[i], stream[j] = stream[j], stream[i] })
			merged := mustNew(t, c)
			for len(stream) > 0 {
				n := min(1+r.IntN(700), len(stream))
				shard, _ := fill(t, c, stream[:n])
				stream = stream[n:]
				if err := merged.Merge(shard); err != nil {
					t.Fatal(err)
				}
			}
			if !bytes.Equal(encode(t, whole), encode(t, merged)) {
				t.Error("merged shards differ from the whole")
			}
			if merged.Reset(); !bytes.Equal(encode(t, merged), encode(t, mustNew(t, c))) {
				t.Error("after Reset it is not as if new")
			}
		})
	}
}

// Pairs of flows that share a cell of one row share those of another by chance alone, within 5 deviations of a
// Poisson variable: one of 28 is beyond once in 60,000 runs.
func TestRowsCollideIndependently(t *testing.T) {
	const columns, flows = 499, 30_000
	pairs := func(cell func(hashing.Flow) uint64) (n float64) {
		in := map[uint64]float64{}
		for i := range uint64(flows) {
			c := cell(hashing.Flow(hashing.Word(9, i)))
			n += in[c]
			in[c]++
		}
		return n
	}
	row := func(r int) func(hashing.Flow) uint64 {
		return func(f hashing.Flow) uint64 { return home(r, f, columns) }
	}
	collide := func(a, b func(hashing.Flow) uint64) bool {
		both, expected := pairs(func(f hashing.Flow) uint64 { return a(f)*columns + b(f) }), pairs(a)/columns
		return sq(both-expected) > 25*expected
	}
	for a := range MaxRows {
		for b := range a {
			if collide(row(a), row(b)) {
				t.Errorf("rows %d and %d collide together", a, b)
			}
		}
	}
	if !collide(row(0), func(f hashing.Flow) uint64 { return (home(0, f, columns) + 31) % columns }) { // the control
		t.Error("the check does not notice rows that are rotations of each other")
	}
}
