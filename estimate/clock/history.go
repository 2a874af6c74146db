package clock

import (
	"cmp"
	"encoding"
	"fmt"
	"math"
	"slices"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/internal/wire"
)

// A History keeps the readings of a clock over a long time, one for each slot
// of a fixed length, such as an epoch of records that are kept for months and
// compared when somebody asks. The zero value is only good for decoding into. A
// History is not safe for concurrent use.
type History struct {
	every    int64
	readings []Reading // by ascending slot, at most one each
}

var (
	_ encoding.BinaryMarshaler   = (*History)(nil)
	_ encoding.BinaryAppender    = (*History)(nil)
	_ encoding.BinaryUnmarshaler = (*History)(nil)
)

// NewHistory returns an empty history with slots of the given length in
// nanoseconds, which begin at multiples of it. The error wraps
// [estimate.ErrConfig].
func NewHistory(every int64) (*History, error) {
	if every < 1 {
		return nil, estimate.Invalid("clock", "a history's slot", every, "at least 1 ns")
	}
	return &History{every: every}, nil
}

// Len returns the number of slots that have a reading.
func (h *History) Len() int { return len(h.readings) }

// Span returns when the first slot that has a reading begins and when the last one
// ends. ok is false without a reading.
func (h *History) Span() (start, end int64, ok bool) {
	if len(h.readings) == 0 {
		return 0, 0, false
	}
	first, last := h.readings[0].Time, h.readings[len(h.readings)-1].Time
	return h.slot(first) * h.every, (h.slot(last) + 1) * h.every, true
}

// slot returns the number of the slot that a time is in.
func (h *History) slot(at int64) int64 {
	n := at / h.every
	if at%h.every < 0 {
		n--
	}
	return n
}

// fromMiddle returns how far a time is from the middle of its slot.
func (h *History) fromMiddle(at int64) float64 {
	return math.Abs(float64(at-h.slot(at)*h.every) - float64(h.every)/2)
}

// find returns where the reading of a slot is, or would be.
func (h *History) find(slot int64) (int, bool) {
	return slices.BinarySearchFunc(h.readings, slot, func(r Reading, slot int64) int { return cmp.Compare(h.slot(r.Time), slot) })
}

// Add adds a reading. Of several in one slot, the history keeps the one closest
// to the middle; if the clock stepped in the slot, its intervals contain those
// of all.
func (h *History) Add(r Reading) {
	i, found := h.find(h.slot(r.Time))
	if !found {
		h.readings = slices.Insert(h.readings, i, r)
		return
	}
	kept, other := h.readings[i], r
	if h.fromMiddle(other.Time) < h.fromMiddle(kept.Time) {
		kept, other = other, kept
	}
	if kept.Stepped || other.Stepped {
		kept = kept.and(other)
	}
	h.readings[i] = kept
}

// At returns the reading of a time, from the reading of its slot; the intervals
// are wider by the uncertainty of the drift. If the slot has no reading, the
// error wraps [estimate.ErrNoSamples].
func (h *History) At(at int64) (Reading, error) {
	i, found := h.find(h.slot(at))
	if !found {
		return Reading{Certain: anywhere, Likely: anywhere}, fmt.Errorf("clock: %w: clocks not known at %d", estimate.ErrNoSamples, at)
	}
	r := h.readings[i]
	later := float64(at - r.Time)
	r.Time = at
	r.Offset += r.Drift * later
	carry(&r.Certain, r.CertainDrift, later)
	carry(&r.Likely, r.LikelyDrift, later)
	return r, nil
}

// carry carries an interval of the offset forward.
func carry(offset *estimate.Interval, drift estimate.Interval, later float64) {
	offset.Low += min(drift.Low*later, drift.High*later)
	offset.High += max(drift.Low*later, drift.High*later)
}

// The encoding, big-endian, between the head and the CRC-32C of package wire:
//
//	slot      8 bytes, ns
//	readings  4
//	each:     time 8 · stepped 1 · the numbers of Reading.numbers 8 each, as
//	          IEEE 754 binary64
const (
	magic       = "HCLK"
	version     = 1
	readingSize = 8 + 1 + 8*15
)

// numbers are the parts of a reading besides its time and Stepped.
func (r *Reading) numbers() [15]*float64 {
	return [15]*float64{
		&r.Offset, &r.Drift, &r.RoundTrip,
		&r.Certain.Low, &r.Certain.High, &r.Certain.Confidence,
		&r.Likely.Low, &r.Likely.High, &r.Likely.Confidence,
		&r.CertainDrift.Low, &r.CertainDrift.High, &r.CertainDrift.Confidence,
		&r.LikelyDrift.Low, &r.LikelyDrift.High, &r.LikelyDrift.Confidence,
	}
}

// EncodedSize returns the number of bytes of the encoding.
func (h *History) EncodedSize() int { return wire.Overhead + 12 + len(h.readings)*readingSize }

// AppendBinary appends the encoding to dst. The error is always nil.
func (h *History) AppendBinary(dst []byte) ([]byte, error) {
	start := len(dst)
	dst = wire.Begin(slices.Grow(dst, h.EncodedSize()), magic, version)
	dst = wire.AppendUint(dst, uint64(h.every), 8)
	dst = wire.AppendUint(dst, uint64(len(h.readings)), 4)
	for i := range h.readings {
		r := &h.readings[i]
		dst = wire.AppendUint(dst, uint64(r.Time), 8)
		stepped := byte(0)
		if r.Stepped {
			stepped = 1
		}
		dst = append(dst, stepped)
		for _, x := range r.numbers() {
			dst = wire.AppendUint(dst, math.Float64bits(*x), 8)
		}
	}
	return wire.Seal(dst, start), nil
}

// MarshalBinary returns the encoding.
func (h *History) MarshalBinary() ([]byte, error) { return h.AppendBinary(nil) }

// UnmarshalBinary decodes what AppendBinary encoded. The error wraps
// [estimate.ErrEncoding], and the history is then unchanged.
func (h *History) UnmarshalBinary(data []byte) error {
	r, err := wire.Open(data, magic, version)
	if err != nil {
		return fmt.Errorf("clock: %w", err)
	}
	bad := func(what string) error { return fmt.Errorf("clock: %w: %s", estimate.ErrEncoding, what) }
	every, n := int64(r.Uint64()), r.Size()
	if every < 1 {
		return bad("a slot has no length")
	}
	if r.Len()%readingSize != 0 || r.Len()/readingSize != n { // n·readingSize may exceed an int
		return bad(fmt.Sprintf("%d readings in %d bytes", n, r.Len()))
	}
	decoded := History{every: every, readings: make([]Reading, n)}
	for i := range decoded.readings {
		x := &decoded.readings[i]
		x.Time = int64(r.Uint64())
		stepped := r.Uint8()
		x.Stepped = stepped == 1
		for _, number := range x.numbers() {
			if *number = math.Float64frombits(r.Uint64()); math.IsNaN(*number) {
				return bad(fmt.Sprintf("reading %d is not a number", i))
			}
		}
		if stepped > 1 || i > 0 && decoded.slot(decoded.readings[i-1].Time) >= decoded.slot(x.Time) {
			return bad(fmt.Sprintf("reading %d is out of order", i))
		}
	}
	if err := r.Close(); err != nil {
		return fmt.Errorf("clock: %w", err)
	}
	*h = decoded
	return nil
}
