package clock

import (
	"fmt"

	"github.com/hoplag/hoplag/estimate"
)

// Limits of a Config, and of samples.
const (
	MaxWindow   = 4096
	MaxOutliers = 8
	MaxPackets  = 64 // of a sample that counts
)

// A Config says what is known of the clocks in advance. The certain intervals hold as long as it is true.
type Config struct {
	// Window is the number of latest intervals to keep, 1 to MaxWindow. A longer window gives a better drift
	// and follows its changes more slowly.
	Window int

	// MaxDrift is the greatest difference between the clocks' rates, as a fraction: 1e-3 is a millisecond a
	// second. More than 0, at most 0.01.
	MaxDrift float64

	// Wander is how far the rate may stray from its mean in the window, as a fraction: 1e-7 is 0.1 ppm. Bounds
	// loosen at that rate as they age. 0 to MaxDrift.
	Wander float64

	// Outliers is the number of samples in a window, each way, that may be wrong without contradicting the
	// others, as when a cell without a digest takes two different packets for one. 0 to MaxOutliers.
	Outliers int

	// Resolution is the time between two ticks of the clocks, in nanoseconds: a stamp may be that much too
	// early.
	Resolution float64

	// Asymmetry is how much the least delays of the two directions may differ, in nanoseconds: a few
	// microseconds between similar machines in one building, milliseconds across a continent where routes
	// differ. Only the likely interval depends on it, and is wider by as much.
	Asymmetry float64

	// SumBits is the width of the sums that the samples come from, 1 to 64: delays are known modulo 2^SumBits.
	SumBits int
}

// DefaultConfig suits quartz clocks that NTP or nothing disciplines, a path within a building, and samples of
// one-second intervals from 40-bit sums.
var DefaultConfig = Config{
	Window:   16,
	MaxDrift: 1e-3,
	Wander:   1e-7,
	Outliers: 1,

	Resolution: 1,
	Asymmetry:  10_000,
	SumBits:    40,
}

// farthest is how many nanoseconds float64 holds to a fraction of one: eleven days.
const farthest = 1e15

// Validate reports what is out of range. The error wraps [estimate.ErrConfig].
func (c *Config) Validate() error {
	bad := func(field string, got any, want string) error { return estimate.Invalid("clock", field, got, want) }
	switch {
	case c.Window < 1 || c.Window > MaxWindow:
		return bad("Window", c.Window, fmt.Sprintf("1 to %d", MaxWindow))
	case !(c.MaxDrift > 0 && c.MaxDrift <= 0.01):
		return bad("MaxDrift", c.MaxDrift, "more than 0, at most 0.01")
	case !(c.Wander >= 0 && c.Wander <= c.MaxDrift):
		return bad("Wander", c.Wander, "0 to MaxDrift")
	case c.Outliers < 0 || c.Outliers > MaxOutliers:
		return bad("Outliers", c.Outliers, fmt.Sprintf("0 to %d", MaxOutliers))
	case !(c.Resolution >= 0 && c.Resolution <= farthest):
		return bad("Resolution", c.Resolution, "0 to 1e15 ns")
	case !(c.Asymmetry >= 0 && c.Asymmetry <= farthest):
		return bad("Asymmetry", c.Asymmetry, "0 to 1e15 ns")
	case c.SumBits < 1 || c.SumBits > 64:
		return bad("SumBits", c.SumBits, "1 to 64")
	}
	return nil
}

// layers returns the number of layers of hulls that contain every mark that is among the lowest along some
// line, counting all that are dropped or ranked.
func (c *Config) layers() int { return c.Outliers + 1 + spacings }

// A Sample is what a cell says about the clocks: a time by the near point's clock, and the measured delays of
// the packets in it, each with one stamp of either clock. [There] and [Back] make it from the sums of a cell.
type Sample struct {
	// Time is when the packet left the near point (there) or arrived at it (back), or the mean time of several
	// packets.
	Time int64

	// Delay is the receiving time minus the sending time, added up over the packets, modulo 2^[Config.SumBits],
	// as a signed number.
	Delay int64

	// Packets is the number of packets, at least 1. The delay of one packet bounds the clocks' offset; the mean
	// of several is a weaker bound. Samples of more than [MaxPackets] are ignored: they say next to nothing,
	// and their sums may have wrapped.
	Packets uint32
}

// There returns the sample of a cell of the direction from the near point to the far one, whose timestamps add
// up to sent and received, modulo 2^bits. near is a time close to those of the packets, by the near point's
// clock: they may differ from it by 2^(bits-1) ns in total, nine minutes at 40 bits.
func There(sent, received uint64, packets uint32, bits int, near int64) Sample {
	return Sample{meanTime(sent, packets, bits, near), estimate.SignExtend(received-sent, bits), packets}
}

// Back is like [There] for a cell of the direction from the far point to the near one. near is again by the
// clock of the near point, which received them.
func Back(sent, received uint64, packets uint32, bits int, near int64) Sample {
	return Sample{meanTime(received, packets, bits, near), estimate.SignExtend(received-sent, bits), packets}
}

// meanTime returns the mean of times close to a known one, from their sum.
func meanTime(sum uint64, packets uint32, bits int, near int64) int64 {
	if packets == 0 {
		return near
	}
	return near + estimate.SignExtend(sum-uint64(packets)*uint64(near), bits)/int64(packets)
}

// A mark is a sample as the tracker keeps it: at time t, by the near point's clock, the offset less the base
// (there), or its opposite (back), is at most y.
type mark struct {
	t       int64
	y       float64
	packets uint32
}

// The two directions, as indices.
const (
	there = 0
	back  = 1
)

// mark unwraps a sample: of the delays that its low bits allow, it takes the one closest to an offset, ahead of the base.
func (s Sample) mark(direction int, base, ahead int64, c *Config) mark {
	if direction == back {
		base, ahead = -base, -ahead
	}
	excess := estimate.SignExtend(uint64(s.Delay)-uint64(s.Packets)*uint64(base+ahead), c.SumBits)
	return mark{t: s.Time, y: float64(ahead) + float64(excess)/float64(s.Packets) + c.Resolution, packets: s.Packets}
}
