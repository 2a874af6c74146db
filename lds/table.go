package lds

import (
	"cmp"
	"fmt"
	"math"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/wire"
)

// A TableConfig holds the size of a [Table] and the identity of its digests. It is comparable.
type TableConfig struct {
	Identity   uint64 // identifies what packets and flows are hashed with; see Config
	Flows      int    // how many a table holds, a multiple of 8, up to 2^26
	SumBits    uint8  // width of a time stamp sum on the wire, 1 to 64; see Config
	DigestBits uint8  // width of a digest on the wire, 0 to 32; see Config
}

// DefaultTableConfig holds 16,000 flows in 880 kB, 55 bytes for each.
var DefaultTableConfig = TableConfig{Flows: 16000, SumBits: 56, DigestBits: 16}

const (
	bucketFlows = 8 // a cache line of keys
	flowCells   = 3
	mostHeld    = 1 << 26
)

// Validate reports what is out of range. The error wraps [estimate.ErrConfig].
func (c *TableConfig) Validate() error {
	if c.Flows%bucketFlows != 0 {
		return estimate.Invalid("lds", "Flows", c.Flows, fmt.Sprintf("a multiple of %d", bucketFlows))
	}
	return cmp.Or(within("Flows", c.Flows, bucketFlows, mostHeld), within("SumBits", c.SumBits, 1, 64),
		within("DigestBits", c.DigestBits, 0, 32))
}

func (c *TableConfig) flowBytes() int {
	return 8 + 2*4 + flowCells*(wire.BytesOf(c.SumBits)+countBytes+wire.BytesOf(c.DigestBits))
}

// A Table holds some flows, each in cells of its own (sample and hold): no neighbour disturbs them, and the mean of a flow that
// lost no packet is exact. For the same memory it holds a tenth to a half of the flows that a [Sketch] answers for.
//
//	up, err := lds.NewTable(lds.DefaultTableConfig)
//	up.Update(tuple.Flow(seed), hashing.Digest(seed, packet), time.Now().UnixNano())
//	result, err := lds.EstimateTable(up, down, tuple.Flow(seed))
//
// Both points hold the same flows without markers or negotiation. Every packet of a flow draws a number by its
// hash, and the lowest counts. Of flows that do not fit together, those with the lowest numbers stay, in
// whatever order packets arrive; large flows, which draw often, nearly always stay. A flow that arrives while
// there is room is held from its first packet on; any other from the packet that drew low enough.
//
// [Table.Hold] keeps rooms for flows that are known to be large: with room for 16,500 of a million flows, 99 % of those of 1,000
// packets or more have one in its fifth interval, and 88 % in its first (ours-lds-table).
//
// A flow has three cells: of nine tenths of its packets, of nine hundredths, and of one. A loss spoils one.
//
// A Table is not safe for concurrent use: keep one per goroutine, give each flow to one, and Merge them. A flow
// whose hash is 0 is never held. The zero value panics except in UnmarshalBinary.
type Table struct {
	config  TableConfig
	buckets uint64
	keys    []hashing.Flow // 0: a free room
	rooms   []room
	limits  []uint32 // by bucket: the number that a new flow has to draw below
	stamp
}

// A room has what is known about the flow that is in it.
type room struct {
	rank  uint32 // the lowest number that it drew, 0 for one that Hold put there
	entry uint32 // the limit below which it drew to be admitted
	cells [flowCells]cell
}

const noLimit = math.MaxUint32

// NewTable returns an empty table. The error wraps [estimate.ErrConfig].
func NewTable(c TableConfig) (*Table, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	n := c.Flows / bucketFlows
	t := &Table{config: c, buckets: uint64(n), keys: make([]hashing.Flow, c.Flows), rooms: make([]room, c.Flows), limits: make([]uint32, n)}
	t.Reset()
	return t, nil
}

// Config returns the configuration that the table was made with.
func (t *Table) Config() TableConfig { return t.config }

// Update records that packet p of flow f passed at a time in nanoseconds.
func (t *Table) Update(f hashing.Flow, p hashing.Packet, at int64) {
	bucket := t.bucket(f)
	drawn := hashing.Mix(uint64(p), MaxRows)
	for i, key := range (*[bucketFlows]hashing.Flow)(t.keys[bucket*bucketFlows:]) {
		if key == f {
			r := &t.rooms[bucket*bucketFlows+i]
			if uint32(drawn) < r.rank {
				r.rank = max(1, uint32(drawn))
				t.limit(bucket)
			}
			r.cells[cellOf(drawn)].add(uint64(at), tally(p))
			return
		}
	}
	if uint32(drawn) < t.limits[bucket] {
		if r := t.admit(f, bucket, max(1, uint32(drawn))); r != nil {
			r.cells[cellOf(drawn)].add(uint64(at), tally(p))
		}
	}
}

