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
//	flows 4 · buckets 2 · floor 8
//	counts          8 each, in the order of Counts
//	quality         14 words of 8, in the order of its fields
//	origin          8, the mean of all delays, rounded down; 0 without any
//	total           gaps 2 · count 6 · sum 8 · squares 16 · error 8 · doubtful 4
//	number of flows 4
//	for each flow, by ascending hash: hash 8 · the same as for the total · histogram 4 each bucket
//
// Sums are of the delays less the origin. What is no whole number is the bits of
// a float64.
const (
	magic   = "HRLI"
	version = 6

	// decodedShare limits the memory that an encoded Config may ask for, in
	// lengths of the encoding, if that is more than the receiver's own memory.
	decodedShare = 64

	configSize  = 8 + 4 + 8 + 4 + 1 + 4 + 4 + 4 + 2 + 8
	sumsSize    = 8 + 8 + 16 + 8 + 4
	qualitySize = 8 * qualityFields
)

var (
	_ encoding.BinaryMarshaler   = (*Receiver)(nil)
	_ encoding.BinaryAppender    = (*Receiver)(nil)
	_ encoding.BinaryUnmarshaler = (*Receiver)(nil)
)

// AppendBinary appends the encoding to dst. It leaves out packets that wait
// for a reference: call Flush first. The error is always nil.
func (r *Receiver) AppendBinary(dst []byte) ([]byte, error) {
	start := len(dst)
	dst = wire.Begin(dst, magic, version)
	dst = r.config.append(dst)
	for _, n := range r.counts.list() {
		dst = wire.AppendUint(dst, *n, 8)
	}
	for _, x := range r.quality.list() {
		dst = wire.AppendUint(dst, math.Float64bits(*x), 8)
	}
	origin, step := r.meanOrigin()
	dst = wire.AppendUint(dst, uint64(origin), 8)
	dst = r.appendSums(dst, r.total, step)
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
		dst = r.appendSums(dst, r.flows.records[i], step)
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

func (r *Receiver) appendSums(dst []byte, sums record, step int64) []byte {
	r.seal(&sums)
	sums.shift(step)
	for _, v := range [...]uint64{sums.tally, uint64(sums.sum), sums.squares.high, sums.squares.low, math.Float64bits(sums.error)} {
		dst = wire.AppendUint(dst, v, 8)
	}
	return wire.AppendUint(dst, uint64(sums.doubtful), 4)
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
	dst = wire.AppendUint(dst, uint64(c.Buckets), 2)
	return wire.AppendUint(dst, uint64(c.Floor), 8)
}

// size returns the number of bytes in the encoding of the given number of
// flows.
func (c *Config) size(flows int64) int64 {
	buckets := int64(c.Buckets)
	return wire.Overhead + configSize + 8*countFields + qualitySize + 8 + sumsSize + 4 + flows*(8+sumsSize+4*buckets)
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
	for _, x := range b.quality.list() {
		signed := x == &b.quality.sum || x == &b.quality.common
		if *x = math.Float64frombits(d.Uint64()); !(math.Abs(*x) <= math.MaxFloat64) || *x < 0 && !signed {
			return nil, malformed("%v in what references show", *x)
		}
	}
	b.centre = int64(d.Uint64())
	if b.total, err = readSums(&d); err != nil {
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
		sums, err := readSums(d)
		if err != nil {
			return err
		}
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
		Buckets:        int(d.Uint16()),
		Floor:          int64(d.Uint64()),
	}
}

func readSums(d *wire.Reader) (record, error) {
	sums := record{tally: d.Uint64(), sum: int64(d.Uint64()), squares: wide{d.Uint64(), d.Uint64()}}
	sums.error = math.Float64frombits(d.Uint64())
	sums.doubtful = d.Uint32()
	if !(sums.error >= 0 && sums.error <= math.MaxFloat64) {
		return sums, malformed("a predicted error of %v", sums.error)
	}
	return sums, nil
}
