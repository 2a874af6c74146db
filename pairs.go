package hoplag

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/areas"
	"github.com/hoplag/hoplag/lda/lost"
)

// A meeting takes the cuts of two points, one by one, adds up those of the shards of a point, and finds which cuts of the two
// end at the same moment, whatever the clocks say. The moments need not agree exactly. A shard takes part from the beginning
// of a cut of all others. When one comes or goes, what is on its way is unknown, and the pairs begin anew.
type meeting struct {
	seal  *sealer
	cut   int64 // length, ns
	ends  [2]end
	asks  asks  // of a follower, whose round trips are known, or nil
	limit int64 // a pair does not go beyond this moment if nothing passed there

	warm    bool         // the next pair begins at a moment that both points know
	pair    pair         // the next one, so far
	records [2][]*record // of it, by point: unpacked when it is complete, for then they take a lot of room
	added   bool         // to it
	blocked bool         // waiting for a shard
	turns   error        // two points took turns as one since the latest report
	most    [2]int64     // the second clock is ahead by no more, and the first one, as packets show
}

// An asks asks what is missing in trails, and returns the names, and the trails that it asked about, which may be fewer.
type asks func(direction int, trails []areas.Trail) ([]areas.Trail, lost.Names)

const first, second = 0, 1 // the two points, as indices

// An end is one of the two points: all its shards.
type end struct {
	point  int   // first or second
	lag    int64 // for one moment, its number at the second point less that here
	name   string
	shards []*source
	heard  int64  // when the latest record of any shard came
	since  int64  // start of the wait for a shard
	ahead  *least // of the latest session: how far one of our clocks is ahead of the point's
	used   *least // likewise for the session being compared
}

// A source is a point, or a shard of one.
type source struct {
	of      *end
	name    string
	at      position   // of the latest record taken
	retired []position // of sessions before: their latest records
	queue   []*record
	size    int   // of the queue, in bytes
	part    bool  // it takes part
	through int64 // the cut up to which it was added, by its own numbers
}

const (
	// maxQueue is how many cuts of a point wait while nothing was compared. Later
	// they wait as long as they take no more than Config.History.
	maxQueue = 64

	// shardPatience is how long the others wait for a shard, in ns.
	shardPatience = 5e9

	// maxRetired is how many ended sessions are remembered.
	maxRetired = 64
)

// errTurns says that a session goes on after another one began.
var errTurns = errors.New("hoplag: two points take turns as one: each needs an address, or the name of a shard, of its own")

func newMeeting(c Config) *meeting {
	return &meeting{seal: newSealer(c), cut: int64(c.Cut), ends: [2]end{{point: first}, {point: second}}}
}

func (m *meeting) take(point int, shard string, r *record) (isNew bool, err error) {
	e := &m.ends[point]
	i := slices.IndexFunc(e.shards, func(s *source) bool { return s.name == shard })
	if i < 0 {
		i, e.shards = len(e.shards), append(e.shards, &source{of: e, name: shard})
	}
	s := e.shards[i]
	anew := s.at != (position{}) && s.at.session != r.session
	if isNew, err = s.accept(r); !isNew {
		if errors.Is(err, errTurns) {
			m.turns = err
		}
		return false, err
	}
	if e.ahead == nil {
		e.ahead = new(least)
	} else if anew { // what is known until more is
		e.ahead = &least{key: e.ahead.key, x: e.ahead.x - r.step}
	}
	if r.ahead = e.ahead; !anew {
		r.step = 0 // it was before
	}
	s.queue = append(s.queue, r)
	s.size += r.size
	for len(s.queue) > 1 && (s.size > m.seal.config.History || !m.warm && len(e.shards) == 1 && len(s.queue) > maxQueue) {
		s.pop()
		s.queue[0].fresh = true
	}
	return true, nil
}

// accept reports whether a record is new, and finds out whether it continues the one before.
func (s *source) accept(r *record) (isNew bool, err error) {
	same := r.session == s.at.session
	before := slices.IndexFunc(s.retired, func(p position) bool { return p.session == r.session })
	switch {
	case before >= 0 && r.through > s.retired[before].through:
		s.retired[before].through = r.through
		return false, errTurns
	case same && r.through <= s.at.through, before >= 0:
		return false, nil
	case same && r.after < s.at.through:
		return false, fmt.Errorf("hoplag: %w: cuts %d to %d overlap what was taken, up to %d", estimate.ErrEncoding,
			r.after, r.through, s.at.through)
	case !same && s.at != (position{}):
		s.retired = append(s.retired, s.at)
		s.retired = s.retired[max(0, len(s.retired)-maxRetired):]
	}
	r.fresh = !same || r.after > s.at.through
	s.at = position{r.session, r.through}
	return true, nil
}

