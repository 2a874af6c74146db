package rli

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// TestTable does the same to a table and a map, at random, with hashes that
// collide much, at the end of the array too.
func TestTable(t *testing.T) {
	c := DefaultConfig
	c.Flows, c.Buckets = 12, 2
	table := newTable(&c, [2]uint64{})
	if len(table.records) != 16 {
		t.Fatalf("%d places", len(table.records))
	}
	truth := map[hashing.Flow]uint64{}
	random := rand.New(rand.NewPCG(1, 2))
	full := 0
	for range 100000 {
		f := hashing.Flow(random.Uint64N(3)<<32 | random.Uint64N(5) + 12)
		i := table.find(f)
		r := &table.records[i]
		if r.count() != truth[f] || uint64(table.histogram(i)[1]) != truth[f] {
			t.Fatalf("flow %#x has %d, want %d", uint64(f), r.count(), truth[f])
		}
		switch {
		case r.count() > 0 && random.IntN(3) == 0:
			table.remove(i)
			delete(truth, f)
		case r.count() == 0 && !table.claim(i, f):
			full++
			if len(truth) != c.Flows {
				t.Fatalf("full with %d flows", len(truth))
			}
		default:
			r.tally++
			table.histogram(i)[1]++
			truth[f]++
		}
		if table.used != len(truth) {
			t.Fatalf("%d in use, want %d", table.used, len(truth))
		}
	}
	if full == 0 {
		t.Error("never full")
	}
}

// TestWide holds the 128-bit sums to floating point and to identities.
func TestWide(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 10000 {
		x, y := int64(random.Uint64())>>random.IntN(64), int64(random.Uint64())>>random.IntN(64)
		a := product(x, y)
		if a != product(y, x) {
			t.Fatalf("%d·%d depends on the order", x, y)
		}
		got, want := a.float(), float64(x)*float64(y)
		if want < 0 {
			b := product(-x, y)
			b.add(a)
			if b != (wide{}) {
				t.Fatalf("%d·%d is not the negative of its negative", x, y)
			}
		} else if math.Abs(got-want) > 1e-15*want {
			t.Fatalf("%d·%d is %v", x, y, got)
		}
	}
}

// TestShift: sums of shifted numbers are the shifted sums.
func TestShift(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 1000 {
		step := int64(random.Uint64()) >> (16 + random.IntN(40))
		var plain, moved record
		for range 1 + random.IntN(20) {
			x := int64(random.Uint64()) >> (20 + random.IntN(40))
			for r, x := range map[*record]int64{&plain: x, &moved: x + step} {
				r.tally++
				r.sum += x
				r.squares.add(product(x, x))
			}
		}
		plain.shift(step)
		if plain != moved {
			t.Fatalf("%+v, want %+v", plain, moved)
		}
	}
}

// TestExpire gives records over by age and silence, and leaves the others.
func TestExpire(t *testing.T) {
	c := DefaultConfig
	c.Method, c.Buffer, c.Flows = Left, 0, 100
	c.Inactive, c.Active = 1000, 5000
	r, err := NewReceiver(c)
	if err != nil {
		t.Fatal(err)
	}
	r.Reference(ReferencePacket{}, 0)
	for now := int64(0); now <= 6000; now += 500 {
		r.Update(1, 100, now) // old at 6,000
		if now >= 4000 {
			r.Update(2, 100, now)
		}
		if now <= 2000 {
			r.Update(hashing.Flow(10+now), 100, now) // silent
		}
	}
	r.Update(3, 100, 5500)
	var due []hashing.Flow
	for f, res := range r.Expire(6000) {
		due = append(due, f)
		if again, err := r.Estimate(f); err != nil || again != res {
			t.Errorf("flow %d: %+v while it is given over as %+v", f, again, res)
		}
	}
	slices.Sort(due)
	if want := []hashing.Flow{1, 10, 510, 1010, 1510, 2010}; !slices.Equal(due, want) {
		t.Errorf("due %v, want %v", due, want)
	}
	if r.Flows() != 2 {
		t.Errorf("%d flows left", r.Flows())
	}
	for range r.Expire(7000) {
		break
	}
	if r.Flows() != 1 {
		t.Errorf("%d flows left after one more", r.Flows())
	}
	for range r.Expire(6000) {
		t.Error("more are due")
	}
}

// TestExpireAll empties a table in which records move as others are removed.
func TestExpireAll(t *testing.T) {
	c := DefaultConfig
	c.Method, c.Buffer, c.Flows, c.Inactive = Left, 0, 3000, 1
	r, err := NewReceiver(c)
	if err != nil {
		t.Fatal(err)
	}
	r.Reference(ReferencePacket{}, 0)
	random := rand.New(rand.NewPCG(7, 8))
	want := map[hashing.Flow]bool{}
	for len(want) < c.Flows {
		f := hashing.Flow(random.Uint64())
		want[f] = true
		r.Update(f, 100, int64(len(want)%2))
	}
	got := map[hashing.Flow]bool{}
	for f := range r.Expire(1) {
		if got[f] {
			t.Fatal("a flow twice")
		}
		got[f] = true
	}
	if len(got) != c.Flows/2 || r.Flows() != c.Flows/2 {
		t.Errorf("%d due, %d left", len(got), r.Flows())
	}
	for f := range want {
		if _, err := r.Estimate(f); (err == nil) == got[f] {
			t.Fatalf("flow %#x: %v", uint64(f), err)
		}
	}
}

