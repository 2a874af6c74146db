package mplane

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"unique"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/clock"
	"github.com/hoplag/hoplag/internal/wire"
	"github.com/hoplag/hoplag/lda"
)

// A Measurement is what a monitor measured of a segment in one interval.
type Measurement struct {
	Segment    SegmentID
	Sent, Lost uint64         // packets, or probes
	Delay      estimate.Delay // if N is 0, it is not known

	Error float64 // standard error of Delay.Mean, in nanoseconds, by the normal distribution

	// ahead is how far the clock at the segment's end is ahead of the one at its beginning, in nanoseconds, and
	// aheadError its standard error. Both are 0 if nothing is known, and inside a router.
	ahead, aheadError float64
}

// Measure returns what a comparison by LDA says of a segment, by the clocks of its monitors. If it is known how
// these differ, call SetClock. Where few cells show the delay, Error is larger than LDA's: it is a part of LDA's
// interval at 95 %, downwards, since nothing bounds what packets that were not seen may add.
func Measure(id SegmentID, r *lda.Result) Measurement {
	lost := uint64(math.Round(r.Loss() * float64(r.Sent)))
	m := Measurement{Segment: id, Sent: r.Sent, Lost: lost, Delay: r.Delay}
	m.Error = (r.Mean - r.MeanInterval(0.95).Low) / estimate.NormalQuantile(0.975)
	if math.IsInf(m.Error, 0) { // of a single cell
		m.Delay, m.Error = estimate.Delay{}, 0
	}
	return m
}

// SetClock takes a reading of the clock at the segment's end by the one at its beginning: see [clock.Tracker].
// Set [clock.Config.Asymmetry] to 0: what differs between the directions is the same in every interval. If
// something else synchronises the clocks, the zero Reading says that they agree.
func (m *Measurement) SetClock(r clock.Reading) {
	const widths = 4 // number of standard errors from end to end of Likely
	if width := r.Likely.High - r.Likely.Low; !math.IsNaN(width) && !math.IsInf(width, 0) {
		m.ahead, m.aheadError = r.Offset, max(width/widths, 1)
	}
}

// check reports what is wrong with a measurement.
func (m *Measurement) check() error {
	for _, x := range []float64{m.Delay.Mean, m.Delay.StdDev, m.Error, m.ahead, m.aheadError} {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return invalid("a number of the measurement", x, "finite")
		}
	}
	switch {
	case min(m.Delay.StdDev, m.Error, m.aheadError) < 0:
		return invalid("StdDev, Error or the clock's error", min(m.Delay.StdDev, m.Error, m.aheadError), "at least 0")
	case m.Lost > m.Sent:
		return invalid("Lost", m.Lost, fmt.Sprintf("at most Sent, which is %d", m.Sent))
	case m.aheadError == 0 && m.ahead != 0:
		return invalid("the clock's offset", m.ahead, "0 if its error is")
	}
	return nil
}

// A Report is one measurement state packet (MSP, section VI): what a monitor measured of some of its segments
// in one interval.
type Report struct {
	Monitor  Router
	Interval uint64 // numbered alike at all monitors: its start divided by its length

	Measurements []Measurement
}

// A report is encoded, big-endian, as a reportHead and its encodedMeasurements, between the head and the
// CRC-32C of package wire. With a key, a tag of 16 bytes follows.
type reportHead struct {
	Network, Interval uint64
	Monitor           Router
	Count             uint16
}

type encodedMeasurement struct {
	Segment                              SegmentID
	Sent, Lost, Packets                  uint64
	Mean, StdDev, Error, Ahead, AheadErr float64
}

const (
	magic           = "HLMS"
	version         = 3
	reportHeadSize  = 2*8 + 4 + 2
	measurementSize = 4*4 + 8*8
	tagSize         = 16

	// maxMeasurements is the largest number of measurements in a report: what fits a datagram of 1,400 bytes.
	maxMeasurements = (1400 - wire.Overhead - tagSize - reportHeadSize) / measurementSize
)

