package lda

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/areas"
	"github.com/hoplag/hoplag/hashing"
)

func TestConfigSaysWhatIsWrong(t *testing.T) {
	one := func(b Bank) [maxBanks]Bank { return [maxBanks]Bank{b} }
	for _, c := range []struct {
		config Config
		want   string
	}{
		{Config{}, "Banks[0].Rows is 0"},
		{Config{Banks: one(Bank{Rows: 1000}), SumBits: 40}, "Banks[0].Rows is 1000, want a power of two"},
		{Config{Banks: one(Bank{Rows: -4}), SumBits: 40}, "Banks[0].Rows is -4"},
		{Config{Banks: one(Bank{Rows: 2 * maxRows}), SumBits: 40}, "Banks[0].Rows is 33554432"},
		{Config{Banks: one(Bank{Rows: 1, Shift: 33}), SumBits: 40}, "Banks[0].Shift is 33, want 0 to 32"},
		{Config{Banks: [maxBanks]Bank{{Rows: 8}, {}, {Rows: 8, Shift: 4}}, SumBits: 40}, "Banks[2].Rows is 8, want 0"},
		{Config{Banks: [maxBanks]Bank{{Rows: 8, Shift: 2}, {Rows: 8, Shift: 2}}, SumBits: 40}, "more than Banks[0].Shift, which is 2"},
		{Config{Banks: [maxBanks]Bank{{Rows: 8}, {Shift: 2}}, SumBits: 40}, "Banks[1].Rows is 0"},
		{Config{Banks: one(Bank{Rows: 8})}, "SumBits is 0, want 1 to 64"},
		{Config{Banks: one(Bank{Rows: 8}), SumBits: 65}, "SumBits is 65"},
		{Config{Banks: one(Bank{Rows: 8, Shift: 6}), SumBits: 40, DigestBits: 33}, "DigestBits is 33, want 0 to 32"},
	} {
		_, err := New(c.config)
		if !errors.Is(err, estimate.ErrConfig) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want ErrConfig that says %q", c.config, err, c.want)
		}
	}
	for _, c := range configs() {
		if _, err := New(c); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestMismatch(t *testing.T) {
	a := mustNewFor(t, twoBanks(1))
	b := mustNewFor(t, twoBanks(2))
	a.Update(1<<40, 1)
	before, _ := a.MarshalBinary()
	for name, f := range map[string]func() error{
		"Merge":    func() error { return a.Merge(b) },
		"Estimate": func() error { _, err := Estimate(a, b); return err },
	} {
		if err := f(); !errors.Is(err, estimate.ErrMismatch) {
			t.Errorf("%s of two seeds: %v, want ErrMismatch", name, err)
		}
	}
	if after, _ := a.MarshalBinary(); string(after) != string(before) {
		t.Error("a refused Merge changed its receiver")
	}
}

// Shards merged are one; the order of packets is nothing; a batch is its packets one by one; what is decoded is what was encoded.
func TestOrderAndShards(t *testing.T) {
	for _, c := range configs() {
		packets := traffic(3, c.Identity, 2000, 0.01, 0)
		want, _ := pair(t, c, packets, same)
		shards := [3]*Aggregator{mustNewFor(t, c), mustNewFor(t, c), mustNewFor(t, c)}
		rng := rand.New(rand.NewPCG(5, 5))
		for _, i := range rng.Perm(len(packets)) {
			shards[rng.IntN(3)].Update(packets[i].id, packets[i].sent)
		}
		for _, s := range shards[1:] {
			if err := shards[0].Merge(s); err != nil {
				t.Fatal(err)
			}
		}
		assertSame(t, "merged", shards[0], want)

		data, err := want.AppendBinary([]byte("kept"))
		var back Aggregator
		if err = errors.Join(err, back.UnmarshalBinary(data[len("kept"):])); err != nil {
			t.Fatal(err)
		}
		back.Update(99, 7) // what is decoded goes on counting
		want.Update(99, 7)
		assertSame(t, "decoded and updated", &back, want)

		one, batch := mustNewFor(t, c), mustNewFor(t, c)
		var ids []hashing.Packet
		for _, p := range packets {
			one.Update(p.id, 12345)
			ids = append(ids, p.id)
		}
		batch.UpdateBatch(ids[:7], 12345)
		batch.UpdateBatch(ids[7:], 12345)
		batch.UpdateBatch(nil, 1)
		assertSame(t, "batch", batch, one)

		one.Reset()
		assertSame(t, "reset", one, mustNewFor(t, c))
	}
}

// A Sparse is what an Aggregator is, whichever way its packets come, and empty after Reset.
func TestSparse(t *testing.T) {
	c := twoBanks(1)
	want, _ := pair(t, c, traffic(7, c.Identity, 300, 0, 0), same)
	s, _ := NewSparse(c)
	for name, fill := range map[string]func(){
		"Update": func() {
			feed(traffic(7, c.Identity, 300, 0, 0), s.Update, func(hashing.Packet, int64) {})
		},
		"Merge":       func() { s.Merge(want) },
		"AddCells":    func() { s.AddCells(want.AppendCells(nil)) },
		"AddPacked":   func() { s.AddPacked(want.AppendPacked(nil, 0)) },
		"UpdateBatch": func() { s.UpdateBatch(nil, 5); s.Merge(want) },
	} {
		other, _ := NewSparse(c)
		fill()
		other.Merge(&s.Aggregator)
		assertSame(t, name, &other.Aggregator, want)
		if s.Reset(); string(other.AppendPacked(nil, 5)) != string(want.AppendPacked(nil, 5)) || s.Packets() != 0 {
			t.Errorf("%s: packed otherwise, or %d packets are left", name, s.Packets())
		}
	}
}

func assertSame(t *testing.T, what string, got, want *Aggregator) {
	t.Helper()
	a, _ := got.MarshalBinary()
	b, _ := want.MarshalBinary()
	if string(a) != string(b) {
		t.Errorf("%s: %+v differs", what, got.Config())
	}
}

func TestNoAllocation(t *testing.T) {
	up, down := pair(t, DefaultConfig, traffic(1, 0, 3000, 0.01, 0), same)
	sent, received := pair(t, DefaultConfig, traffic(2, 0, 30_000, 0.01, 0.001), same) // some lost, some joined
	buf := make([]byte, 0, up.config.EncodedSize())
	packed := sent.AppendPacked(nil, 1e18)
	ids := []hashing.Packet{1, 2, 3}
	var r Result
	for name, f := range map[string]func(){
		"Update":       func() { up.Update(5, 6) },
		"UpdateBatch":  func() { up.UpdateBatch(ids, 6) },
		"Merge":        func() { up.Merge(up) },
		"Reset":        func() { up.Reset() },
		"Estimate":     func() { r, _ = Estimate(sent, received) },
		"intervals":    func() { r.MeanInterval(0.98); r.DeviationInterval(0.98) },
		"AppendBinary": func() { buf, _ = up.AppendBinary(buf[:0]) },
		"AppendPacked": func() { buf = sent.AppendPacked(buf[:0], 1e18) },
		"AddPacked":    func() { down.AddPacked(packed) },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// Once an Accumulator has room for what is on its way, a second's comparisons and its estimate allocate nothing.
func TestAccumulatorAllocatesNothing(t *testing.T) {
	run := cutTraffic(t, 2, 530, 1000, func(*rand.Rand) float64 { return 2e6 }, 0) // a fiftieth crosses each cut
	total, k, failed := accumulate(t, new(cutRun)), 0, error(nil)
	second := func() {
		for range 10 {
			run.add(t, total, k)
			k++
		}
		total.End()
		total.Estimate() // tells it how long packets take
		for total.Settled() {
			_, err := total.Estimate()
			failed = errors.Join(failed, err)
			total.Reset()
		}
	}
	for range 30 {
		second()
	}
	if n := testing.AllocsPerRun(20, second); n != 0 || failed != nil {
		t.Errorf("%v allocations, %v", n, failed)
	}
}

// Cells that something else keeps, by the layout that AddCells documents, make the same aggregator as Update.
func TestAddCells(t *testing.T) {
	config := Config{Banks: [maxBanks]Bank{{Rows: 64, Shift: 1}, {Rows: 32, Shift: 4}}, SumBits: 64, DigestBits: 16}
	updated, added := mustNewFor(t, config), mustNewFor(t, config)
	words := make([]uint64, config.MemorySize()/8)
	random := rand.New(rand.NewPCG(1, 2))
	for range 10000 {
		p, now := random.Uint64(), random.Int64()
		updated.Update(hashing.Packet(p), now)
		cell := config.Cell(hashing.Packet(p))
		if cell < 0 {
			cell = 64 + 32 + int(p%16)
		}
		words[2*cell] += uint64(now)
		words[2*cell+1] += p>>32<<32 + 1
	}
	if err := added.AddCells(words[2:]); !errors.Is(err, estimate.ErrMismatch) {
		t.Errorf("too few words: error %v, want ErrMismatch", err)
	}
	assertSame(t, "refused", added, mustNewFor(t, config))
	if err := added.AddCells(words); err != nil {
		t.Fatal(err)
	}
	assertSame(t, "added", added, updated)
	if !slices.Equal(added.AppendCells(nil), words) {
		t.Error("the cells come back changed")
	}
}

// However many packets were alone, a sample of them takes the room of those that are kept.
func TestSamplesKeepTheirRoom(t *testing.T) {
	var r reservoir
	for range 300 {
		r.add(slices.Repeat([]areas.Alone{{Delay: 1e6, Weight: 1}}, 1500), 4000)
	}
	if n := cap(r.delays); n > 2*reservoirSize || len(r.delays) < reservoirSize/2 {
		t.Errorf("room for %d of %d samples, want at most %d", n, len(r.delays), 2*reservoirSize)
	}
}
