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

// DefaultTableConfig holds 16,000 flows in 820 kB, 51 bytes for each.
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
	return 8 + 4 + flowCells*(wire.BytesOf(c.SumBits)+countBytes+wire.BytesOf(c.DigestBits))
}

// A Table holds some flows, each in cells of its own (sample and hold): no neighbour disturbs them, and the mean of a flow that
// lost no packet is exact. For the same memory it holds a tenth to a half of the flows that a [Sketch] answers for.
//
//	up, err := lds.NewTable(lds.DefaultTableConfig)
//	up.Update(tuple.Flow(seed), hashing.Digest(seed, packet), time.Now().UnixNano())
//	result, err := lds.EstimateTable(up, down, tuple.Flow(seed))
//
// Both points hold the same flows without markers or negotiation. Where a flow finds no room, each of its packets draws a number by
// its hash, and takes the room of the flow of the fewest packets, n, with probability 1/(n+1). It counts as one of n+1 packets
// then. So large flows soon get in, and stay. A flow that arrives while there is room is held from its first packet on.
// Points see packets in about the same order, so n is nearly the same at both. A flow that they admit apart has no answer.
//
// With room for 17,800 of a million flows, 99 % of those of 1,000 packets or more are held (ours-lds-table). [Table.Hold] keeps rooms
// for flows that are known to be large, from their first packets on.
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
	limits  []uint32 // by bucket: a new flow has to draw below this, or less
	stamp
}

// A room has what is known about the flow that is in it: how many packets it had before it was admitted, at most on average.
type room struct {
	before uint32
	cells  [flowCells]cell
}

const noLimit = math.MaxUint32 // of a bucket; of a room, in place of before: Hold reserved it

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
			t.rooms[bucket*bucketFlows+i].cells[cellOf(drawn)].add(uint64(at), tally(p))
			return
		}
	}
	if uint32(drawn) < t.limits[bucket] {
		if r := t.admit(f, bucket, uint32(drawn)); r != nil {
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

// least returns the room of a bucket that is free, or has the fewest packets, and how many.
func (t *Table) least(bucket int) (at int, packets uint64) {
	at, packets = bucket*bucketFlows, math.MaxUint64
	for i := at; i < (bucket+1)*bucketFlows; i++ {
		if t.keys[i] == 0 {
			return i, 0
		}
		if n := t.rooms[i].stands(); n < packets || n == packets && t.keys[i] < t.keys[at] {
			at, packets = i, n
		}
	}
	return at, packets
}

// admit gives a flow a room, or nil if it does not draw low enough. As rooms' packets only become more, limits only fall.
func (t *Table) admit(f hashing.Flow, bucket int, drawn uint32) *room {
	at, least := t.least(bucket)
	if least > 0 {
		t.limits[bucket] = uint32(noLimit / (least + 1))
	}
	if f == 0 || drawn >= t.limits[bucket] {
		return nil
	}
	t.keys[at], t.rooms[at] = f, room{before: uint32(least)}
	return &t.rooms[at]
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
		if at, used := t.least(t.bucket(f)); used == 0 && f != 0 && t.room(f) == nil {
			t.keys[at], t.rooms[at].before = f, noLimit
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

// stands returns the packets that a flow counts as.
func (r *room) stands() uint64 { return uint64(r.before) + r.packets() }

func (r *room) packets() uint64 {
	return uint64(r.cells[0].count()) + uint64(r.cells[1].count()) + uint64(r.cells[2].count())
}

// Merge adds another shard of the same point, with other flows; t then holds those of both that have the most packets. Shards are
// less crowded and admit flows earlier, so both points should have the same number of shards, or some flows seem to have lost
// packets. The error wraps [estimate.ErrMismatch] if the Configs differ; t is then unchanged.
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
			if at, least := t.least(t.bucket(f)); from.stands() > least {
				t.keys[at], t.rooms[at] = f, *from
			}
			continue
		}
		to.before = max(to.before, from.before)
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
