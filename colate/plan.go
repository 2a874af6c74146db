package colate

import (
	"fmt"
	"math"

	"github.com/hoplag/hoplag/estimate"
)

// A Demand says what a point must record, for [Plan].
type Demand struct {
	Rate       float64 // packets a second, above 0 and up to 10^10
	BytesADay  float64 // bytes a day that a store may take, above 0
	FlowRate   float64 // packets a second of the largest flow that must have an answer; 0: no particular flow
	Loss       float64 // fraction of packets lost, 0 to below 1
	Identity   uint64
	MemoryBits float64 // largest memory for counters; 0: no limit
}

// A Forecast is a Config and what to expect of it.
type Forecast struct {
	Config Config
	// BitsPerPacket and BytesADay are the size of a store.
	BitsPerPacket, BytesADay float64
	// PacketsPerCounter is the number of packets in a counter in an epoch. The
	// larger it is, the fewer bits a packet takes, and the more of others'
	// packets are in a flow's counters.
	PacketsPerCounter float64
	// Usable is the fraction of a flow's counters that lose no packet in an
	// epoch, and UsableLargest that of the largest flow's.
	Usable, UsableLargest float64
}

// Plan returns the Config that keeps the packets of a Demand as well as its
// bytes allow. It has as many counters as these pay for, and epochs of a
// minute, or shorter ones if losses would leave the largest flow without a
// counter.
//
// The error wraps [estimate.ErrConfig] if the demand is out of range or no
// Config meets it.
func Plan(d Demand) (Forecast, error) {
	bad := func(field string, got any, want string) error { return estimate.Invalid("colate", field, got, want) }
	switch {
	case !(d.Rate > 0 && d.Rate <= 1e10):
		return Forecast{}, bad("Rate", d.Rate, "over 0 and up to 10^10 packets a second")
	case !(d.BytesADay > 0 && d.BytesADay <= 1e18):
		return Forecast{}, bad("BytesADay", d.BytesADay, "over 0 and up to 10^18")
	case !(d.FlowRate >= 0 && d.FlowRate <= d.Rate):
		return Forecast{}, bad("FlowRate", d.FlowRate, fmt.Sprintf("0 to Rate, %g", d.Rate))
	case !(d.Loss >= 0 && d.Loss < 1):
		return Forecast{}, bad("Loss", d.Loss, "0 to below 1")
	case !(d.MemoryBits >= 0):
		return Forecast{}, bad("MemoryBits", d.MemoryBits, "0 or more")
	}
	best := Forecast{}
	for period := 60.0; period >= 1.0/16; period /= 2 {
		f := d.forecast(period)
		if f.Config.Validate() != nil {
			continue
		}
		if best.Config.Counters == 0 || f.UsableLargest > best.UsableLargest {
			best = f
		}
		// With one usable counter in two, of twenty, none is left once in a
		// million epochs.
		if best.UsableLargest >= 0.5 {
			break
		}
	}
	if best.Config.Counters == 0 {
		return Forecast{}, bad("BytesADay", d.BytesADay, fmt.Sprintf("more, for %g packets a second: no number of counters takes so few", d.Rate))
	}
	return best, nil
}

// forecast returns the Forecast for a period, with as many counters as
// possible.
func (d *Demand) forecast(period float64) Forecast {
	c := DefaultConfig
	c.Identity, c.Period = d.Identity, int64(period*1e9)
	packets := d.Rate * period
	most := float64(MaxCounters)
	if d.MemoryBits > 0 {
		most = min(most, d.MemoryBits/float64(c.Bits))
	}
	// More counters than packets would be mostly empty.
	most = min(most, packets)
	allowed := d.BytesADay * 8 * period / 86400
	low, high := 0.0, most
	if c.epochBits(high, packets) > allowed {
		for range 60 {
			middle := (low + high) / 2
			if c.epochBits(middle, packets) > allowed {
				high = middle
			} else {
				low = middle
			}
		}
		high = low
	}
	c.Counters = int(high)
	size := c.epochBits(float64(c.Counters), packets)
	others := packets / math.Max(high, 1)
	own := d.FlowRate * period / float64(c.PerFlow)
	return Forecast{
		Config:        c,
		BitsPerPacket: size / packets, BytesADay: size / 8 * 86400 / period,
		PacketsPerCounter: others,
		Usable:            math.Exp(-others * d.Loss), UsableLargest: math.Exp(-(others + own) * d.Loss),
	}
}

// epochBits returns approximately how many bits an epoch takes in a store.
func (c *Config) epochBits(counters, packets float64) float64 {
	load := packets / counters
	used := counters * -math.Expm1(-load)
	// A time within the period, and half as many more bits as the count has.
	// The sum's two and a half bits above its deviation are what a block's
	// base leaves.
	time := math.Log2(float64(c.Period)/c.Unit()) + math.Log2(1+load)/2 + 0.8
	count := math.Log2(1+load) + 1.5
	if load > 4 {
		count = math.Log2(load)/2 + 2.5 // its deviation is the root
	}
	perBlock := 8.0*blockOverhead + 16 + 4
	return used*(float64(c.DigestBits)+min(time, float64(c.sumBits()))) + counters*count + counters/blockCounters*perBlock + 8*85
}
