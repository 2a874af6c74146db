package hoplag

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/hoplag/hoplag/estimate"
)

// A pairing takes the cuts of two points, one by one, and finds which of them
// end at the same moment. What came between is compared, whatever the clocks
// say. Cells are matched by level, so the moments need not agree exactly.
type pairing struct {
	seal  sealer
	cut   int64 // length, ns
	feeds [2]feed
	lag   int64 // for one moment, its number at the second point less that at the first

	warm   bool         // the sums below begin at a moment that both points know
	begins bool         // nothing has been compared since
	sums   [2][2]*tally // by point and direction, nil if nothing
	ends   [2]int64     // the cut of each point up to which the sums go
	added  bool         // since the last pair
	taken  bool         // the sums belong to the last pair
}

// The two points, and the two directions, as indices.
const (
	first  = 0
	second = 1
	forth  = 0
	back   = 1
)

// A feed holds the cuts of one point.
type feed struct {
	source
	queue []queued
	name  string
	ahead *least // of the latest session: how far one of our clocks is ahead of the point's
	used  *least // likewise for the session being compared
}

// A source remembers which records were taken.
type source struct {
	at      position // of the latest
	retired []uint64 // sessions before
}

type queued struct {
	record
	more  []record // of other shards
	fresh bool     // it does not continue the record before
	ahead *least
}

func newPairing(c Config) *pairing {
	return &pairing{seal: newSealer(c), cut: int64(c.Cut)}
}

// take takes a record of a point. It skips those that were taken before.
func (p *pairing) take(point int, data []byte) error {
	r, err := p.seal.decode(data)
	if err != nil {
		return err
	}
	f := &p.feeds[point]
	session := f.at.session
	fresh, isNew, err := f.accept(&r)
	if !isNew {
		return err
	}
	if f.ahead == nil || session != r.session {
		f.ahead = new(least)
	}
	f.queue = append(f.queue, queued{r, nil, fresh, f.ahead})
	return nil
}

// accept reports whether a record is new, and whether it does not continue the
// one before.
func (s *source) accept(r *record) (fresh, isNew bool, err error) {
	same := r.session == s.at.session
	switch {
	case same && r.through <= s.at.through, s.isRetired(r.session):
		return false, false, nil
	case same && r.after < s.at.through:
		return false, false, fmt.Errorf("hoplag: record: %w: cuts %d to %d overlap what was taken, up to %d", estimate.ErrEncoding,
			r.after, r.through, s.at.through)
	case !same && s.at != (position{}):
		s.retire(s.at.session)
	}
	fresh = !same || r.after > s.at.through
	s.at = position{r.session, r.through}
	return fresh, true, nil
}

// maxRetired is how many ended sessions are remembered.
const maxRetired = 64

func (s *source) retire(session uint64) {
	s.retired = append(s.retired, session)
	if len(s.retired) > maxRetired {
		s.retired = s.retired[1:]
	}
}

func (s *source) isRetired(session uint64) bool {
	return slices.Contains(s.retired, session)
}

// A least is the smallest of the latest numbers.
type least struct {
	now, before int64
	n           int
}

// leastOf is the smallest number of numbers that a least covers.
const leastOf = 32

func (l *least) add(x int64) {
	if l.n%leastOf == 0 {
		if l.n == 0 {
			l.now = math.MaxInt64
		}
		l.before, l.now = l.now, math.MaxInt64
	}
	l.n++
	l.now = min(l.now, x)
}

func (l *least) value() int64 {
	if l == nil || l.n == 0 {
		return 0
	}
	return min(l.before, l.now)
}

// apart returns how far the second point's clock is ahead of the first's, as
// far as the transport shows: to within a round trip, or the time that records
// take.
func (p *pairing) apart() time.Duration {
	return time.Duration(p.feeds[first].used.value() - p.feeds[second].used.value())
}

// see records how far one of our clocks, which is never set, is ahead of a
// point's.
func (f *feed) see(ahead int64) {
	if f.ahead != nil {
		f.ahead.add(ahead)
	}
}

// align chooses which cuts correspond. It changes its mind only if another
// choice is clearly better.
func (p *pairing) align() {
	apart := float64(p.apart()) / float64(p.cut)
	if !p.warm || math.Abs(apart-float64(p.lag)) > 0.75 {
		p.lag = int64(math.Round(apart))
	}
}

// A pair is what two points counted between two moments, by point and
// direction, nil if nothing. It is valid until the next one.
type pair struct {
	tallies [2][2]*tally
	through int64 // by the second point's numbers
	begins  bool  // what was on its way before is unknown
}

// maxQueue is how many cuts of a point wait separately for those of the other.
const maxQueue = 64

// next returns the next pair, if both points' cuts have come.
func (p *pairing) next() (pair, bool) {
	if p.taken {
		p.clear()
	}
	for {
		if p.warm {
			p.align()
		} else if !p.start() {
			return pair{}, false
		}
		lead := p.ends[first] + p.lag - p.ends[second]
		if lead == 0 && p.added {
			p.taken = true
			return p.pair(), true
		}
		behind, other := first, second
		if lead > 0 {
			behind, other = second, first
		}
		if len(p.feeds[behind].queue) == 0 {
			// What the other point counted meanwhile can already be added up.
			if len(p.feeds[other].queue) < maxQueue {
				return pair{}, false
			}
			behind = other
		}
		if p.feeds[behind].queue[0].fresh {
			p.warm = false
			continue
		}
		p.add(behind)
	}
}

// start finds a moment at which a cut of both points begins.
func (p *pairing) start() bool {
	for {
		a, b := &p.feeds[first], &p.feeds[second]
		a.shorten()
		b.shorten()
		if len(a.queue) == 0 || len(b.queue) == 0 {
			return false
		}
		a.used, b.used = a.queue[0].ahead, b.queue[0].ahead
		p.align()
		u, d := &a.queue[0], &b.queue[0]
		switch lead := u.after + p.lag - d.after; {
		case lead < 0:
			a.pop()
		case lead > 0:
			b.pop()
		default:
			p.clear()
			p.ends = [2]int64{u.after, d.after}
			u.fresh, d.fresh = false, false
			p.warm, p.begins = true, true
			return true
		}
	}
}

// add adds the next cut of a point to what is being compared.
func (p *pairing) add(point int) {
	q := p.feeds[point].pop()
	p.ends[point], p.added = q.through, true
	p.addRecord(point, &q.record)
	for i := range q.more {
		p.addRecord(point, &q.more[i])
	}
}

func (p *pairing) addRecord(point int, r *record) {
	for direction, of := range r.parts {
		if of.packed == nil && of.flows == nil {
			continue
		}
		into := &p.sums[point][direction]
		if *into == nil {
			*into = borrowTally(&p.seal.config)
		}
		(*into).addPart(of)
	}
}

// pair returns what was added since the last one.
func (p *pairing) pair() pair {
	r := pair{tallies: p.sums, through: p.ends[second], begins: p.begins}
	p.begins = false
	return r
}

// clear begins the next sums.
func (p *pairing) clear() {
	p.taken, p.added = false, false
	for point := range p.sums {
		for direction, t := range p.sums[point] {
			if t != nil {
				t.giveBack()
			}
			p.sums[point][direction] = nil
		}
	}
}

// shorten drops cuts that nothing will be compared with.
func (f *feed) shorten() {
	for len(f.queue) > maxQueue {
		f.pop()
	}
}

func (f *feed) pop() queued {
	q := f.queue[0]
	f.queue[0] = queued{}
	f.queue = f.queue[1:]
	return q
}
