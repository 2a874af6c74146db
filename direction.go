package hoplag

import (
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hoplag/hoplag/estimate/areas"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda/lost"
)

// A Direction is one way through a [Point]. Its methods say that a packet or a message passed the point that way. They are safe for
// concurrent use, allocate nothing, and cost 14 to 16 ns besides reading the clock (BenchmarkPassed). They never wait for readers of
// the point. Call them before the message leaves, and after it has arrived. Only the Directions of a Point work; the zero value panics.
//
// # What makes a good id
//
// An id is any bytes that are the same at both points and seldom used twice: a trace or request id, a message
// id, a topic with partition and offset, a sequence number together with the name of what it counts. []byte(s)
// of a string costs nothing here. Ids need not be random; they are hashed with the key.
//
//   - A message that is sent again is another passage: give it another id (id and attempt), or report it once.
//     Two passages of one id at one point and one at the other look like a loss.
//   - Nothing distinguishes two messages that share an id. Their delays still add up right if none of them is lost,
//     but it is not known which are on their way when a report ends. If some are lost, intervals are wide.
//   - An id that is rewritten on the way is a loss at the first point and an extra packet at the second.
//   - The two directions are separate: a response may carry the id of its request.
type Direction struct {
	named
	config *Config
	clock  *timeline
	hash   hasher
	shards []*shard
	next   atomic.Uint32 // counts logs, to spread them over the shards
	pool   sync.Pool     // of *handle
	memory atomic.Pointer[lost.Memory]
}

// named is all that printing a Direction or a Point shows, which have secrets and change all the time: the name.
type named string

// Format prints the name.
func (n named) Format(s fmt.State, _ rune) { fmt.Fprintf(s, "hoplag.Point(%q)", string(n)) }

// newDirection returns a direction with shards of its own, at most eight.
func newDirection(c *Config, clock *timeline) *Direction {
	d := &Direction{named: named(c.Name), config: c, clock: clock, hash: c.hasher()}
	for range min(runtime.GOMAXPROCS(0), 8) {
		d.shards = append(d.shards, &shard{of: d})
	}
	d.pool.New = func() any { return d.shards[int(d.next.Add(1))%len(d.shards)].newHandle() }
	return d
}

// Packet returns the identity of the message with this id, for [Direction.Record].
func (d *Direction) Packet(id []byte) hashing.Packet { return d.hash.packet(id) }

// Passed says that the message with this id passes now, and of which flow it is, if you name one ([Point.Flow]): a
// connection, a customer, a topic, or anything else by which you want to distinguish delays. It also counts among all.
// A message is of one flow: what follows the first is ignored.
func (d *Direction) Passed(id []byte, flow ...hashing.Flow) {
	h := d.pool.Get().(*handle)
	e := h.log.next()
	*e = entry{packet: d.hash.packet(id)}
	if len(flow) > 0 {
		e.flow = flow[0]
	}
	e.time = d.clock.now() // last: a processor finishes what it began before it reads the clock
	h.log.append()
	d.pool.Put(h)
}

// PassedNumber is Passed for an id that is a number. It stands for its eight bytes, little-endian.
func (d *Direction) PassedNumber(id uint64) {
	h := d.pool.Get().(*handle)
	e := h.log.next()
	*e = entry{packet: d.hash.number(id), not: ^id}
	e.time = d.clock.now()
	h.log.append()
	d.pool.Put(h)
}

// Record reports packets of one flow that passed together at a known time. A flow of 0 stands for none.
// Use what [time.Now] returned when a burst arrived, which is as good as Passed, or a network card's timestamp,
// by the wall clock or Config.Clock. [Direction.Packet] and [hashing.Frame] identify packets. Record them
// within three cuts: followers already have earlier cuts, and many late packets spoil a report.
func (d *Direction) Record(flow hashing.Flow, at time.Time, packets ...hashing.Packet) {
	h, t := d.pool.Get().(*handle), d.clock.of(at)
	for _, p := range packets {
		*h.log.next() = entry{time: t, packet: p, flow: flow}
		h.log.append()
	}
	d.pool.Put(h)
}

// Atomic additions to shared cells cost 50 ns each once two processors want the same cache line. So a packet first goes into
// a log; a processor usually finds its own in a sync.Pool. Each logSize packets are folded into one of a few locked shards.
const logSize = 128

// An entry is one packet that passed.
type entry struct {
	packet hashing.Packet
	flow   hashing.Flow // 0: no flow was named
	time   int64
	not    uint64 // the complement of the number that it was reported by, or 0
}

// A log belongs to one goroutine at a time, its writer, who appends to it without a lock. Whoever holds the
// shard's lock may read the entries below n, and n goes back to 0 only under that lock.
type log struct {
	n       atomic.Uint32
	entries [logSize]entry
	shard   *shard
	folded  uint32 // entries below it are in the shard
}

// next is where the writer puts the next packet, which append then logs.
func (l *log) next() *entry { return &l.entries[l.n.Load()%logSize] }

func (l *log) append() {
	if l.n.Add(1) == logSize {
		l.flush()
	}
}

// flush empties a full log.
func (l *log) flush() {
	l.shard.mu.Lock()
	defer l.shard.mu.Unlock()
	l.fold(math.MinInt64, nil)
	l.folded = 0
	l.n.Store(0)
}

// fold adds the new entries of the log to the shard, whose lock the caller holds, but those of ended cuts to a tally.
func (l *log) fold(ended int64, total **tally) {
	n := l.n.Load()
	l.shard.add(l.entries[l.folded:n], ended, total)
	l.folded = n
}

// A handle is what a pool holds of a log. When the pool drops it, the log, which the shard holds too, is used again.
type handle struct{ log *log }