// cellOf returns the cell of a packet, from the high half of what it drew.
func cellOf(drawn uint64) int {
	switch drawn >>= 32; {
	case drawn < hundredth:
		return 2
	case drawn < tenth:
		return 1
	}
	return 0
}

var tenth, hundredth = hashing.Threshold(0.1), hashing.Threshold(0.01)

// limit sets the limit of a bucket: the highest rank, or none if there is room.
func (t *Table) limit(bucket int) {
	t.limits[bucket] = 0
	for i := bucket * bucketFlows; i < (bucket+1)*bucketFlows; i++ {
		if t.limits[bucket] = max(t.limits[bucket], t.rooms[i].rank); t.keys[i] == 0 {
			t.limits[bucket] = noLimit
		}
	}
}

// admit gives a flow a room, if need be that of the flow with the highest rank, or nil if that is not higher.
func (t *Table) admit(f hashing.Flow, bucket int, rank uint32) *room {
	limit := t.limits[bucket]
	for i := bucket * bucketFlows; i < (bucket+1)*bucketFlows; i++ {
		r := &t.rooms[i]
		if t.keys[i] == 0 && f != 0 || limit != noLimit && r.rank == limit && rank < limit {
			t.keys[i], *r = f, room{rank: rank, entry: limit}
			t.limit(bucket)
			return r
		}
	}
	return nil
}

func (t *Table) bucket(f hashing.Flow) int {
	made(t.buckets > 0, "Table")
	b, _ := split(flowWord(f, 0), t.buckets)
	return int(b)
}

func (t *Table) room(f hashing.Flow) *room {
	first := t.bucket(f) * bucketFlows
	for i, key := range t.keys[first : first+bucketFlows] {
		if key == f && f != 0 {
			return &t.rooms[first+i]
		}
	}
	return nil
}

// Hold empties the table for another interval, and reserves room for flows, which keep it whatever else arrives and are held from
// their first packet on. At both points these should be the same flows: those that were large in an earlier interval, by
// [Table.Flows] or [Sketch.Packets]. A flow that only one point holds has no answer. A bucket has room for eight flows and no more.
func (t *Table) Hold(flows []hashing.Flow) {
	t.Reset()
	for _, f := range flows {
		if t.room(f) == nil {
			t.admit(f, t.bucket(f), 0)
		}
	}
}

// Flows returns the flows that are held and have had at least that many packets since.
func (t *Table) Flows(packets uint64) (flows []hashing.Flow) {
	for i, key := range t.keys {
		if key != 0 && t.rooms[i].packets() >= packets {
			flows = append(flows, key)
		}
	}
	return flows
}

func (r *room) packets() uint64 {
	return uint64(r.cells[0].count()) + uint64(r.cells[1].count()) + uint64(r.cells[2].count())
}

// Merge adds another shard of the same point, with other flows; t then holds the flows that a single table would hold that saw all
// packets. Shards are less crowded and admit flows earlier, so both points should have the same number of shards, or some flows
// seem to have lost packets. The error wraps [estimate.ErrMismatch] if the Configs differ; t is then unchanged.
func (t *Table) Merge(b *Table) error {
	made(t != nil && b != nil && t.buckets > 0, "Table")
	if t.config != b.config {
		return mismatch(t.config, b.config)
	}
	t.join(b.stamp)
	for i, f := range b.keys {
		if f == 0 {
			continue
		}
		from, to := &b.rooms[i], t.room(f)
		if to == nil {
			if to = t.admit(f, t.bucket(f), from.rank); to == nil {
				continue
			}
			to.entry = from.entry
		}
		to.entry = min(to.entry, from.entry)
		to.rank = min(to.rank, from.rank)
		t.limit(t.bucket(f))
		for k, c := range from.cells {
			to.cells[k].add(c.sum, c.tally)
		}
	}
	return nil
}

// Reset empties the table for another interval.
func (t *Table) Reset() {
	clear(t.keys)
	clear(t.rooms)
	for i := range t.limits {
		t.limits[i] = noLimit
	}
	t.stamp = stamp{}
}
