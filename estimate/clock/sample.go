package clock

import "github.com/hoplag/hoplag/estimate"

// A Sample is what a cell says about the clocks: a time by the near point's
// clock, and the measured delays of the packets in it, each with one stamp of
// either clock. [There] and [Back] make it from the sums of a cell.
type Sample struct {
	// Time is when the packet left the near point (there) or arrived at it (back),
	// or the mean time of several packets.
	Time int64

	// Delay is the receiving time minus the sending time, added up over the
	// packets, modulo 2^[Config.SumBits], as a signed number.
	Delay int64

	// Packets is the number of packets, at least 1. The delay of one packet bounds
	// the clocks' offset; the mean of several is a weaker bound. Samples of more
	// than [MaxPackets] are ignored: they say next to nothing, and their sums may
	// have wrapped.
	Packets uint32
}

// There returns the sample of a cell of the direction from the near point to
// the far one, whose time stamps add up to sent and received, modulo 2^bits.
// near is a time close to those of the packets, by the near point's clock: they
// may differ from it by 2^(bits-1) ns in total, nine minutes at 40 bits.
func There(sent, received uint64, packets uint32, bits int, near int64) Sample {
	return Sample{meanTime(sent, packets, bits, near), estimate.SignExtend(received-sent, bits), packets}
}

// Back is like [There] for a cell of the direction from the far point to the
// near one. near is again by the clock of the near point, which received them.
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

// A mark is a sample as the tracker keeps it: at time t, by the near point's
// clock, the offset less the base (there), or its opposite (back), is at most y.
type mark struct {
	t       int64
	y       float64
	packets uint32
	wrong   bool // excluded by others
}

// The two directions, as indices.
const (
	there = 0
	back  = 1
)

// mark unwraps a sample: of the delays that its low bits allow, it takes the
// one closest to the base.
func (s Sample) mark(direction int, base int64, c *Config) mark {
	k := uint64(s.Packets)
	expected := k * uint64(base)
	if direction == back {
		expected = -expected
	}
	excess := estimate.SignExtend(uint64(s.Delay)-expected, c.SumBits)
	return mark{t: s.Time, y: float64(excess)/float64(s.Packets) + c.Resolution, packets: s.Packets}
}
