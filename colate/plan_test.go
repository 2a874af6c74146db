package colate

import (
	"errors"
	"math"
	"testing"

	"github.com/hoplag/hoplag/estimate"
)

// What is planned is what is seen: bits a packet, of counters and of samples. A busy minute does not halve the samples.
func TestPlan(t *testing.T) {
	for _, d := range []Demand{
		{Rate: 700, BytesADay: 4e7},
		{Rate: 700, BytesADay: 6e7},
		{Rate: 700, BytesADay: 3e8},
		{Rate: 700, BytesADay: 4e7, NoRecords: true},
		{Rate: 100, BytesADay: 5e6},
		{Rate: 1, BytesADay: 1e6},
	} {
		c, err := Plan(d)
		if err != nil {
			t.Fatal(err)
		}
		packets, planned := d.Rate*float64(c.Period)/1e9, c.BitsPerPacket(d.Rate)
		bits := float64(8*len(encoded(t, crowded(t, c, int(packets))))) / packets
		if math.Abs(bits/planned-1) > 0.15 || planned*d.Rate*86400/8 > d.BytesADay*1.01 {
			t.Errorf("%+v: %.2f bits a packet planned, %.2f seen", d, planned, bits)
		} else if crowded(t, c, int(1.5*packets)).limit != c.limit() {
			t.Errorf("%+v: a busy minute halves the samples", d)
		}
	}
	for name, d := range map[string]Demand{
		"no rate":        {BytesADay: 1e9},
		"no bytes":       {Rate: 1000},
		"too few bytes":  {Rate: 1000, BytesADay: 1},
		"negative delay": {Rate: 1000, BytesADay: 1e9, Delay: -1},
		// Packets on their way need more counters than the bytes pay for.
		"a minute of delay": {Rate: 70_000, BytesADay: 4e9, Delay: 60e9},
	} {
		if _, err := Plan(d); !errors.Is(err, estimate.ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Plan(Demand{Rate: 70_000, BytesADay: 4e9, Delay: 2e9}); err != nil {
		t.Errorf("2 s of delay: %v", err)
	}
}

// What cannot be asked is kept with a warning.
func TestOverloaded(t *testing.T) {
	for name, c := range map[string]struct {
		packets int
		delay   int64
		change  func(*Config)
		warns   bool
	}{
		"few packets":             {packets: 5000},
		"many on their way":       {packets: 5000, delay: 60e9, warns: true},
		"many packets":            {packets: 100_000, change: func(c *Config) { c.CountBits = 6 }, warns: true},
		"narrow sums":             {packets: 5000, change: func(c *Config) { c.Bits = 48 }, warns: true},
		"samples, and no counter": {packets: 5000, change: func(c *Config) { c.Counters, c.OneIn, c.Samples = 17, 10, 1000 }},
	} {
		config := minutes(1000)
		if c.change != nil {
			c.change(&config)
		}
		s := openStore(t, newMemory(), StoreOptions{Delay: c.delay})
		if err, got := s.Append(crowded(t, config, c.packets)), s.Summary(); errors.Is(err, ErrOverloaded) != c.warns || got.Epochs != 1 {
			t.Errorf("%s: %v, %+v", name, err, got)
		}
	}
}
