package lds

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/wire"
)

// A KeyedConfig holds the size of a [Keyed] sketch and the identity of its
// digests. It is comparable.
type KeyedConfig struct {
	Identity uint64 // identifies what packets and flows are hashed with; see Config
	Flows    int    // how many flows it can hold, 1 to 2^23
}

const (
	// Three rows need the fewest cells a flow. With many cells, peeling begins
	// to fail at 0.818 flows a cell: beyond, more than half of the flows meet
	// others in all of their cells at once (M. Molloy, Random Structures &
	// Algorithms 27, 2005).
	keyedRows     = 3
	keyedFlows    = 0.77 // a cell
	keyedCellSize = 24
	keyBits       = 45
	mostKeyed     = 1 << 23
)

// Validate reports what is out of range. The error wraps [estimate.ErrConfig].
func (c *KeyedConfig) Validate() error {
	if c.Flows < 1 || c.Flows > mostKeyed {
		return estimate.Invalid("lds", "Flows", c.Flows, fmt.Sprintf("1 to %d", mostKeyed))
	}
	return nil
}

// columns returns the cells in each row: enough for three deviations more than
// Flows at 0.77 a cell.
func (c *KeyedConfig) columns() int {
	// With x² cells, 0.77·x² − 3·x flows.
	x := (3 + math.Sqrt(9+4*keyedFlows*float64(c.Flows))) / (2 * keyedFlows)
	return int(math.Ceil(x * x / keyedRows))
}

// MemorySize returns the number of bytes that the cells take in memory.
func (c *KeyedConfig) MemorySize() int { return keyedRows * keyedCellSize * c.columns() }

// EncodedSize returns the size of a sketch's encoding in bytes.
func (c *KeyedConfig) EncodedSize() int { return 5 + 8 + stampBytes + 4 + c.MemorySize() + 4 }

// Keyed is a sketch that returns its flows: which were present, how many
// packets each sent and lost, and how long they took, exactly and without flow
// records. It can do so for a limited number of flows, [KeyedConfig.Flows]. With a
// few per cent more it is still complete; from 6 % more on it returns half of them
// or fewer, exactly, and says how many packets the others have. If there are only a
// few flows, two of them may share all three cells and not come apart: with
// probability 1 % for 200 flows, 0.2 % for 3,000.
//
// Its cells sum up keys of flows beside time stamps, counts and digests. See
// [Peel].
//
// A key is the first 45 bits of a flow's digest. Two flows with the same key
// count as one; among 27,000 flows the probability that any two share a key is
// 0.00001.
//
// Keyed has a single writer and no locks: keep one sketch a goroutine and
// Merge them.
type Keyed struct {
	config  KeyedConfig
	columns uint64
	cells   []keyedCell
	stamp
}

// A keyedCell is a cell with the sum of its packets' keys, modulo keyPrime so
// that any count can divide it.
type keyedCell struct {
	cell
	keys uint64
}

// keyPrime is 2^61 − 1.
const keyPrime = 1<<61 - 1

// NewKeyed returns an empty sketch. The error wraps [estimate.ErrConfig].
func NewKeyed(c KeyedConfig) (*Keyed, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	n := c.columns()
	return &Keyed{config: c, columns: uint64(n), cells: make([]keyedCell, keyedRows*n)}, nil
}

// Config returns the configuration that the sketch was made with.
func (s *Keyed) Config() KeyedConfig { return s.config }

// keyOf returns a flow's key, and the word that cells sum up: the key and 16
// bits derived from it, which a mixture of flows matches only by chance.
func keyOf(f hashing.Flow) (key hashing.Flow, checked uint64) {
	key = f >> (64 - keyBits) << (64 - keyBits)
	return key, uint64(key)>>(64-keyBits)<<16 | hashing.Mix(uint64(key), keyedRows)>>48
}

// places returns the cells of a key. They do not rise with the key, or the mean of
// two keys in a cell would belong there, too.
func (s *Keyed) places(key hashing.Flow) (i, j, k uint64) {
	word := hashing.Flow(hashing.Mix(uint64(key), keyedRows+1))
	i, j = split(flowWord(word, 0), s.columns)
	k, _ = split(flowWord(word, 1), s.columns)
	return i, s.columns + j, 2*s.columns + k
}

