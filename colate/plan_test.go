package colate

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// What is planned is what is seen: bits a packet, and counters without a loss.
func TestPlan(t *testing.T) {
	for _, d := range []Demand{
		{Rate: 700, BytesADay: 4e7, Loss: 0.01},
		{Rate: 700, BytesADay: 1e8, Loss: 0.05, FlowRate: 200},
		{Rate: 700, BytesADay: 3e8},
		{Rate: 2000, BytesADay: 1e8, MemoryBits: 64 * 3000},
	} {
		f, err := Plan(d)
		if err != nil {
			t.Fatal(err)
		}
		r, err := New(f.Config)
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(1, 1))
		packets := d.Rate * float64(f.Config.Period) / 1e9
		lost := make([]bool, f.Config.Counters)
		chooser := f.Config.chooser()
		for range int(packets) {
			flow, p := hashing.Flow(rng.Uint64()), hashing.Packet(rng.Uint64())
			r.Update(flow, p, rng.Int64N(f.Config.Period))
			if rng.Float64() < d.Loss {
				lost[position(f.Config.Identity, flow, chooser.choice(p), uint64(f.Config.Counters))] = true
			}
		}
		usable := 1.0
		for _, l := range lost {
			if l {
				usable -= 1 / float64(len(lost))
			}
		}
		bits := float64(8*len(encoded(t, r))) / packets
		t.Logf("%+v: %d counters, period %v s, %.2f bits a packet (planned %.2f), usable %.3f (%.3f)",
			d, f.Config.Counters, float64(f.Config.Period)/1e9, bits, f.BitsPerPacket, usable, f.Usable)
		if math.Abs(bits/f.BitsPerPacket-1) > 0.1 || math.Abs(usable-f.Usable) > 0.05 || f.BytesADay > d.BytesADay*1.01 {
			t.Errorf("%+v: %+v, seen %.2f bits a packet, %.3f usable", d, f, bits, usable)
		}
	}
	for name, d := range map[string]Demand{
		"no rate":       {BytesADay: 1e9},
		"no bytes":      {Rate: 1000},
		"a larger flow": {Rate: 1000, BytesADay: 1e9, FlowRate: 2000},
		"all lost":      {Rate: 1000, BytesADay: 1e9, Loss: 1},
		"too few bytes": {Rate: 1000, BytesADay: 1},
		"negative bits": {Rate: 1000, BytesADay: 1e9, MemoryBits: -1},
	} {
		if _, err := Plan(d); !errors.Is(err, estimate.ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Packets on their way need more counters than the bytes pay for.
	if f, err := Plan(Demand{Rate: 70_000, BytesADay: 4e9, Delay: 2e9}); err != nil || f.OnTheWay > 2 || f.OnTheWay < 0.1 {
		t.Errorf("2 s of delay: %+v, %v", f, err)
	}
	if _, err := Plan(Demand{Rate: 70_000, BytesADay: 4e9, Delay: 60e9}); !errors.Is(err, estimate.ErrConfig) {
		t.Errorf("a minute of delay: %v", err)
	}
	// Samples take the bytes that are there.
	f, err := Plan(Demand{Rate: 700, BytesADay: 4e7, NoRecords: true})
	if err != nil {
		t.Fatal(err)
	}
	r, _ := New(f.Config)
	rng := rand.New(rand.NewPCG(2, 2))
	for range 700 * 60 {
		r.Update(hashing.Flow(rng.Uint64()), hashing.Packet(rng.Uint64()), rng.Int64N(60e9))
	}
	if bits := float64(8*len(encoded(t, r))) / (700 * 60); math.Abs(bits/f.BitsPerPacket-1) > 0.15 || f.BytesADay > 4e7 {
		t.Errorf("%+v; seen %.2f bits a packet", f, bits)
	}
	// Losses in a large flow's counters ask for a shorter period.
	large, err := Plan(Demand{Rate: 10_000, BytesADay: 1e9, Loss: 0.01, FlowRate: 3000})
	if err != nil || large.Config.Period > 10e9 || large.UsableLargest < 0.5 {
		t.Errorf("%+v, %v", large, err)
	}
}
