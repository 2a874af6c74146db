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
	Columns  int    // cells in each of the three rows, 1 to maxColumns
}

// DefaultKeyedConfig holds 26,950 flows an interval in 840 kB.
var DefaultKeyedConfig = KeyedConfig{Columns: 11667}

const (
	// Three rows need the fewest cells a flow. With many cells, peeling begins
	// to fail at 0.818 flows a cell.
	keyedRows     = 3
	keyedFlows    = 0.77 // a cell
	keyedCellSize = 24
	keyBits       = 45
)

// Validate reports what is out of range. The error wraps [estimate.ErrConfig].
func (c *KeyedConfig) Validate() error {
	if c.Columns < 1 || c.Columns > maxColumns {
		return estimate.Invalid("lds", "Columns", c.Columns, fmt.Sprintf("1 to %d", maxColumns))
	}
	return nil
}

// MemorySize returns the number of bytes that the cells take in memory.
func (c *KeyedConfig) MemorySize() int { return keyedRows * keyedCellSize * c.Columns }

// EncodedSize returns the size of a sketch's encoding in bytes.
func (c *KeyedConfig) EncodedSize() int { return 5 + 8 + stampBytes + 4 + c.MemorySize() + 4 }

// Flows returns how many flows a sketch can hold: three deviations less than
// 0.77 a cell. If there are only a few flows, two of them may share all three
// cells and not come apart: with probability 1 % for 200 flows, 0.2 % for
// 3,000. Peel says so.
func (c *KeyedConfig) Flows() int {
	n := keyedRows * float64(c.Columns)
	return max(0, int(keyedFlows*n-3*math.Sqrt(n)))
}

// PlanKeyed returns the smallest KeyedConfig for the given number of flows.
func PlanKeyed(flows int) (KeyedConfig, error) {
	if flows < 1 {
		return KeyedConfig{}, estimate.Invalid("lds", "flows", flows, "1 or more")
	}
	var c KeyedConfig
	for c.Columns = max(1, int(float64(flows)/keyedFlows/keyedRows)); c.Flows() < flows; c.Columns++ {
	}
	return c, c.Validate()
}

// Keyed is a sketch that returns its flows: which were present, how many
// packets each sent and lost, and how long they took, exactly and without flow
// records. It can do so for a limited number of flows ([KeyedConfig.Flows]).
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
	config KeyedConfig
	cells  []keyedCell
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
	return &Keyed{config: c, cells: make([]keyedCell, keyedRows*c.Columns)}, nil
}

// NewKeyedRotation returns two empty sketches in turn, for one interval after
// another. The error wraps [estimate.ErrConfig].
func NewKeyedRotation(c KeyedConfig) (*estimate.Rotation[*Keyed], error) {
	return estimate.NewRotation(func() (*Keyed, error) { return NewKeyed(c) })
}

// Config returns the configuration that the sketch was made with.
func (s *Keyed) Config() KeyedConfig { return s.config }

// keyOf returns a flow's key, and the word that cells sum up: the key and 16
// bits derived from it, which a mixture of flows matches only by chance.
func keyOf(f hashing.Flow) (key hashing.Flow, checked uint64) {
	key = f >> (64 - keyBits) << (64 - keyBits)
	return key, uint64(key)>>(64-keyBits)<<16 | hashing.Mix(uint64(key), keyedRows)>>48
}

// places returns the cells of a key.
func (s *Keyed) places(key hashing.Flow) (i, j, k uint64) {
	columns := uint64(s.config.Columns)
	i, j = split(flowWord(key, 0), columns)
	k, _ = split(flowWord(key, 1), columns)
	return i, columns + j, 2*columns + k
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
		return fmt.Errorf("lds: %w: %+v and %+v", estimate.ErrMismatch, s.config, b.config)
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
//	magic "HLDK", version 2
//	identity 8 · number of the interval 8 · its beginning 8 (ns, signed) · columns 4
//	cells, row by row: sum 8 · digest 4 · count 4 · keys 8, below 2^61 − 1
//	CRC-32C 4
const (
	keyedMagic   = "HLDK"
	keyedVersion = 2
)

// AppendBinary appends the sketch's encoding to b. The error is always nil.
func (s *Keyed) AppendBinary(b []byte) ([]byte, error) {
	start := len(b)
	b = wire.Begin(b, keyedMagic, keyedVersion)
	b = binary.BigEndian.AppendUint64(b, s.config.Identity)
	b = s.stamp.appendTo(b)
	b = binary.BigEndian.AppendUint32(b, uint32(s.config.Columns))
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
	c := KeyedConfig{Identity: identity, Columns: r.Size()}
	if err := c.Validate(); err != nil {
		return fmt.Errorf("%w: %w", err, estimate.ErrEncoding)
	}
	if err := r.Expect(int64(c.MemorySize())); err != nil {
		return fmt.Errorf("lds: cells: %w", err)
	}
	cells := make([]keyedCell, keyedRows*c.Columns)
	for i := range cells {
		cells[i] = keyedCell{cell{r.Uint64(), r.Uint64()}, r.Uint64()}
		if cells[i].keys >= keyPrime {
			return fmt.Errorf("lds: %w: keys of cell %d are beyond their modulus", estimate.ErrEncoding, i)
		}
	}
	if err := r.Close(); err != nil {
		return fmt.Errorf("lds: %w", err)
	}
	s.config, s.cells, s.stamp = c, cells, of
	return nil
}
