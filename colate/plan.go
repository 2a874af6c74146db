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
	Delay      float64 // nanoseconds that packets take, and clocks differ in all; 0 or more
	NoRecords  bool    // few flow records will be at hand: packets are sampled instead
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
	// OnTheWay is the number of packets of a counter on their way when the
	// clock cuts. A counter is only read between cuts at which there are none,
	// or the same ones: beyond 2 that is rarely.
	OnTheWay float64
}

// Plan returns the Config that keeps the packets of a Demand as well as its
// bytes allow. It has as many counters as these pay for, and epochs of a
// minute, or shorter ones if losses would leave the largest flow without a
// counter. Without records of flows, samples say more than counters for as many
// bytes, and get all of them.
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
	case !(d.Delay >= 0 && d.Delay <= 1e15):
		return Forecast{}, bad("Delay", d.Delay, "0 to 10^15 ns")
	}
	if d.NoRecords {
		return d.samples()
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
	if best.OnTheWay > 2 {
		return Forecast{}, bad("Delay", d.Delay, fmt.Sprintf("up to %.3g ns with %d counters for %g packets a second, or NoRecords",
			2*d.Delay/best.OnTheWay, best.Config.Counters, d.Rate))
	}
	return best, nil
}

// forecast returns the Forecast for a period, with as many counters as
// possible.
func (d *Demand) forecast(period float64) Forecast {
	c := DefaultConfig
	c.Identity, c.Period = d.Identity, int64(period*1e9)
	packets := d.Rate * period
	most := float64(maxCounters)
	if d.MemoryBits > 0 {
		most = min(most, d.MemoryBits/float64(c.Bits))
	}
	// Of more counters than that, some are folded.
	most = min(most, packets/6)
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
	way := d.Delay / (period * 1e9) // of an epoch's packets
	// The more packets are on their way, the longer until there are none.
	usable := func(n float64) float64 { return math.Exp(-n * d.Loss * math.Exp(min(n*way, 50))) }
	return Forecast{
		Config:        c,
		BitsPerPacket: size / packets, BytesADay: size / 8 * 86400 / period,
		PacketsPerCounter: others,
		Usable:            usable(others), UsableLargest: usable(others + own), OnTheWay: others * way,
	}
}

// sampleBits is about what a sampled packet takes.
const sampleBits = 72

// samples returns the Forecast for samples, beside as few counters as there may
// be.
func (d *Demand) samples() (Forecast, error) {
	c := DefaultConfig
	c.Identity, c.Counters = d.Identity, c.PerFlow+1
	allowed := d.BytesADay * 8 / 86400 / d.Rate // bits a packet
	c.OneIn = uint32(min(max(math.Ceil(sampleBits/allowed), 1), 1<<31))
	c.Samples = int(min(1.2*d.Rate*60/float64(c.OneIn)+100, maxCounters))
	if d.MemoryBits > 0 {
		c.Samples = min(c.Samples, int(d.MemoryBits/128))
	}
	bits := sampleBits / float64(c.OneIn)
	return Forecast{
		Config: c, BitsPerPacket: bits, BytesADay: bits * d.Rate * 86400 / 8, PacketsPerCounter: d.Rate * 60 / float64(c.Counters),
		Usable: 1, UsableLargest: 1,
	}, c.Validate()
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
