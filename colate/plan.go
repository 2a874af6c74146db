package colate

import (
	"fmt"
	"math"
	"sort"

	"github.com/hoplag/hoplag/estimate"
)

// A Demand says what a point must record, for [Plan].
type Demand struct {
	Rate      float64 // packets a second, above 0 and up to 10^10
	BytesADay float64 // bytes a day that a store may take, above 0
	Delay     float64 // nanoseconds that packets take, and clocks differ in all; 0 or more
	NoRecords bool    // few flow records will be at hand: packets are sampled instead
}

// mostOnTheWay is the largest number of packets of a counter that may be on
// their way when the clock cuts: with more it is rarely settled.
const mostOnTheWay = 2.0

// sampleShare is the part of the bytes that samples get beside counters: about where flows of hundreds of packets are
// as far behind samples alone as those of thousands are behind counters alone.
const sampleShare = 0.1

// Plan returns the Config that keeps the packets of a Demand as well as its bytes allow, and how many bits a
// packet then takes. Counters, with the records of all flows, say more of large flows, and samples of small ones.
// Samples get a tenth of the bytes, which costs large flows about as much accuracy as the rest costs small ones.
// Of more counters than one for six packets some would be folded: what they leave pays for more samples, and once all
// packets are sampled more bytes buy nothing. Without records samples say more, and get all bytes. The error wraps
// [estimate.ErrConfig] if the demand is out of range or no Config meets it.
func Plan(d Demand) (c Config, bitsPerPacket float64, err error) {
	bad := func(field string, got any, want string, args ...any) (Config, float64, error) {
		return Config{}, 0, estimate.Invalid("colate", field, got, fmt.Sprintf(want, args...))
	}
	switch {
	case !(d.Rate > 0 && d.Rate <= 1e10):
		return bad("Rate", d.Rate, "over 0 and up to 10^10 packets a second")
	case !(d.BytesADay > 0 && d.BytesADay <= 1e18):
		return bad("BytesADay", d.BytesADay, "over 0 and up to 10^18")
	case !(d.Delay >= 0 && d.Delay <= 1e15):
		return bad("Delay", d.Delay, "0 to 10^15 ns")
	}
	c = DefaultConfig
	packets, allowed := d.Rate*float64(c.Period)/1e9, d.BytesADay*8/86400/d.Rate // in an epoch, and bits of each
	// About what a sample takes: the more there are the closer are their flows. They get what counters leave.
	sampleBits := 95 - math.Log2(packets+1)
	sample := func() {
		c.OneIn = uint32(min(max(math.Ceil(sampleBits/(allowed-bitsPerPacket)), 1), math.MaxUint32))
		c.Samples = int(min(1.2*packets/float64(c.OneIn)+100, maxCounters))
		bitsPerPacket += sampleBits / float64(c.OneIn)
	}
	if d.NoRecords {
		c.Counters = c.PerFlow + 1
		if bitsPerPacket = c.epochBits(float64(c.Counters), packets) / packets; bitsPerPacket >= allowed {
			return bad("BytesADay", d.BytesADay, "more, for %g packets a second: an epoch's head takes so many", d.Rate)
		}
		sample()
		return c, bitsPerPacket, c.Validate()
	}
	most := max(packets/6, 4*float64(c.PerFlow))
	c.Counters = sort.Search(int(min(maxCounters, most)), func(n int) bool {
		return c.epochBits(float64(n+1), packets) > max((1-sampleShare)*allowed, allowed-sampleBits)*packets
	})
	bitsPerPacket = c.epochBits(float64(c.Counters), packets) / packets
	if sample(); c.Counters < 2*c.PerFlow || c.Validate() != nil {
		return bad("BytesADay", d.BytesADay, "more, for %g packets a second: no number of counters takes so few", d.Rate)
	}
	if way := packets / float64(c.Counters) * d.Delay / float64(c.Period); way > mostOnTheWay {
		return bad("Delay", d.Delay, "up to %.3g ns with %d counters for %g packets a second, or NoRecords",
			mostOnTheWay*d.Delay/way, c.Counters, d.Rate)
	}
	return c, bitsPerPacket, nil
}

// epochBits returns approximately how many bits an epoch's counters take in a store.
func (c *Config) epochBits(counters, packets float64) float64 {
	load := packets / counters
	used := counters * -math.Expm1(-load)
	// A time within the period, and half as many more bits as the count has. The sum's two and a half bits
	// above its deviation are what a block's base leaves.
	time := math.Log2(float64(c.Period)/c.unit()) + math.Log2(1+load)/2 + 0.8
	count := math.Log2(1+load) + 1.5
	perBlock := 8.0*blockOverhead + 16 + 4
	return used*(float64(c.DigestBits)+min(time, float64(c.sumBits()))) + counters*count + math.Ceil(counters/blockCounters)*perBlock + 8*85
}
