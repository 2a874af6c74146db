package mplane

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"math"
	"unique"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/clock"
	"github.com/hoplag/hoplag/internal/wire"
	"github.com/hoplag/hoplag/lda"
)

// A Measurement is what a monitor measured of a segment in one interval.
type Measurement struct {
	Segment    SegmentID
	Sent, Lost uint64 // packets, or probes
	Delay      estimate.Delay

	Error float64 // standard error of Delay.Mean, in nanoseconds

	// Ahead is how far the clock at the segment's end is ahead of the one at
	// its beginning, in nanoseconds, if the two monitors follow each other's
	// clocks. AheadError is its standard error. SetClock sets both. Clocks that
	// something else keeps together are 0 ahead, and AheadError says how well.
	// Both are 0 if nothing is known, and inside a router.
	Ahead, AheadError float64
}

// Measure returns what a comparison by LDA says of a segment, whose clocks are
// those of its monitors. Set those with SetClock if they are known.
func Measure(id SegmentID, r *lda.Result) Measurement {
	lost := min(r.Lost+uint64(r.Hidden), r.Sent)
	return Measurement{Segment: id, Sent: r.Sent, Lost: lost, Delay: r.Delay, Error: math.Hypot(r.MeanError, r.MeanDoubt)}
}

// SetClock takes a reading of the clock at the segment's end by the one at its
// beginning: see [clock.Tracker]. How differently long the two directions are
// does not matter, because it is the same in every interval: let
// [clock.Config.Asymmetry] be 0.
func (m *Measurement) SetClock(r clock.Reading) {
	const widths = 4 // number of standard errors from end to end of Likely
	if width := r.Likely.High - r.Likely.Low; !math.IsNaN(width) && !math.IsInf(width, 0) {
		m.Ahead, m.AheadError = r.Offset, max(width/widths, 1)
	}
}

// check reports what is wrong with a measurement.
func (m *Measurement) check() error {
	for _, x := range m.numbers() {
		if math.IsNaN(*x) || math.IsInf(*x, 0) {
			return invalid("a number of the measurement", *x, "finite")
		}
	}
	switch {
	case min(m.Delay.StdDev, m.Error, m.AheadError) < 0:
		return invalid("StdDev, Error or AheadError", min(m.Delay.StdDev, m.Error, m.AheadError), "at least 0")
	case m.Lost > m.Sent:
		return invalid("Lost", m.Lost, fmt.Sprintf("at most Sent, which is %d", m.Sent))
	case m.AheadError == 0 && m.Ahead != 0:
		return invalid("Ahead", m.Ahead, "0 if AheadError is")
	}
	return nil
}

// A Report is one measurement state packet (MSP, section VI): what a monitor
// measured of some of its segments in one interval.
type Report struct {
	Monitor  Router
	Interval uint64 // numbered alike at all monitors: its start divided by its length
	Network  uint64 // Network.Fingerprint: do sender and receiver number routers alike

	Measurements []Measurement
}

// The encoding, big-endian, between the head and the CRC-32C of package wire.
// With a key, a tag of 16 bytes follows:
//
//	network, interval                  8 bytes each
//	monitor, number of measurements    4, 2
//	for each measurement:
//	from, to, via, path, class         4 4 4 4 2
//	sent, lost, packets in the mean    8 8 8
//	mean, deviation, error             8 8 8, IEEE 754
//	clock ahead, its error             8 8, IEEE 754
//
// There is no sequence number: a report says the same whenever it comes, and
// whenever it comes again.
const (
	magic           = "HLMS"
	version         = 2
	reportHead      = 2*8 + 4 + 2
	measurementSize = 4*4 + 2 + 8*8
	tagSize         = 16

	// MaxMeasurements is the largest number of measurements in a report: what
	// fits a datagram of 1,400 bytes.
	MaxMeasurements = (1400 - wire.Overhead - tagSize - reportHead) / measurementSize
)

// A Key is the secret of the reports' tags. No printer shows it. Without a secret
// there are no tags.
type Key struct{ secret unique.Handle[string] }

// NewKey returns the Key of a secret, such as 16 random bytes.
func NewKey(secret string) Key { return Key{unique.Make(secret)} }

func (k Key) empty() bool { return k == Key{} || k.secret.Value() == "" }