// A shard holds what came from some of the logs, cut by cut.
type shard struct {
	mu      sync.Mutex
	of      *Direction
	through int64  // the latest cut that was taken
	piles   []pile // of those after it
	spare   []entry
	late    uint32 // packets that came of cuts that were taken
	logs    []*log
	free    []*log // those in no pool
	_       [64]byte
}

// mostPiles is how many cuts are counted at a time: the present one, and those waiting for interrupted writers.
const mostPiles = 32

// newHandle returns a handle of a log without a writer.
func (s *shard) newHandle() *handle {
	s.mu.Lock()
	defer s.mu.Unlock()
	var l *log
	if k := len(s.free); k > 0 {
		l, s.free = s.free[k-1], s.free[:k-1]
	} else {
		l = &log{shard: s}
		s.logs = append(s.logs, l)
	}
	h := &handle{l}
	runtime.AddCleanup(h, func(l *log) {
		l.shard.mu.Lock()
		defer l.shard.mu.Unlock()
		l.shard.free = append(l.shard.free, l)
	}, l)
	return h
}

// add adds each entry to the cut that it passed in, or to a tally if that has ended. The caller holds the lock.
func (s *shard) add(entries []entry, ended int64, total **tally) {
	s.of.memorize(entries)
	length := int64(s.of.config.Cut)
	for len(entries) > 0 {
		cut := floorDiv(entries[0].time, length)
		late := cut <= s.through && cut > s.through-mostPiles
		cut = min(max(cut, s.through+1), s.through+mostPiles)
		n, begin := 1, cut*length
		for n < len(entries) && uint64(entries[n].time-begin) < uint64(length) {
			n++
		}
		if late {
			s.late += uint32(n)
		}
		if cut <= ended {
			borrowInto(total, s.of.config).add(entries[:n])
		} else {
			for s.through+int64(len(s.piles)) < cut {
				s.piles = append(s.piles, pile{few: s.spare})
				s.spare = nil
			}
			s.piles[cut-s.through-1].add(s.of.config, entries[:n])
		}
		entries = entries[n:]
	}
}

// rotate ends a cut and those before. It returns a tally with what passed in them added, or nil, and how many packets came late.
func (s *shard) rotate(cut int64, total *tally) (_ *tally, late uint32) {
	s.mu.Lock()
	for _, l := range s.logs {
		l.fold(cut, &total)
	}
	done := min(int(max(1, cut-s.through)), len(s.piles))
	var many []*tally
	for _, p := range s.piles[:done] {
		if p.many != nil {
			many = append(many, p.many)
		} else if len(p.few) > 0 {
			borrowInto(&total, s.of.config).add(p.few)
		}
		s.spare = p.few[:0]
	}
	s.through, s.piles = max(s.through+1, cut), append(s.piles[:0], s.piles[done:]...)
	late, s.late = s.late, 0
	s.mu.Unlock()
	for _, t := range many { // it takes in what there was so far, which mostly is less
		if total != nil {
			if err := t.all.Merge(&total.all.Aggregator); err != nil {
				panic(err)
			}
			t.flows.Merge(total.flows)
			total.giveBack()
		}
		total = t
	}
	return total, late
}

func (d *Direction) rotate(cut int64) (total *tally, late uint32) {
	for _, s := range d.shards {
		t, n := s.rotate(cut, total)
		total, late = t, late+n
	}
	return total, late
}

// drop forgets what was counted up to a cut, and what seemed to pass later.
func (d *Direction) drop(cut int64) {
	total, _ := d.rotate(cut + mostPiles)
	total.giveBack()
	for _, s := range d.shards {
		s.mu.Lock()
		s.through = cut
		s.mu.Unlock()
	}
}

// A pile holds packets of one cut: in a list while they are few, then in counters.
type pile struct {
	few  []entry
	many *tally
}

// maxFew is how many packets the list holds.
const maxFew = 512

func (p *pile) add(c *Config, entries []entry) {
	if p.many == nil && len(p.few)+len(entries) <= maxFew {
		p.few = append(p.few, entries...)
		return
	}
	if p.many == nil {
		borrowInto(&p.many, c).add(p.few)
		p.few = p.few[:0]
	}
	p.many.add(entries)
}

func (t *tally) add(entries []entry) {
	for i := range entries {
		e := &entries[i]
		t.all.Update(e.packet, e.time)
		if e.flow != 0 {
			t.flows.Update(e.flow, e.packet, e.time)
		}
	}
}

// A point remembers what it sent once it is known to send: the first point when
// it is first asked, the second one, which sends back, when it follows.
const (
	mostRemembered  = 1 << 18 // messages: 4 MiB
	rememberReports = 4       // as many intervals at most: a report waits for three, and is asked about then
)

// remember makes the direction remember what passes from now on.
func (d *Direction) remember() {
	if d.memory.Load() == nil {
		d.memory.CompareAndSwap(nil, lost.NewMemory(mostRemembered, rememberReports*int64(d.config.Report)))
	}
}

// memorize remembers what passed, if anybody may ask.
func (d *Direction) memorize(entries []entry) {
	m := d.memory.Load()
	if m == nil {
		return
	}
	m.Lock()
	defer m.Unlock()
	for i := range entries {
		if e := &entries[i]; e.not != 0 {
			m.Update(^e.not, true, e.time)
		} else {
			m.Update(uint64(e.packet), false, e.time)
		}
	}
}

// find finds among what a direction remembers what was lost in trails.
func (d *Direction) find(trails []areas.Trail) (lost.Names, error) {
	f, err := lost.NewFinder(d.config.Cells, trails)
	m := d.memory.Load()
	if err != nil || m == nil {
		return lost.Names{}, err
	}
	m.Offer(f, d.hash.number)
	return f.Names(lost.Budget), nil
}
