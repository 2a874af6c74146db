package rli

import (
	"cmp"
	"encoding"
	"fmt"
	"math"
	"slices"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/wire"
)

// The encoding holds what was measured, and nothing about the link.
// Big-endian, between the head and the CRC-32C of package wire:
//
//	identity 8 · injector 4 · rate 8 · reference bytes 4 · method 1 · tolerance 4 · buffer 4 ·
//	flows 4 · sample 8 · hold 8 · inactive 8 · active 8 · buckets 2 · floor 8 · overhead 2 · tuples 1 · histograms 4
//	counts          8 each, in the order of Counts
//	origin          8, the mean of all delays, rounded down; 0 without any
//	residuals       packets 8 · weights 8 · sum 8 · squares 16
//	total           gaps 2 · count 6 · first 8 · last 8 · bytes 8 · sum 8 · squares 16
//	total histogram 8 each bucket
//	shared          of each histogram: scale 1 · 2 each bucket
//	number of flows 4
//	for each flow, by ascending hash: hash 8 · tuple 37, if tuples are kept · the
//	same as for the total, but for histograms of 4 bytes each bucket
//
// Sums are of the delays less the origin.
const (
	magic   = "HRLI"
	version = 5

	// decodedShare limits the memory that an encoded Config may ask for, in
	// lengths of the encoding, if that is more than the receiver's own memory.
	decodedShare = 64

	configSize = 8 + 4 + 8 + 4 + 1 + 4 + 4 + 4 + 8 + 8 + 8 + 8 + 2 + 8 + 2 + 1 + 4
	sumsSize   = recordSize - 8

	residualsSize = 40
)

var (
	_ encoding.BinaryMarshaler   = (*Receiver)(nil)
	_ encoding.BinaryAppender    = (*Receiver)(nil)
	_ encoding.BinaryUnmarshaler = (*Receiver)(nil)
)

// AppendBinary appends the encoding to dst. It leaves out packets that wait
// for a reference: call Flush first. Equal measurements give equal bytes, in
// whatever order they were made. The error is always nil.
func (r *Receiver) AppendBinary(dst []byte) ([]byte, error) {
	start := len(dst)
	dst = wire.Begin(dst, magic, version)
	dst = r.config.append(dst)
	for _, n := range r.counts.list() {
		dst = wire.AppendUint(dst, *n, 8)
	}
	for _, v := range [...]uint64{r.residuals.packets, r.residuals.weights, uint64(r.residuals.sum), r.residuals.squares.high,
		r.residuals.squares.low} {
		dst = wire.AppendUint(dst, v, 8)
	}
	origin, step := r.meanOrigin()
	dst = wire.AppendUint(dst, uint64(origin), 8)
	dst = appendSums(dst, r.total, step)
	for _, n := range r.histogram {
		dst = wire.AppendUint(dst, n, 8)
	}

	dst = r.shared.append(dst)
	used := make([]int, 0, r.flows.used)
	for i := range r.flows.records {
		if r.flows.records[i].count() > 0 {
			used = append(used, i)
		}
	}
	slices.SortFunc(used, func(a, b int) int {
		return cmp.Compare(r.flows.records[a].flow, r.flows.records[b].flow)
	})
	dst = wire.AppendUint(dst, uint64(len(used)), 4)
	for _, i := range used {
		dst = wire.AppendUint(dst, uint64(r.flows.records[i].flow), 8)
		if r.config.Tuples {
			dst = r.flows.tuples[i].Append(dst)
		}
		dst = appendSums(dst, r.flows.records[i], step)
		for _, n := range r.flows.histogram(i) {
			dst = wire.AppendUint(dst, uint64(n), 4)
		}
	}
	return wire.Seal(dst, start), nil
}

// meanOrigin returns the origin of the encoding, and how far it is below the
// receiver's.
func (r *Receiver) meanOrigin() (origin, step int64) {
	if r.total.count() == 0 {
		return 0, 0
	}
	mean := floorDivide(r.total.sum, int64(r.total.count()))
	return r.centre + mean, -mean
}

func appendSums(dst []byte, sums record, step int64) []byte {
	sums.shift(step)
	for _, v := range [...]uint64{sums.tally, uint64(sums.first), uint64(sums.last), sums.bytes, uint64(sums.sum), sums.squares.high,
		sums.squares.low} {
		dst = wire.AppendUint(dst, v, 8)
	}
	return dst
}

