package rli

import (
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/hashing"
)

// TestTable applies the same random operations to a table and a map, with hashes that collide often, also at
// the end of the array. When the table is full, a new flow replaces the lightest.
func TestTable(t *testing.T) {
	c := DefaultConfig
	c.Flows = 12
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
		if r.count() != truth[f] {
			t.Fatalf("flow %#x has %d, want %d", uint64(f), r.count(), truth[f])
		}
		if r.count() == 0 && !table.claim(i, f) {
			if full++; len(truth) != c.Flows {
				t.Fatalf("full with %d flows", len(truth))
			}
			place, weight := table.lightest(f, 0)
			if place < 0 {
				continue
			}
			victim := table.records[place].flow
			if truth[victim] != weight {
				t.Fatalf("flow %#x weighs %d, want %d", uint64(victim), weight, truth[victim])
			}
			table.release(place)
			delete(truth, victim)
			i = table.find(f)
			table.claim(i, f)
		}
		table.records[i].tally++
		truth[f]++
		if table.used != len(truth) {
			t.Fatalf("%d in use, want %d", table.used, len(truth))
		}
	}
	if full < 1000 {
		t.Errorf("full only %d times", full)
	}
}

// TestShed: with more flows than there is room for, every packet is in one record, in one that was evicted, or
// shed, and the total has all of them.
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
	if k := r.Counts(); err != nil || total.N != 100 || r.flows.used != 10 || in+k.Shed+k.Evicted != 100 || k.Shed == 0 {
		t.Errorf("%+v, %v, %d flows with %d packets, %+v", total, err, r.flows.used, in, k)
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
