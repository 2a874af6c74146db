package rli

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/wire"
)

// The encoding holds what was measured, and nothing about the link: SPEC.md, section 4.6.
const (
	magic        = "HRLI"
	version      = 18
	decodedShare = 64 // the memory that a Config may ask for beyond the receiver's own, in lengths of the encoding
	configFields = 7
	sumsFields   = 6
)

// size returns the number of bytes in the encoding of the given number of flows.
func (c *Config) size(flows int64) int64 {
	return wire.Overhead + 8*(configFields+countFields+qualityFields+sumsFields+1+flows*(1+sumsFields))
}

func (c *Config) words() [configFields]uint64 {
	return [...]uint64{c.Identity, uint64(c.Rate), uint64(c.Injector), uint64(c.ReferenceBytes), uint64(c.Method),
		uint64(c.Buffer), uint64(c.Flows)}
}

func (r *record) words() [sumsFields]uint64 {
	errors := uint64(math.Float32bits(r.error))<<32 | uint64(math.Float32bits(r.fourths))
	return [...]uint64{r.tally, uint64(r.base), uint64(r.sum), math.Float64bits(r.squares), errors, uint64(r.doubtful)}
}

func appendWords(dst []byte, words ...uint64) []byte {
	for _, w := range words {
		dst = wire.AppendUint(dst, w, 8)
	}
	return dst
}

func readWords(d *wire.Reader, words []uint64) {
	for i := range words {
		words[i] = d.Uint64()
	}
}

// AppendBinary appends the encoding to dst, without packets that wait: call Flush first. The error is always nil.
func (r *Receiver) AppendBinary(dst []byte) ([]byte, error) {
	made(r.tracker != nil, "Receiver")
	start := len(dst)
	config := r.config.words()
	dst = appendWords(wire.Begin(dst, magic, version), config[:]...)
	for _, n := range r.counts.list() {
		dst = appendWords(dst, *n)
	}
	for _, x := range r.quality.list() {
		dst = appendWords(dst, math.Float64bits(*x))
	}
	used := make([]record, 0, r.flows.used)
	for _, f := range r.flows.records {
		if f.count() > 0 {
			used = append(used, r.seal(f))
		}
	}
	slices.SortFunc(used, func(a, b record) int { return cmp.Compare(a.flow, b.flow) })
	total := r.seal(r.total)
	sums := total.words()
	dst = appendWords(appendWords(dst, sums[:]...), uint64(len(used)))
	for i := range used {
		sums = used[i].words()
		dst = appendWords(appendWords(dst, uint64(used[i].flow)), sums[:]...)
	}
	return wire.Seal(dst, start), nil
}

// MarshalBinary returns the encoding. The error is always nil.
func (r *Receiver) MarshalBinary() ([]byte, error) {
	return r.AppendBinary(make([]byte, 0, r.config.size(int64(r.flows.used))))
}

// UnmarshalBinary replaces r's configuration and measurements, and forgets the link, the references and the
// packets that wait. The error wraps [estimate.ErrEncoding]; r is then unchanged.
//
// It allocates the encoded Config's [Config.MemorySize], but no more than the greater of that of r's own Config
// ([DefaultConfig], if r is zero) and 64 times the encoding's length.
func (r *Receiver) UnmarshalBinary(data []byte) error {
	own := DefaultConfig
	if r.tracker != nil {
		own = r.config
	}
	b, err := decode(data, max(own.memory(), decodedShare*int64(len(data))))
	if err != nil {
		return fmt.Errorf("rli: %w", err)
	}
	if r.tracker != nil {
		b.key = r.key
	}
	*r = *b
	return nil
}

// decode returns a receiver that takes no more than most bytes of memory.
func decode(data []byte, most int64) (*Receiver, error) {
	d, err := wire.Open(data, magic, version)
	if err != nil {
		return nil, err
	}
	var w [configFields]uint64
	readWords(&d, w[:])
	c := Config{w[0], int64(w[1]), uint32(w[2]), int(w[3]), Method(w[4]), int(w[5]), int(w[6])}
	if c.words() != w {
		return nil, malformed("sizes of %d", w)
	}
	if err := c.Validate(); err != nil {
		return nil, malformed("%w", err)
	}
	// The flows take at least their own lengths, so check their number first.
	flows := (int64(len(data)) - c.size(0)) / (c.size(1) - c.size(0))
	if flows < 0 || flows > int64(c.Flows) {
		return nil, malformed("%d bytes do not hold up to %d flows", len(data), c.Flows)
	}
	if err := d.Expect(c.size(flows) - wire.Overhead - 8*configFields); err != nil {
		return nil, err
	}
	if c.memory() > most {
		return nil, malformed("a receiver of %d bytes of memory, want up to %d: decode into one that was made with its Config", c.memory(), most)
	}
	r, err := NewReceiver(c)
	if err != nil {
		return nil, err
	}
	if err := r.fill(&d, flows); err != nil {
		return nil, err
	}
	return r, d.Close()
}

func (r *Receiver) fill(d *wire.Reader, flows int64) error {
	for _, n := range r.counts.list() {
		*n = d.Uint64()
	}
	for _, x := range r.quality.list() {
		if *x = math.Float64frombits(d.Uint64()); !(math.Abs(*x) <= math.MaxFloat64) || *x < 0 && x != &r.quality.common && x != &r.quality.lean {
			return malformed("%v in what references show", *x)
		}
	}
	if err := r.total.read(d); err != nil {
		return err
	}
	room := r.total.count()
	if n := d.Uint64(); n != uint64(flows) || room == 0 && r.total != (record{}) {
		return malformed("%d packets of %d flows, room for %d", room, n, flows)
	}
	before := hashing.Flow(0)
	for i := range flows {
		f, sums := hashing.Flow(d.Uint64()), record{}
		if err := sums.read(d); err != nil {
			return err
		}
		if n := sums.count(); n == 0 || n > room || i > 0 && f <= before {
			return malformed("%d packets of flow %#016x after %#016x, want 1 to %d", n, uint64(f), uint64(before), room)
		}
		room -= sums.count()
		before, sums.flow = f, f
		at := r.flows.find(f)
		r.flows.claim(at, f)
		r.flows.records[at] = sums
	}
	return nil
}

func (r *record) read(d *wire.Reader) error {
	var w [sumsFields]uint64
	readWords(d, w[:])
	*r = record{tally: w[0], base: int64(w[1]), sum: int64(w[2]), squares: math.Float64frombits(w[3]),
		error: math.Float32frombits(uint32(w[4] >> 32)), fourths: math.Float32frombits(uint32(w[4])), doubtful: uint32(w[5])}
	exact := r.words() == w && (r.count() == 0 || uint64(r.sum) < r.count()) // the base is the mean, rounded down
	least, most := min(r.squares, float64(min(r.error, r.fourths))), max(r.squares, float64(max(r.error, r.fourths)))
	if !exact || !(least >= 0 && most <= math.MaxFloat64) {
		return malformed("sums of %d", w)
	}
	return nil
}

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{estimate.ErrEncoding}, args...)...)
}
