package lost

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/areas"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
)

const unit = 1e8

func someTrails() []areas.Trail {
	return []areas.Trail{
		{Cell: 7, From: 3 * unit, Until: 5 * unit, Steps: []areas.TrailStep{
			{End: 4 * unit, Sent: 3, Outstanding: 1, Digest: 1 << 31}, {End: 5 * unit, Outstanding: 1, Digest: 9},
		}},
		{Cell: 7, From: 9 * unit, Until: 2 * unit, Open: true, Steps: []areas.TrailStep{{End: 10 * unit, Sent: 2, Outstanding: 1, Digest: 5}}},
		{Cell: 99, From: -2 * unit, Until: unit, Steps: []areas.TrailStep{{End: 20 * unit, Sent: 1 << 20, Outstanding: math.MaxUint32}}},
	}
}

func someNames() Names {
	return Names{Names: []Name{
		{Trail: 0, Step: 1, ID: 1, Packet: hashing.Packet(hashing.Word(1, 1)), Sent: 4*unit + 7},
		{Trail: 1, Step: 0, ID: 1 << 63, Packet: 1 << 63, Sent: 8*unit + 1},
		{Trail: 2, Step: 0, ID: 5, Packet: 5, Sent: 7, Repeated: true},
	}}
}

func hash(x uint64) hashing.Packet { return hashing.Packet(hashing.Word(1, x)) }

func TestCodec(t *testing.T) {
	trails, names := someTrails(), someNames()
	data := AppendTrails(nil, trails, unit)
	got, err := DecodeTrails(data, unit)
	if diff := cmp.Diff(trails, got); diff != "" || err != nil {
		t.Errorf("trails: %v, %s", err, diff)
	}
	encoded := names.Append(nil, trails)
	all, err := DecodeNames(encoded, trails, hash)
	if diff := cmp.Diff(names, all); diff != "" || err != nil {
		t.Errorf("names: %v, %s", err, diff)
	}
	for i := range data {
		got, err := DecodeTrails(data[:i], unit)
		if err != nil && !errors.Is(err, estimate.ErrEncoding) || err == nil && len(got) >= len(trails) {
			t.Errorf("%d bytes of trails: %v", i, err)
		}
	}
	for i := range encoded {
		got, err := DecodeNames(encoded[:i], trails, hash)
		if err != nil && !errors.Is(err, estimate.ErrEncoding) || len(got.Names) >= len(names.Names) {
			t.Errorf("%d bytes of names: %v", i, err)
		}
	}
}

// Whatever bytes come, decoding ends without a panic and takes little more room
// than they do, and what it accepts can be answered within the budget.
func FuzzDecode(f *testing.F) {
	names := someNames()
	f.Add(AppendTrails(nil, someTrails(), unit), names.Append(nil, someTrails()))
	config := lda.Config{Banks: [4]lda.Bank{{Rows: 128}}, SumBits: 64, DigestBits: 32}
	f.Fuzz(func(t *testing.T, question, answer []byte) {
		trails, err := DecodeTrails(question, unit)
		if err != nil {
			return
		}
		if again, err := DecodeTrails(AppendTrails(nil, trails, unit), unit); err != nil || !cmp.Equal(again, trails) {
			t.Errorf("%+v comes back as %+v, %v", trails, again, err)
		}
		if finder, err := NewFinder(config, trails); err == nil {
			for i := range uint64(100) {
				finder.Offer(hash(i), i, int64(i)*unit/10)
			}
			finder.Names(1000)
		}
		if all, err := DecodeNames(answer, trails, hash); err == nil {
			all.Lost(config, trails)
		}
	})
}