func (c *Config) append(dst []byte) []byte {
	dst = wire.AppendUint(dst, c.Identity, 8)
	dst = wire.AppendUint(dst, uint64(c.Injector), 4)
	dst = wire.AppendUint(dst, uint64(c.Rate), 8)
	dst = wire.AppendUint(dst, uint64(c.ReferenceBytes), 4)
	dst = append(dst, uint8(c.Method))
	dst = wire.AppendUint(dst, uint64(c.Tolerance), 4)
	dst = wire.AppendUint(dst, uint64(c.Buffer), 4)
	dst = wire.AppendUint(dst, uint64(c.Flows), 4)
	dst = wire.AppendUint(dst, math.Float64bits(c.Sample), 8)
	dst = wire.AppendUint(dst, math.Float64bits(c.Hold), 8)
	dst = wire.AppendUint(dst, uint64(c.Inactive), 8)
	dst = wire.AppendUint(dst, uint64(c.Active), 8)
	dst = wire.AppendUint(dst, uint64(c.Buckets), 2)
	dst = wire.AppendUint(dst, uint64(c.Floor), 8)
	dst = wire.AppendUint(dst, uint64(c.Overhead), 2)
	dst = wire.AppendBits(dst, uint64(c.tuples()/hashing.TupleSize), 1)
	return wire.AppendUint(dst, uint64(c.Histograms), 4)
}

// size returns the number of bytes in the encoding of the given number of
// flows.
func (c *Config) size(flows int64) int64 {
	buckets, own := int64(c.Buckets), int64(c.buckets())
	return wire.Overhead + configSize + 8*countFields + residualsSize + 8 + sumsSize + 8*buckets + int64(c.Histograms)*(1+2*buckets) + 4 +
		flows*(8+c.tuples()+sumsSize+4*own)
}

// tuples returns the number of bytes that a tuple takes in a flow's record.
func (c *Config) tuples() int64 {
	if c.Tuples {
		return hashing.TupleSize
	}
	return 0
}

// MarshalBinary returns the encoding. The error is always nil.
func (r *Receiver) MarshalBinary() ([]byte, error) {
	return r.AppendBinary(make([]byte, 0, r.config.size(int64(r.flows.used))))
}

// UnmarshalBinary replaces r's configuration and measurements with the encoded
// ones, and forgets the link, the references and the packets that wait. The
// error wraps [estimate.ErrEncoding]; r is then unchanged.
//
// It allocates what the encoded Config asks for, [Config.MemorySize], which
// can be far more than the length of the encoding. It refuses more than r's own
// Config takes, that of a zero Receiver being [DefaultConfig], unless it is at
// most 64 times the length of the encoding.
func (r *Receiver) UnmarshalBinary(data []byte) error {
	b, err := r.decode(data)
	if err != nil {
		return fmt.Errorf("rli: %w", err)
	}
	if r.tracker != nil {
		b.key = r.key
	}
	*r = *b
	return nil
}

func (r *Receiver) decode(data []byte) (*Receiver, error) {
	d, err := wire.Open(data, magic, version)
	if err != nil {
		return nil, err
	}
	c := readConfig(&d)
	if err := c.Validate(); err != nil {
		return nil, malformed("%w", err)
	}
	// The flows take at least their own lengths, so check their number first.
	flows := (int64(len(data)) - c.size(0)) / (c.size(1) - c.size(0))
	if flows < 0 || flows > int64(c.Flows) {
		return nil, malformed("%d bytes do not hold up to %d flows", len(data), c.Flows)
	}
	if err := d.Expect(c.size(flows) - wire.Overhead - configSize); err != nil {
		return nil, err
	}
	own := DefaultConfig
	if r.tracker != nil {
		own = r.config
	}
	if most := max(own.memory(), decodedShare*int64(len(data))); c.memory() > most {
		return nil, malformed("a receiver of %d bytes of memory, want up to %d: decode into one that was made with its Config", c.memory(), most)
	}
	b, err := NewReceiver(c)
	if err != nil {
		return nil, err
	}
	for _, n := range b.counts.list() {
		*n = d.Uint64()
	}
	b.residuals = residuals{d.Uint64(), d.Uint64(), int64(d.Uint64()), wide{d.Uint64(), d.Uint64()}}
	b.centre = int64(d.Uint64())
	b.total = readSums(&d)
	for i := range b.histogram {
		b.histogram[i] = d.Uint64()
	}
	if err := b.shared.decode(&d); err != nil {
		return nil, err
	}
	switch sum := b.total.sum; {
	case b.total.count() == 0 && (b.total != record{} || b.centre != 0):
		return nil, malformed("delays of no packets")
	case b.total.count() > 0 && uint64(sum) >= b.total.count():
		return nil, malformed("delays of %d packets less their origin add up to %d, want the mean rounded down", b.total.count(), sum)
	}
	if n := d.Uint32(); int64(n) != flows {
		return nil, malformed("%d flows, room for %d", n, flows)
	}
	if err := b.decodeFlows(&d, flows); err != nil {
		return nil, err
	}
	return b, d.Close()
}