func (s *source) pop() *record {
	r := s.queue[0]
	s.queue[0], s.queue = nil, s.queue[1:]
	s.size -= r.size
	return r
}

// apart returns how far the second point's clock is ahead of the first's, as far as the transport shows: to within a
// round trip, or the time that records take. It may be wrong by doubt: half a round trip of a follower's exchanges, or
// as long as records may differ in how long they take. No packet comes before it is sent.
func (m *meeting) apart() (apart, doubt int64) {
	if m.seal.config.ClocksAgree {
		return 0, 0
	}
	a, b := m.ends[first].used, m.ends[second].used
	if doubt = m.cut / 2; m.asks != nil {
		doubt = a.key / 2
	}
	if apart = a.x - b.x; -m.most[back] <= m.most[forth] {
		apart = min(max(apart, -m.most[back]), m.most[forth])
	}
	return apart, doubt
}

// silent says why nothing has been compared for a while.
func (m *meeting) silent() error {
	a, b := m.ends[first].ahead, m.ends[second].ahead
	if a != nil && b != nil && m.seal.config.ClocksAgree {
		if apart := time.Duration(a.x - b.x); apart.Abs() > m.seal.config.Report {
			err := map[bool]error{true: errApart, false: estimate.ErrClocks}[m.asks == nil]
			return fmt.Errorf("%w: they are %v apart, though Config.ClocksAgree is set", err, apart.Round(time.Millisecond))
		}
	}
	return ErrSilent
}

// align chooses which cuts correspond. It changes its mind only if another choice is clearly better. If that is far off, pairs begin anew.
func (m *meeting) align() {
	apart, _ := m.apart()
	clear := 0.75
	if m.asks == nil { // records of many cuts that come at once tell little of clocks
		clear += float64(m.ends[first].used.fell+m.ends[second].used.fell) / float64(m.cut)
	}
	if cuts := float64(apart) / float64(m.cut); !m.warm || math.Abs(cuts-float64(m.ends[first].lag)) > clear {
		lag := int64(math.Round(cuts))
		m.warm = m.warm && max(lag-m.ends[first].lag, m.ends[first].lag-lag) < 2 // or cuts were compared that are far apart
		m.ends[first].lag = lag
	}
}

// A pair is what two points counted between two moments, by point and direction, nil if nothing.
type pair struct {
	tallies        [2][2]*tally
	late           [2]int // packets of cuts before, by direction
	after, through int64  // by the second point's numbers
	begins         bool   // what was on its way before is unknown
	step           int64  // if so, by how much a clock was set
	whose          string

	// How far the second point's clock is ahead, give or take doubt, and how far the numbers of its cuts are, in ns.
	apart, doubt, lag int64
	of                sessions
}

// next returns the next pair, if both points' cuts have come. Its tallies are to be given back.
func (m *meeting) next() (pair, bool) {
	for m.warm || m.start() {
		if m.align(); !m.warm {
			continue
		} else if !m.added {
			m.join()
		}
		s, most, even := m.behind()
		switch {
		case even && m.added:
			r := m.pair
			r.through, r.lag = s.through+s.of.lag, m.ends[first].lag*m.cut
			r.apart, r.doubt = m.apart()
			r.of = sessions{m.ends[first].used, m.ends[second].used}
			m.unpack(&r)
			m.pair, m.added = pair{after: r.through}, false
			return r, true
		case len(s.queue) == 0:
			if !m.letGo(s) {
				return pair{}, false
			}
		case s.queue[0].fresh || s.queue[0].after < s.through && s.through < s.queue[0].through:
			m.leave(s.of, func(o *source) bool { return o == s })
		case s.queue[0].after < s.through:
			s.pop() // it counted this before it took part
		default:
			m.add(s, most)
		}
	}
	return pair{}, false
}

// start finds a moment at which a cut of both points begins: the latest of the first that wait.
func (m *meeting) start() bool {
	m.pair, m.records, m.added = pair{}, [2][]*record{}, false
	for {
		var waiting, part [2]bool
		m.each(func(s *source) {
			if s.part = false; len(s.queue) > 0 && !waiting[s.of.point] {
				waiting[s.of.point] = true
				m.use(s)
			}
		})
		if waiting != [2]bool{true, true} {
			return false
		}
		m.align()
		m.pair.after = math.MinInt64
		m.each(func(s *source) {
			if len(s.queue) > 0 {
				m.pair.after = max(m.pair.after, s.queue[0].after+s.of.lag)
			}
		})
		m.each(func(s *source) {
			m.admit(s)
			part[s.of.point] = part[s.of.point] || s.part
		})
		if part == [2]bool{true, true} {
			m.warm, m.pair.begins = true, true
			return true
		}
	}
}

