package colate

import (
	"fmt"
	"math"
	"sort"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// Limits of a Config.
const (
	maxCounters = 1 << 26
	maxPerFlow  = 4096
	maxPeriod   = 1 << 53 // ns: 104 days
	maxFold     = 26
)

// A Config holds every size of a recorder. Two points can be compared if their Configs differ only in Period and in what they sample.
type Config struct {
	// Identity is the fingerprint of the seed or key that flows and packets
	// are hashed with, and decides where a flow's counters are. It is public.
	Identity uint64

	// Counters is the number of counters in a recorder (n): more than PerFlow and at most 2^26. Fewer than
	// twice PerFlow are for samples alone, and tell nothing of flows.
	Counters int

	// PerFlow is the number of counters that the packets of a flow are spread over (m): 2 to 4,096. With fewer than
	// 8, packets of another flow in one of them may look like the flow's own if its record is in doubt.
	PerFlow int

	// Bits is the width of a counter (b), 16 to 64: a count of packets in CountBits, a sum of their digests in DigestBits, and a
	// sum of their times in the rest, at least 8 bits. All three wrap. If the packets of a flow's counters spend more time on their
	// way in one epoch than a quarter of what the sum can hold, in epochs with a twentieth of them, these counters give no answer.
	Bits uint8

	// CountBits is the width of the count, 4 to 24. Only samples tell of a flow with more than 2^CountBits ×
	// PerFlow / 2 packets in a period.
	CountBits uint8

	// DigestBits is the width of the sum of digests, 4 to 32. Different packets look alike once in 2^DigestBits. So
	// with fewer than 16 bits fewer epochs are compared at a time, and packets that cross their cuts spoil more.
	DigestBits uint8

	// Shift sets the unit of time to 2^Shift nanoseconds, 0 to CountBits + DigestBits. The delay of a packet is
	// off by less than a unit, with a standard deviation of at most half a unit and a mean of 0.
	Shift uint8

	// OneIn asks for samples beside the counters: one packet in OneIn is kept by itself, chosen by a hash so
	// that both points keep the same ones. 0 means none.
	OneIn uint32

	// Samples is the largest number of packets sampled in an epoch, 1 to 2^26, or 0 if OneIn is 0. If there
	// would be more, half of them are dropped, and from then on half as many packets are sampled.
	Samples int

	// Period is the length of an epoch in nanoseconds, 1 to 2^53. Epochs
	// end when the clock is at a multiple of it, so that all points cut alike.
	Period int64

	fold uint8 // 2^fold counters side by side are added up, in an epoch with few packets
}

// DefaultConfig keeps a minute of 70,000 packets a second in 3.7 MB of a store, 7.1 bits a packet, and one packet in 64 by itself.
// The delays in one counter may add up to two minutes in each minute. Identity is 0, the fingerprint of no seed.
var DefaultConfig = Config{
	Counters:   455_334,
	PerFlow:    16,
	Bits:       64,
	CountBits:  14,
	DigestBits: 20,
	Shift:      9,
	OneIn:      64,
	Samples:    100_000,
	Period:     60e9,
}

func invalid(field string, got any, want string, args ...any) error {
	return estimate.Invalid("colate", field, got, fmt.Sprintf(want, args...))
}

// Validate reports the first field that is out of range, as [estimate.ErrConfig].
func (c *Config) Validate() error {
	switch {
	case c.PerFlow < 2 || c.PerFlow > maxPerFlow:
		return invalid("PerFlow", c.PerFlow, "2 to %d", maxPerFlow)
	case c.Counters <= c.PerFlow || c.Counters > maxCounters:
		return invalid("Counters", c.Counters, "more than PerFlow, %d, and at most %d", c.PerFlow, maxCounters)
	case c.Bits < 16 || c.Bits > 64:
		return invalid("Bits", c.Bits, "16 to 64")
	case c.CountBits < 4 || c.CountBits > 24:
		return invalid("CountBits", c.CountBits, "4 to 24")
	case c.DigestBits < 4 || c.DigestBits > 32:
		return invalid("DigestBits", c.DigestBits, "4 to 32")
	case c.Bits < c.lowBits()+8:
		return invalid("Bits", c.Bits, "8 more than CountBits and DigestBits, %d, at least", c.lowBits())
	case c.Shift > c.lowBits():
		return invalid("Shift", c.Shift, "0 to CountBits and DigestBits, %d", c.lowBits())
	case c.Samples < 0 || c.Samples > maxCounters || (c.Samples == 0) != (c.OneIn == 0):
		return invalid("Samples", c.Samples, "0 to %d, and 0 if and only if OneIn is 0", maxCounters)
	case c.Period < 1 || c.Period > maxPeriod:
		return invalid("Period", c.Period, "1 to %d ns", int64(maxPeriod))
	}
	return nil
}

// unit returns the unit of time in nanoseconds.
func (c *Config) unit() float64 { return float64(uint64(1) << c.Shift) }

// lowBits returns the width of count and digest together, the low part of a counter, and sumBits that of the sum above them.
func (c *Config) lowBits() uint8 { return c.CountBits + c.DigestBits }
func (c *Config) sumBits() uint8 { return c.Bits - c.lowBits() }

// comparable returns what must be equal for two points to be compared.
func (c Config) comparable() Config {
	c.Period, c.OneIn, c.Samples = 0, 0, 0
	return c
}

// like reports whether epochs of both can be compared, once folded alike.
func (c Config) like(d Config) bool {
	c.fold = d.fold
	return c.comparable() == d.comparable()
}

// counters returns how many counters there are when they are folded.
func (c *Config) counters() int { return (c.Counters-1)>>c.fold + 1 }

// forSamples reports whether counters are too few to tell flows apart.
func (c *Config) forSamples() bool { return c.Counters < 2*c.PerFlow }

// place returns where a flow's counter j is, H(f, j) in §3.1, when counters are folded.
func (c *Config) place(f hashing.Flow, j int) uint32 {
	return uint32(hashing.Row(hashing.Mix(uint64(f)^c.Identity, uint64(j)), uint64(c.Counters))) >> (c.fold & 31)
}

// A Demand says what a point must record, for [Plan].
type Demand struct {
	Rate      float64 // packets a second, above 0 and up to 10^10
	BytesADay float64 // bytes a day that a store may take, above 0
	Delay     float64 // nanoseconds that packets take, and clocks differ in all; 0 or more
	NoRecords bool    // few flow records will be at hand: packets are sampled instead
}

// mostOnTheWay is the largest number of packets of a counter that may be on their way when the clock cuts: with more it is rarely settled.
const mostOnTheWay = 2.0

// sampleShare is the part of the bytes that samples get beside counters, a choice: with more, flows of hundreds of packets are less
// behind samples alone, and larger ones farther behind counters alone.
const sampleShare = 0.25

// Plan returns the Config that keeps the packets of a Demand as well as its bytes allow; [Config.BitsPerPacket] says what they take.
// Counters, with the records of all flows, say more of large flows, and samples of small ones. Samples get a quarter of the bytes: small
// flows are off by more than if samples had all, and large ones by more than if counters had. If there were more than one counter for
// six packets, some would be folded: their bytes pay for more samples instead, and once all packets are sampled, more bytes buy nothing.
// Without records samples say more, and get all bytes. The error wraps [estimate.ErrConfig] if it is out of range or no Config meets it.
func Plan(d Demand) (c Config, err error) {
	switch {
	case !(d.Rate > 0 && d.Rate <= 1e10):
		return Config{}, invalid("Rate", d.Rate, "over 0 and up to 10^10 packets a second")
	case !(d.BytesADay > 0 && d.BytesADay <= 1e18):
		return Config{}, invalid("BytesADay", d.BytesADay, "over 0 and up to 10^18")
	case !(d.Delay >= 0 && d.Delay <= 1e15):
		return Config{}, invalid("Delay", d.Delay, "0 to 10^15 ns")
	}
	c = DefaultConfig
	packets, allowed := d.Rate*float64(c.Period)/1e9, d.BytesADay*8/86400/d.Rate // in an epoch, and bits of each
	if c.Counters, c.OneIn = c.PerFlow+1, 0; !d.NoRecords {
		most := max(packets/6, 4*float64(c.PerFlow))
		c.Counters = sort.Search(int(min(maxCounters, most)), func(n int) bool {
			return c.epochBits(float64(n+1), packets) > max((1-sampleShare)*allowed, allowed-sampleBits(packets))*packets
		})
	}
	left := allowed - c.BitsPerPacket(d.Rate) // for samples
	c.OneIn = uint32(min(max(math.Ceil(sampleBits(packets)/left), 1), math.MaxUint32))
	c.Samples = int(min(2*packets/float64(c.OneIn)+100, maxCounters)) // or busy minutes would halve those of the hour
	if !d.NoRecords && c.Counters < 2*c.PerFlow || d.NoRecords && left <= 0 || c.Validate() != nil {
		return Config{}, invalid("BytesADay", d.BytesADay, "more, for %g packets a second: no Config takes so few", d.Rate)
	}
	if way := packets / float64(c.Counters) * d.Delay / float64(c.Period); way > mostOnTheWay && !d.NoRecords {
		return Config{}, invalid("Delay", d.Delay, "up to %.3g ns with %d counters for %g packets a second, or NoRecords",
			mostOnTheWay*d.Delay/way, c.Counters, d.Rate)
	}
	return c, nil
}

// BitsPerPacket returns approximately how many bits of a store a packet takes, at a rate in packets a second.
func (c *Config) BitsPerPacket(rate float64) float64 {
	packets, sampled := rate*float64(c.Period)/1e9, min(float64(c.OneIn), 1)/max(float64(c.OneIn), 1)
	return c.epochBits(float64(c.Counters), packets)/packets + sampled*sampleBits(packets)
}

// sampleBits is approximately what a sample takes: the more there are, the closer are their flows.
func sampleBits(packets float64) float64 { return 95 - math.Log2(packets+1) }

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