func (r *Receiver) decodeFlows(d *wire.Reader, flows int64) error {
	packets := uint64(0)
	before := hashing.Flow(0)
	for i := range flows {
		f := hashing.Flow(d.Uint64())
		if i > 0 && f <= before {
			return malformed("flow %#016x after %#016x", uint64(f), uint64(before))
		}
		before = f
		at := r.flows.find(f)
		if r.config.Tuples {
			r.flows.tuples[at] = readTuple(d)
		}
		sums := readSums(d)
		histogram := r.flows.histogram(at)
		for k := range histogram {
			histogram[k] = d.Uint32()
		}
		sums.flow = f
		if sums.count() == 0 || sums.count() > r.total.count()-packets {
			return malformed("%d packets of flow %d of %d in all", sums.count(), i, r.total.count())
		}
		packets += sums.count()
		r.flows.claim(at, f)
		r.flows.records[at] = sums
	}
	return nil
}

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{estimate.ErrEncoding}, args...)...)
}

func readConfig(d *wire.Reader) Config {
	return Config{
		Identity:       d.Uint64(),
		Injector:       d.Uint32(),
		Rate:           int64(d.Uint64()),
		ReferenceBytes: d.Size(),
		Method:         Method(d.Uint8()),
		Tolerance:      int64(d.Uint32()),
		Buffer:         d.Size(),
		Flows:          d.Size(),
		Sample:         math.Float64frombits(d.Uint64()),
		Hold:           math.Float64frombits(d.Uint64()),
		Inactive:       int64(d.Uint64()),
		Active:         int64(d.Uint64()),
		Buckets:        int(d.Uint16()),
		Floor:          int64(d.Uint64()),
		Overhead:       int(d.Uint16()),
		Tuples:         d.Bits(1) == 1,
		Histograms:     d.Size(),
	}
}

func readSums(d *wire.Reader) record {
	sums := record{
		tally: d.Uint64(),
		first: int64(d.Uint64()),
		last:  int64(d.Uint64()),
		bytes: d.Uint64(),
		sum:   int64(d.Uint64()),
	}
	sums.squares = wide{d.Uint64(), d.Uint64()}
	return sums
}

// readTuple reads what hashing.Tuple.Append appended.
func readTuple(d *wire.Reader) (t hashing.Tuple) {
	copy(t.Src[:], d.Bytes(16))
	copy(t.Dst[:], d.Bytes(16))
	t.SrcPort, t.DstPort, t.Proto = d.Uint16(), d.Uint16(), d.Uint8()
	return t
}

func (s *shared) append(dst []byte) []byte {
	for at, scale := range s.scales {
		dst = append(dst, scale)
		for _, n := range s.histogram(at) {
			dst = wire.AppendUint(dst, uint64(n), 2)
		}
	}
	return dst
}

func (s *shared) decode(d *wire.Reader) error {
	for at := range s.scales {
		if s.scales[at] = d.Uint8(); s.scales[at] > maxScale {
			return malformed("a scale of %d, want 0 to %d", s.scales[at], maxScale)
		}
		histogram := s.histogram(at)
		for i := range histogram {
			histogram[i] = d.Uint16()
		}
	}
	return nil
}