// use compares the session of the next record of a shard.
func (m *meeting) use(s *source) {
	if ahead := s.queue[0].ahead; s.of.used != ahead {
		s.of.used, m.most = ahead, [2]int64{math.MaxInt64, math.MaxInt64}
	}
}

func (m *meeting) each(f func(s *source)) {
	for i := range m.ends {
		for _, s := range m.ends[i].shards {
			f(s)
		}
	}
}

// admit lets a shard take part if it has a record that begins where the sums do.
// What it counted before is left out; one that begins later has to wait.
func (m *meeting) admit(s *source) {
	for len(s.queue) > 0 && s.queue[0].after+s.of.lag < m.pair.after {
		s.pop()
	}
	if len(s.queue) == 0 || s.queue[0].after+s.of.lag > m.pair.after {
		return
	}
	head := s.queue[0]
	if head.step != 0 {
		m.pair.step, m.pair.whose = head.step, s.of.name
	}
	m.use(s)
	s.part, s.through, head.fresh = true, head.after, false
}

// join lets shards take part that do not yet, where a pair begins. The others wait for one whose records only come later than theirs.
func (m *meeting) join() {
	m.each(func(s *source) {
		if s.part {
			return
		}
		m.admit(s)
		late := m.pair.after - s.at.through - s.of.lag
		if !s.part && len(s.queue) == 0 && late >= 0 && late*m.cut < shardPatience {
			s.part, s.through = true, s.at.through+late
		}
		m.pair.begins = m.pair.begins || s.part
	})
}

// leave lets shards of a point go. If the point has no other, all go.
func (m *meeting) leave(e *end, which func(*source) bool) {
	m.pair.begins, m.blocked, m.warm = true, false, false
	for _, s := range e.shards {
		s.part = s.part && !which(s)
		m.warm = m.warm || s.part
	}
}

// behind returns the shard that was added up least far, or of several such the one whose next record ends
// first; how far the others were; and whether all are equally far.
func (m *meeting) behind() (s *source, most int64, even bool) {
	var least, next int64
	even = true
	m.each(func(o *source) {
		if !o.part {
			return
		}
		at, end := o.through+o.of.lag, int64(math.MaxInt64)
		if len(o.queue) > 0 {
			if end = o.queue[0].through + o.of.lag; o.queue[0].fresh { // others' next cuts belong to the new session
				end = math.MinInt64
			}
		}
		if s == nil {
			least, most = at, at
		}
		even = even && at == most
		if most = max(most, at); s == nil || at < least || at == least && end < next {
			s, least, next = o, at, end
		}
	})
	return s, most, even
}

// letGo forgets the shards that the others have waited for too long, those that are both behind and silent, and
// reports whether it did. A point's last one is waited for.
func (m *meeting) letGo(silent *source) bool {
	e := silent.of
	if len(e.shards) == 1 {
		return false
	}
	if !m.blocked {
		for _, s := range e.shards {
			m.blocked = m.blocked || len(s.queue) > 0 || s.part && s.through > silent.through
		}
		e.since = e.heard
	}
	if e.heard-e.since < shardPatience {
		return false
	}
	gone := func(s *source) bool { return s.part && s.through == silent.through && len(s.queue) == 0 }
	e.shards = slices.DeleteFunc(e.shards, gone)
	m.leave(e, gone)
	return true
}

// add adds the next cut of a shard to what is being compared, or if nothing passed in it, the part of it
// that others have, or that belongs to a report: idle points cut seldom, by their own clocks.
func (m *meeting) add(s *source, most int64) {
	r := s.queue[0]
	for _, end := range [2]int64{most - s.of.lag, m.limit - s.of.lag} {
		if s.through < end && end < r.through && r.parts[forth].packed == nil && r.parts[back].packed == nil {
			r.after, s.through, m.added, m.blocked = end, end, true, false
			return
		}
	}
	s.pop()
	s.through, m.added, m.blocked = r.through, true, false
	m.records[s.of.point] = append(m.records[s.of.point], r)
	m.pair.late[forth] += int(r.late[forth])
	m.pair.late[back] += int(r.late[back])
}

// unpack adds up what the records of a pair hold.
func (m *meeting) unpack(p *pair) {
	for point, records := range m.records {
		for _, r := range records {
			for direction, of := range r.parts {
				if of.packed == nil && of.flows == nil {
					continue
				}
				borrowInto(&p.tallies[point][direction], &m.seal.config).addPart(of)
			}
		}
		m.records[point] = records[:0]
	}
}