// A Key is the secret of the reports' tags. Printing it does not reveal it. Without a secret there are no tags.
type Key struct{ secret unique.Handle[string] }

// NewKey returns the Key of a secret, such as 16 random bytes.
func NewKey(secret string) Key { return Key{unique.Make(secret)} }

func (k Key) empty() bool { return k == Key{} || k.secret.Value() == "" }

// Datagrams encodes a report in pieces of up to 1,400 bytes, none if it has no measurements. A [Station] takes
// each by itself. Each names its plan, and has a tag if there is a key. The error wraps [estimate.ErrConfig].
func (p *Plan) Datagrams(r Report, key Key) (all [][]byte, err error) {
	for part := range slices.Chunk(r.Measurements, maxMeasurements) {
		data, err := p.encode(Report{r.Monitor, r.Interval, part}, key)
		if err != nil {
			return nil, err
		}
		all = append(all, data)
	}
	return all, nil
}

// encode returns the encoding of a report that fits a datagram.
func (p *Plan) encode(r Report, key Key) ([]byte, error) {
	var all []encodedMeasurement
	for i := range r.Measurements {
		m := &r.Measurements[i]
		if err := m.check(); err != nil {
			return nil, err
		}
		all = append(all, encodedMeasurement{m.Segment, m.Sent, m.Lost, m.Delay.N, m.Delay.Mean, m.Delay.StdDev, m.Error, m.ahead, m.aheadError})
	}
	dst := wire.Begin(nil, magic, version)
	for _, part := range []any{reportHead{p.fingerprint, r.Interval, r.Monitor, uint16(len(all))}, all} {
		var err error
		if dst, err = binary.Append(dst, binary.BigEndian, part); err != nil {
			return nil, fmt.Errorf("mplane: %w", err)
		}
	}
	dst = wire.Seal(dst, 0)
	if !key.empty() {
		dst = append(dst, key.tag(dst)...)
	}
	return dst, nil
}

// tag authenticates a record.
func (k Key) tag(record []byte) []byte {
	h := hmac.New(sha256.New, []byte(k.secret.Value()))
	h.Write(record)
	return h.Sum(nil)[:tagSize]
}

// decodeReport decodes and checks a report that encode encoded with the same key. It also returns which
// network it is of. The error wraps [ErrForged] or [estimate.ErrEncoding].
func decodeReport(data []byte, key Key) (r Report, network uint64, err error) {
	if !key.empty() {
		record := data[:max(len(data)-tagSize, 0)]
		if !hmac.Equal(key.tag(record), data[len(record):]) {
			return r, 0, fmt.Errorf("mplane: %w", ErrForged)
		}
		data = record
	}
	b, err := wire.Open(data, magic, version)
	if err != nil {
		return Report{}, 0, fmt.Errorf("mplane: %w", err)
	}
	var head reportHead
	body := b.Bytes(b.Len())
	n, err := binary.Decode(body, binary.BigEndian, &head)
	if err != nil || len(body)-n != int(head.Count)*measurementSize || head.Count > maxMeasurements {
		return Report{}, 0, fmt.Errorf("mplane: %w: %d bytes of %d measurements", estimate.ErrEncoding, len(body), head.Count)
	}
	all := make([]encodedMeasurement, head.Count)
	_, err = binary.Decode(body[n:], binary.BigEndian, all)
	r = Report{Interval: head.Interval, Monitor: head.Monitor}
	for _, e := range all {
		m := Measurement{Segment: e.Segment, Sent: e.Sent, Lost: e.Lost, Delay: estimate.Delay{Mean: e.Mean, StdDev: e.StdDev, N: e.Packets},
			Error: e.Error, ahead: e.Ahead, aheadError: e.AheadErr}
		err = cmp.Or(err, m.check())
		r.Measurements = append(r.Measurements, m)
	}
	if err != nil {
		return Report{}, 0, fmt.Errorf("mplane: %w: %w", estimate.ErrEncoding, err)
	}
	return r, head.Network, nil
}