// Update records that packet p of flow f passed at time t, in nanoseconds
// since an epoch that both points share.
func (s *Keyed) Update(f hashing.Flow, p hashing.Packet, t int64) {
	key, checked := keyOf(f)
	tally := tally(p, 1)
	i, j, k := s.places(key)
	s.cells[i].add(uint64(t), tally, checked)
	s.cells[j].add(uint64(t), tally, checked)
	s.cells[k].add(uint64(t), tally, checked)
}

// UpdateBatch records that the packets passed at the same time t; packets[i]
// belongs to flows[i]. It panics if there are fewer packets than flows.
func (s *Keyed) UpdateBatch(flows []hashing.Flow, packets []hashing.Packet, t int64) {
	packets = packets[:len(flows)]
	for i, f := range flows {
		s.Update(f, packets[i], t)
	}
}

func (c *keyedCell) add(sum, tally, keys uint64) {
	c.cell.add(sum, tally)
	x := c.keys + keys
	c.keys = x - keyPrime&-((keyPrime-1-x)>>63)
}

// Merge adds another shard of the same point, b, to s. The error wraps
// [estimate.ErrMismatch] if the Configs differ; s is then unchanged.
func (s *Keyed) Merge(b *Keyed) error {
	if s.config != b.config {
		return mismatch(s.config, b.config)
	}
	s.join(b.stamp)
	for i, c := range b.cells {
		s.cells[i].add(c.sum, c.tally, c.keys)
	}
	return nil
}

// Reset empties the sketch for another interval.
func (s *Keyed) Reset() {
	clear(s.cells)
	s.stamp = stamp{}
}

// The record of a Keyed sketch, big-endian:
//
//	magic "HLDK", version 3
//	identity 8 · number of the interval 8 · its beginning 8 (ns, signed) · flows 4
//	cells, row by row: sum 8 · digest 4 · count 4 · keys 8, below 2^61 − 1
//	CRC-32C 4
const (
	keyedMagic   = "HLDK"
	keyedVersion = 3
)

// AppendBinary appends the sketch's encoding to b. The error is always nil.
func (s *Keyed) AppendBinary(b []byte) ([]byte, error) {
	start := len(b)
	b = wire.Begin(b, keyedMagic, keyedVersion)
	b = binary.BigEndian.AppendUint64(b, s.config.Identity)
	b = s.stamp.appendTo(b)
	b = binary.BigEndian.AppendUint32(b, uint32(s.config.Flows))
	for _, c := range s.cells {
		b = binary.BigEndian.AppendUint64(b, c.sum)
		b = binary.BigEndian.AppendUint64(b, c.tally)
		b = binary.BigEndian.AppendUint64(b, c.keys)
	}
	return wire.Seal(b, start), nil
}

// MarshalBinary returns the sketch's encoding. The error is always nil.
func (s *Keyed) MarshalBinary() ([]byte, error) { return s.AppendBinary(nil) }

// UnmarshalBinary replaces the sketch, including its Config, with the decoded
// one. On error, which wraps [estimate.ErrEncoding], the sketch is unchanged.
func (s *Keyed) UnmarshalBinary(data []byte) error {
	r, err := wire.Open(data, keyedMagic, keyedVersion)
	if err != nil {
		return fmt.Errorf("lds: %w", err)
	}
	identity, of := r.Uint64(), readStamp(&r)
	c := KeyedConfig{Identity: identity, Flows: r.Size()}
	if err := c.Validate(); err != nil {
		return fmt.Errorf("%w: %w", err, estimate.ErrEncoding)
	}
	if err := r.Expect(int64(c.MemorySize())); err != nil {
		return fmt.Errorf("lds: cells: %w", err)
	}
	decoded, err := NewKeyed(c)
	if err != nil {
		return err
	}
	decoded.stamp = of
	for i := range decoded.cells {
		decoded.cells[i] = keyedCell{cell{r.Uint64(), r.Uint64()}, r.Uint64()}
		if decoded.cells[i].keys >= keyPrime {
			return fmt.Errorf("lds: %w: keys of cell %d are beyond their modulus", estimate.ErrEncoding, i)
		}
	}
	if err := r.Close(); err != nil {
		return fmt.Errorf("lds: %w", err)
	}
	*s = *decoded
	return nil
}