// Where no set has the level, one fits by chance as often as the package says: once for 2^16 sets tried.
func TestFalseNames(t *testing.T) {
	const trials, among, n, bits = 40_000, 12, 2, 16
	random := rand.New(rand.NewPCG(27, 3))
	config := lda.Config{Banks: [4]lda.Bank{{Rows: 1}}, SumBits: 64, DigestBits: bits}
	wrong, refused := 0, 0
	for range trials {
		step := areas.TrailStep{End: unit, Sent: among, Outstanding: n, Digest: random.Uint32() & (1<<bits - 1)}
		trail := areas.Trail{Until: unit, Steps: []areas.TrailStep{step}}
		all := make([]candidate, among)
		for i := range all {
			all[i] = candidate{digest: random.Uint32() & (1<<bits - 1), packet: hashing.Packet(i), sent: int64(i)}
		}
		w := walker{budget: Budget}
		w.begin(all, config, 0)
		var names []Name
		if w.follow(0, &trail, &names); len(names) == 0 {
			refused++
		}
		w.begin(all, config, 0)
		w.most = math.Inf(1) // the control: no bound
		if w.follow(0, &trail, &names); len(names) > 0 {
			wrong++
		}
	}
	want := trials * sets(among, n) / (1 << bits)
	if far := 5 * math.Sqrt(want); math.Abs(float64(wrong)-want) > far || refused != trials {
		t.Errorf("%d false without the bound, want %.0f ± %.0f; %d of %d refused with it", wrong, want, far, refused, trials)
	}
	if most := MostChance * (1 << 32); sets(93, 2) > most || sets(94, 2) < most {
		t.Errorf("%v sets are allowed", most)
	}
}

// Packets of one hash are named as often as they are outstanding, and said to be repeated; no search takes more than its budget.
func TestRepeatsAndBudget(t *testing.T) {
	config := lda.Config{Banks: [4]lda.Bank{{Rows: 1}}, SumBits: 64, DigestBits: 32}
	packets := []hashing.Packet{hash(1), hash(2), hash(1), hash(3)}
	trail := areas.Trail{Until: unit, Steps: []areas.TrailStep{{End: unit, Sent: 4, Outstanding: 2}}}
	for _, p := range []hashing.Packet{hash(1), hash(3)} {
		trail.Steps[0].Digest += digest(&config, p)
	}
	for _, budget := range []int{1, Budget} {
		f, err := NewFinder(config, []areas.Trail{trail})
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range packets {
			f.Offer(p, uint64(p), int64(i))
		}
		all := f.Names(budget)
		if budget == 1 {
			if len(all.Names) > 0 {
				t.Errorf("without budget: %+v", all)
			}
			continue
		}
		want := Names{Spent: all.Spent, Names: []Name{
			{ID: uint64(hash(1)), Packet: hash(1), Repeated: true}, {ID: uint64(hash(3)), Packet: hash(3), Sent: 3},
		}}
		if diff := cmp.Diff(want, all); diff != "" {
			t.Error(diff)
		}
		if lost := all.Lost(config, []areas.Trail{trail}); len(lost) != 1 {
			t.Errorf("%d taken out, want the one that is not repeated", len(lost))
		}
	}
}

// A Memory holds the packets that were sent last, as many as it may, and grows only as far as it must.
func TestMemory(t *testing.T) {
	for _, c := range []struct{ keep, want int }{{math.MaxInt, 1000}, {300, 512}, {0, 256}} {
		m := NewMemory(1000, int64(c.keep))
		for i := range 5000 {
			m.Update(uint64(i), i%2 == 1, int64(i))
		}
		trail := areas.Trail{Steps: []areas.TrailStep{{End: 5000}}}
		f, err := NewFinder(lda.Config{Banks: [4]lda.Bank{{Rows: 1}}, SumBits: 64}, []areas.Trail{trail})
		if err != nil {
			t.Fatal(err)
		}
		m.Offer(f, func(number uint64) hashing.Packet { return hashing.Packet(number + 1<<32) })
		seen := map[uint64]bool{}
		for _, x := range f.offered[0] {
			seen[x.id] = true
			if x.sent != int64(x.id) || (x.packet != hashing.Packet(x.id)) != (x.id%2 == 1) || int(x.id) < 5000-c.want {
				t.Errorf("%+v", x)
			}
		}
		if len(seen) != c.want {
			t.Errorf("%d remembered, want %d", len(seen), c.want)
		}
	}
	m := NewMemory(1000, math.MaxInt64)
	for range 1000 {
		m.Update(1, true, 2)
	}
	if n := testing.AllocsPerRun(2000, func() { m.Update(1, true, 2) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