// TestShed: of more flows than there is room for, every packet is in one record,
// in one that gave way, or shed, and the total has those of all.
func TestShed(t *testing.T) {
	c := DefaultConfig
	c.Method, c.Buffer, c.Flows = Left, 0, 10
	r, err := NewReceiver(c)
	if err != nil {
		t.Fatal(err)
	}
	r.Reference(ReferencePacket{}, 0)
	for i := range 100 {
		r.Update(hashing.Flow(i%20), 100, int64(i))
	}
	total, err := r.Total()
	in := uint64(0)
	flow := hashing.Flow(0)
	for f, res := range r.All() {
		in, flow = in+res.N, f
	}
	if k := r.Counts(); err != nil || total.N != 100 || r.Flows() != 10 || in+k.Shed+k.Evicted != 100 || k.Shed == 0 {
		t.Errorf("%+v, %v, %d flows with %d packets, %+v", total, err, r.Flows(), in, k)
	}
	before, _ := r.Estimate(flow)
	shed := r.Counts().Shed
	other, _ := NewReceiver(c)
	other.Reference(ReferencePacket{}, 0)
	other.Update(flow, 100, 1)
	other.Update(50, 100, 1)
	if err := r.Merge(other); err != nil || r.Counts().Shed != shed+1 {
		t.Errorf("%v, %+v after merging", err, r.Counts())
	}
	if got, err := r.Estimate(flow); err != nil || got.N != before.N+1 {
		t.Errorf("%+v, %v", got, err)
	}
}

// falseAlarm is the chance that a statistical test fails without reason.
const falseAlarm = 1e-6

// TestSample: every flow is measured wholly or not at all, and as many as
// Sample says.
func TestSample(t *testing.T) {
	c := DefaultConfig
	c.Method, c.Buffer, c.Flows, c.Sample = Left, 0, 10000, 0.25
	r, err := NewReceiver(c)
	if err != nil {
		t.Fatal(err)
	}
	r.Reference(ReferencePacket{}, 0)
	random := rand.New(rand.NewPCG(9, 10))
	const flows = 10000
	for range flows {
		f := hashing.Flow(random.Uint64())
		r.Update(f, 100, 1)
		r.Update(f, 100, 2)
	}
	for _, res := range r.All() {
		if res.N != 2 {
			t.Fatalf("%+v", res)
		}
	}
	in := estimate.ProportionInterval(uint64(r.Flows()), flows, 1-falseAlarm)
	if !in.Contains(c.Sample) {
		t.Errorf("%d of %d flows", r.Flows(), flows)
	}
	if in.Contains(c.Sample * 1.2) {
		t.Error("a share that is off by a fifth would pass")
	}
	if got := r.Counts().Unsampled; got != 2*uint64(flows-r.Flows()) {
		t.Errorf("%d packets not sampled", got)
	}
}

// TestHold: a record begins with each packet at the probability Hold, and
// takes all that come after.
func TestHold(t *testing.T) {
	c := DefaultConfig
	c.Method, c.Buffer, c.Flows, c.Hold = Left, 0, 10000, 0.1
	r, err := NewReceiver(c)
	if err != nil {
		t.Fatal(err)
	}
	r.Reference(ReferencePacket{}, 0)
	random := rand.New(rand.NewPCG(11, 12))
	const flows, packets = 10000, 5
	held := uint64(0)
	for range flows {
		f := hashing.Flow(random.Uint64())
		for i := range packets {
			r.Update(f, 100, int64(i))
		}
		if res, err := r.Estimate(f); err == nil {
			held += res.N
			if res.First != packets-int64(res.N) {
				t.Fatalf("%+v does not hold all packets after its first", res)
			}
		}
	}
	in := estimate.ProportionInterval(uint64(r.Flows()), flows, 1-falseAlarm)
	want := 1 - math.Pow(1-c.Hold, packets)
	if !in.Contains(want) {
		t.Errorf("%d of %d flows", r.Flows(), flows)
	}
	if in.Contains(1-math.Pow(1-c.Hold, packets-1)) || in.Contains(1-math.Pow(1-c.Hold, packets+1)) {
		t.Error("a draw more or less for each flow would pass")
	}
	if got := r.Counts().Unheld; got != flows*packets-held {
		t.Errorf("%d packets not held, %d held", got, held)
	}
}

// TestTags: flows that are close in the table, or sampled, have tags as
// different as others: of 128, a thousand flows miss none that matters.
func TestTags(t *testing.T) {
	c := DefaultConfig
	table := newTable(&c, [2]uint64{0x243f6a8885a308d3, 0x13198a2e03707344})
	for name, flow := range map[string]func(i uint64) hashing.Flow{
		"high bits alike": func(i uint64) hashing.Flow { return hashing.Flow(hashing.Mix(i, 1) >> 8) },
		"low bits alike":  func(i uint64) hashing.Flow { return hashing.Flow(hashing.Mix(i, 1) << 16) },
	} {
		tags := map[uint64]int{}
		for i := range uint64(1000) {
			tags[tag(table.mix(flow(i)))]++
		}
		// Each is missed with probability e^-7.8, and 9 of them next to never.
		if len(tags) < 120 {
			t.Errorf("%s: %d tags", name, len(tags))
		}
		for tag := range tags {
			if tag < 0x80 || tag > 0xff {
				t.Errorf("%s: tag %#x", name, tag)
			}
		}
	}
}
