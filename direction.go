package hoplag

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/hoplag/hoplag/hashing"
)

// A Direction is one way through a [Point]. Its methods say that a packet or a
// message passed the point that way. They are safe for concurrent use, allocate
// nothing, and cost some 15 ns besides reading the clock (BenchmarkPassed).
// They never wait for those who read the point.
//
// # What makes a good id
//
// An id is any bytes that are the same at both points and seldom used twice: a
// trace or request id, a message id, a topic with partition and offset, a
// sequence number together with the name of what it counts. []byte(s) of a
// string costs nothing here. Ids need not be random; they are hashed with the
// key.
//
//   - A message that is sent again is another passage: give it another id (id
//     and attempt), or report it once. Two passages of one id at one point and
//     one at the other look like a loss.
//   - Nothing distinguishes two messages that share an id. Their delays still
//     add up right if none of them is lost, or on its way when a session
//     begins. If there are many, a report leaves them out and says so
//     (Repeats).
//   - Rewriting an id on the way makes a loss at the first point and an extra
//     packet at the second.
//   - The two directions are separate: a response may carry the id of its
//     request.
type Direction struct {
	clock  *timeline
	seed   uint64
	shards []*shard
	next   atomic.Uint32 // counts logs, to spread them over the shards
	pool   sync.Pool     // of *handle
	kept   atomic.Pointer[keeper]
}

// newDirection returns a direction whose shards keep tallies that make makes.
func newDirection(c *timeline, seed uint64, shards int, make func() *tally) *Direction {
	d := &Direction{clock: c, seed: seed}
	for range shards {
		d.shards = append(d.shards, &shard{active: make(), spare: make()})
	}
	d.pool.New = func() any { return d.shards[int(d.next.Add(1))%shards].newHandle() }
	return d
}

// Passed says that the message with this id passes now.
func (d *Direction) Passed(id []byte) {
	h := d.pool.Get().(*handle)
	h.log.append(entry{time: d.clock.now(), packet: hashing.Digest(d.seed, id)})
	d.pool.Put(h)
}

// PassedNumber is Passed for an id that is a number. It stands for its eight
// bytes, little-endian.
func (d *Direction) PassedNumber(id uint64) {
	h := d.pool.Get().(*handle)
	h.log.append(entry{time: d.clock.now(), packet: hashing.Word(d.seed, id)})
	d.pool.Put(h)
}

// PassedIn is Passed for a message of a flow, as named by [Point.Flow]: a
// connection, a customer, a topic, or anything else by which you want to
// distinguish delays. The message also counts among all messages.
func (d *Direction) PassedIn(flow hashing.Flow, id []byte) {
	h := d.pool.Get().(*handle)
	h.log.append(entry{time: d.clock.now(), packet: hashing.Digest(d.seed, id), flow: flow})
	d.pool.Put(h)
}

// Record says that packets passed together at a known time. Use what
// [time.Now] returned when a burst came, which is as good as Passed, or a
// network card's time stamp, which must be of the wall clock. [Point.Packet]
// and [hashing.Frame] identify packets.
func (d *Direction) Record(at time.Time, packets ...hashing.Packet) {
	d.RecordIn(0, at, packets...)
}

// RecordIn is [Direction.Record] for packets of one flow.
func (d *Direction) RecordIn(flow hashing.Flow, at time.Time, packets ...hashing.Packet) {
	h, t := d.pool.Get().(*handle), d.clock.of(at)
	for _, p := range packets {
		h.log.append(entry{time: t, packet: p, flow: flow})
	}
	d.pool.Put(h)
}

// fold adds up what was logged so far.
func (d *Direction) fold() {
	for _, s := range d.shards {
		s.mu.Lock()
		for _, l := range s.logs {
			l.fold()
		}
		s.mu.Unlock()
	}
}
