package lds

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/wire"
)

// The record of a Table, big-endian:
//
//	magic "HLDT", version 2
//	identity 8 · number of the interval 8 · its beginning 8 (ns, signed)
//	flows 4 · sum bits 1 · digest bits 1
//	for each bucket: flows 1
//	    for each flow, by rising hash: hash 8 · packets before it was admitted 4
//	        · for each of three cells: sum · count 4 · digest
//	CRC-32C 4, with sums and digests as in the record of a sketch
const (
	tableMagic   = "HLDT"
	tableVersion = 2
)

// AppendBinary appends the table's encoding to b. The error is always nil.
func (t *Table) AppendBinary(b []byte) ([]byte, error) {
	made(t.buckets > 0, "Table")
	c, start := &t.config, len(b)
	b = wire.Begin(b, tableMagic, tableVersion)
	b = binary.BigEndian.AppendUint64(b, c.Identity)
	b = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, t.stamp.number), uint64(t.stamp.began))
	b = binary.BigEndian.AppendUint32(b, uint32(c.Flows))
	b = append(b, c.SumBits, c.DigestBits)
	for first := 0; first < c.Flows; first += bucketFlows {
		b = t.appendBucket(b, first)
	}
	return wire.Seal(b, start), nil
}

func (c *TableConfig) encodedBytes() int { return 39 + c.Flows/bucketFlows + c.Flows*c.flowBytes() }

// appendBucket appends the flows of a bucket by their hashes, so that equal tables give equal bytes.
func (t *Table) appendBucket(b []byte, first int) []byte {
	var rooms [bucketFlows]int
	used := rooms[:0]
	for i := first; i < first+bucketFlows; i++ {
		if t.keys[i] != 0 {
			used = append(used, i)
		}
	}
	slices.SortFunc(used, func(i, j int) int { return cmp.Compare(t.keys[i], t.keys[j]) })
	b = append(b, uint8(len(used)))
	for _, i := range used {
		r := &t.rooms[i]
		b = binary.BigEndian.AppendUint64(b, uint64(t.keys[i]))
		b = binary.BigEndian.AppendUint32(b, r.before)
		for _, cell := range r.cells {
			b = cell.appendTo(b, t.config.SumBits, t.config.DigestBits)
		}
	}
	return b
}

// MarshalBinary returns the table's encoding. The error is always nil.
func (t *Table) MarshalBinary() ([]byte, error) { return t.AppendBinary(nil) }

// UnmarshalBinary replaces the table and its Config with the decoded ones. On error, which wraps [estimate.ErrEncoding], it is unchanged.
func (t *Table) UnmarshalBinary(data []byte) error {
	r, err := wire.Open(data, tableMagic, tableVersion)
	if err != nil {
		return fmt.Errorf("lds: %w", err)
	}
	identity, of := r.Uint64(), stamp{r.Uint64(), int64(r.Uint64())}
	c := TableConfig{Identity: identity, Flows: r.Size(), SumBits: r.Uint8(), DigestBits: r.Uint8()}
	if r.Len() < c.Flows/bucketFlows { // at least, before anything is allocated
		return fmt.Errorf("lds: %w: %d bytes for %d flows", estimate.ErrEncoding, r.Len(), c.Flows)
	}
	decoded, err := NewTable(c)
	if err != nil {
		return fmt.Errorf("%w: %w", err, estimate.ErrEncoding)
	}
	decoded.stamp = of
	for first := 0; first < c.Flows; first += bucketFlows {
		if !decoded.readBucket(&r, first) {
			return fmt.Errorf("lds: %w: bucket %d", estimate.ErrEncoding, first/bucketFlows)
		}
	}
	if err := r.Close(); err != nil {
		return fmt.Errorf("lds: %w", err)
	}
	*t = *decoded
	return nil
}

func (t *Table) readBucket(r *wire.Reader, first int) bool {
	used := int(r.Uint8())
	if used > bucketFlows {
		return false
	}
	last := hashing.Flow(0)
	for i := first; i < first+used; i++ {
		f := hashing.Flow(r.Uint64())
		if f <= last || t.bucket(f)*bucketFlows != first {
			return false
		}
		last, t.keys[i], t.rooms[i].before = f, f, r.Uint32()
		for k := range t.rooms[i].cells {
			t.rooms[i].cells[k] = readCell(r, t.config.SumBits, t.config.DigestBits)
		}
	}
	return true
}