// AppendReport appends the encoding of a report to dst, with a tag if there is a
// key. The error wraps [estimate.ErrConfig].
func AppendReport(dst []byte, r Report, key Key) ([]byte, error) {
	if len(r.Measurements) > MaxMeasurements {
		return dst, invalid("number of measurements", len(r.Measurements), fmt.Sprintf("at most %d", MaxMeasurements))
	}
	for i := range r.Measurements {
		if err := r.Measurements[i].check(); err != nil {
			return dst, err
		}
	}
	start := len(dst)
	dst = wire.Begin(dst, magic, version)
	dst = wire.AppendUint(dst, r.Network, 8)
	dst = wire.AppendUint(dst, r.Interval, 8)
	dst = wire.AppendUint(dst, uint64(r.Monitor), 4)
	dst = wire.AppendUint(dst, uint64(len(r.Measurements)), 2)
	for i := range r.Measurements {
		dst = appendMeasurement(dst, &r.Measurements[i])
	}
	dst = wire.Seal(dst, start)
	if !key.empty() {
		dst = append(dst, key.tag(dst[start:])...)
	}
	return dst, nil
}

func appendMeasurement(dst []byte, m *Measurement) []byte {
	for _, r := range []uint32{uint32(m.Segment.From), uint32(m.Segment.To), uint32(m.Segment.Via), m.Segment.Path} {
		dst = wire.AppendUint(dst, uint64(r), 4)
	}
	dst = wire.AppendUint(dst, uint64(m.Segment.Class), 2)
	for _, v := range m.counts() {
		dst = wire.AppendUint(dst, *v, 8)
	}
	for _, x := range m.numbers() {
		dst = wire.AppendUint(dst, math.Float64bits(*x), 8)
	}
	return dst
}

// tag authenticates a record.
func (k Key) tag(record []byte) []byte {
	h := hmac.New(sha256.New, []byte(k.secret.Value()))
	h.Write(record)
	return h.Sum(nil)[:tagSize]
}

// DecodeReport decodes and checks a report that AppendReport encoded with the
// same key. The error wraps [estimate.ErrEncoding].
func DecodeReport(data []byte, key Key) (Report, error) {
	if !key.empty() {
		if len(data) < tagSize {
			return Report{}, fmt.Errorf("mplane: %w: %d bytes, too short for a tag", estimate.ErrEncoding, len(data))
		}
		record := data[:len(data)-tagSize]
		if !hmac.Equal(key.tag(record), data[len(record):]) {
			return Report{}, fmt.Errorf("mplane: %w: the tag does not match the key", estimate.ErrEncoding)
		}
		data = record
	}
	b, err := wire.Open(data, magic, version)
	if err != nil {
		return Report{}, fmt.Errorf("mplane: %w", err)
	}
	r := Report{Network: b.Uint64(), Interval: b.Uint64(), Monitor: Router(b.Uint32())}
	count := int(b.Uint16())
	if count > MaxMeasurements || b.Len() != count*measurementSize {
		return Report{}, fmt.Errorf("mplane: %w: %d bytes of %d measurements, want %d", estimate.ErrEncoding, b.Len(), count,
			count*measurementSize)
	}
	for range count {
		m := decodeMeasurement(&b)
		if err := m.check(); err != nil {
			return Report{}, fmt.Errorf("mplane: %w: %w", estimate.ErrEncoding, err)
		}
		r.Measurements = append(r.Measurements, m)
	}
	if err := b.Close(); err != nil {
		return Report{}, fmt.Errorf("mplane: %w", err)
	}
	return r, nil
}

func decodeMeasurement(b *wire.Reader) Measurement {
	m := Measurement{Segment: SegmentID{
		From: Router(b.Uint32()), To: Router(b.Uint32()), Via: Router(b.Uint32()), Path: b.Uint32(), Class: b.Uint16(),
	}}
	for _, v := range m.counts() {
		*v = b.Uint64()
	}
	for _, x := range m.numbers() {
		*x = math.Float64frombits(b.Uint64())
	}
	return m
}

// counts and numbers are a measurement's fields in the order of the encoding.
func (m *Measurement) counts() [3]*uint64 { return [3]*uint64{&m.Sent, &m.Lost, &m.Delay.N} }

func (m *Measurement) numbers() [5]*float64 {
	return [5]*float64{&m.Delay.Mean, &m.Delay.StdDev, &m.Error, &m.Ahead, &m.AheadError}
}
