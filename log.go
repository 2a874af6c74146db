package hoplag

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/hoplag/hoplag/hashing"
)

// A Passed from any goroutine must cost little beside reading the clock.
// Atomic additions to shared cells cost 50 ns each once two processors want
// the same cache line. So a packet first goes into a log; a processor usually
// finds its own in a sync.Pool. Every logSize packets are added up together,
// in one of a few synopses that each have a lock.

// logSize is the number of packets in a log.
const logSize = 256

// An entry is one packet that passed.
type entry struct {
	packet hashing.Packet
	flow   hashing.Flow // 0: no flow was named
	time   int64
}

// A log belongs to one goroutine at a time, its writer, who appends to it
// without a lock. Whoever holds the shard's lock may read the entries below n,
// and n goes back to 0 only under that lock.
type log struct {
	n       atomic.Uint32
	entries [logSize]entry
	shard   *shard
	folded  uint32 // entries below it are in the shard's synopses
	first   uint32 // where it begins: at the last entry if there are many logs
}

// append logs a packet. Only the writer calls it.
func (l *log) append(e entry) {
	n := l.n.Load()
	l.entries[n%logSize] = e
	l.n.Store(n + 1)
	if n == logSize-1 {
		l.flush()
	}
}

// flush empties a full log.
func (l *log) flush() {
	l.shard.mu.Lock()
	defer l.shard.mu.Unlock()
	l.fold()
	l.folded = l.first
	l.n.Store(l.first)
}

// fold adds up the new entries of the log. The caller holds the shard's lock.
func (l *log) fold() {
	n := l.n.Load()
	l.shard.active.add(l.entries[l.folded:n])
	if l.shard.keeper != nil {
		l.shard.keeper.add(l.entries[l.folded:n])
	}
	l.folded = n
}

// A shard adds up the packets of some of the logs.
type shard struct {
	mu     sync.Mutex
	active *tally // of the current cut
	spare  *tally // empty
	logs   []*log
	free   []*log // those in no pool
	keeper *keeper
	_      [64]byte
}

// rotate ends a cut and returns its tally, which holds everything logged by
// now. Give it back with release.
func (s *shard) rotate() *tally {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.logs {
		l.fold()
	}
	done := s.active
	s.active = s.spare
	return done
}

// release takes back, empty, what rotate returned.
func (s *shard) release(done *tally) {
	done.reset()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spare = done
}

// A handle is what a pool holds of a log. The pool may drop it, as the garbage
// collector sees fit; the log, which the shard holds too, is then used again.
type handle struct{ log *log }

// maxLogs is the largest number of logs of a shard: enough for as many
// goroutines as are interrupted in the middle of Passed at one time. Any
// others get logs that are emptied after each packet, so the shard need not
// know them.
const maxLogs = 128

// newHandle returns a handle of a log without a writer.
func (s *shard) newHandle() *handle {
	s.mu.Lock()
	defer s.mu.Unlock()
	var l *log
	if k := len(s.free); k > 0 {
		l, s.free = s.free[k-1], s.free[:k-1]
	} else if len(s.logs) < maxLogs {
		l = &log{shard: s}
		s.logs = append(s.logs, l)
	} else {
		l = &log{shard: s, first: logSize - 1, folded: logSize - 1}
		l.n.Store(l.first)
		return &handle{l}
	}
	h := &handle{l}
	runtime.AddCleanup(h, func(l *log) {
		l.shard.mu.Lock()
		defer l.shard.mu.Unlock()
		l.shard.free = append(l.shard.free, l)
	}, l)
	return h
}
