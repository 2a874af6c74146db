package hoplag

import (
	"cmp"
	"slices"
)

// A gathering adds up the records of the shards of one point, cut by cut. A
// shard takes part from the beginning of a cut of all others. When one comes
// or goes, what is on its way is unknown, and the point's records begin anew.
type gathering struct {
	members []*member
	from    int64    // the cut after which the records below come
	records []record // of shards that take part, beyond it
	fresh   bool     // what is added up does not continue the previous records
	blocked bool     // waiting for a shard
	since   int64    // start of that wait
}

// A member is one shard: one of the points that together are one end of a pair.
type member struct {
	source
	name    string
	waiting []queued
	part    bool  // it takes part
	end     int64 // the cut up to which it was added
}

const (
	// shardPatience is how long the others wait for a shard, in ns.
	shardPatience = 5e9

	// maxWaiting is how many records of a shard wait for others.
	maxWaiting = 4096
)

// take takes a record of a shard. It reports whether the record is new, and
// whether it is the first of another session of the same shard.
func (g *gathering) take(name string, r record) (isNew, restarted bool, err error) {
	s := g.member(name)
	if s == nil {
		s = &member{name: name}
		g.members = append(g.members, s)
	}
	before := s.at
	fresh, isNew, err := s.accept(&r)
	if isNew {
		s.waiting = append(s.waiting, queued{record: r, fresh: fresh})
	}
	return isNew, before != (position{}) && before.session != s.at.session, err
}

func (g *gathering) member(name string) *member {
	for _, s := range g.members {
		if s.name == name {
			return s
		}
	}
	return nil
}

// next returns the next records of all shards that take part.
func (g *gathering) next(now int64) (queued, bool) {
	for {
		g.admit()
		least, end, even := g.behind()
		switch {
		case even && len(g.records) > 0:
			q := queued{record: g.records[0], more: g.records[1:], fresh: g.fresh}
			q.after, q.through = g.from, end
			g.from, g.fresh, g.records = end, false, nil
			return q, true
		case least == nil:
			return queued{}, false
		case len(least.waiting) == 0:
			if !g.letGo(least, now) {
				return queued{}, false
			}
		case least.waiting[0].fresh:
			least.part, g.blocked = false, false
		case least.waiting[0].after < least.end:
			least.pop()
		default:
			q := least.pop()
			g.records = append(g.records, q.record)
			least.end, g.blocked = q.through, false
		}
	}
}

// behind returns the shard that was added up least far, preferably one with
// records waiting; how far the furthest was added; and whether all are equally
// far.
func (g *gathering) behind() (least *member, end int64, even bool) {
	even = true
	for _, s := range g.members {
		switch {
		case !s.part:
		case least == nil:
			least, end = s, s.end
		default:
			even = even && s.end == end
			end = max(end, s.end)
			if s.end < least.end || s.end == least.end && len(least.waiting) == 0 {
				least = s
			}
		}
	}
	return least, end, even
}

// admit lets shards take part from where the records being added up begin or,
// if no shard takes part, from where the latest of them begins. What they
// counted before is left out; a shard that begins later has to wait.
func (g *gathering) admit() {
	waiting := g.waiting()
	if len(waiting) > 0 && !slices.ContainsFunc(g.members, func(s *member) bool { return s.part }) {
		g.from = slices.MaxFunc(waiting, func(a, b *member) int {
			return cmp.Compare(a.waiting[0].after, b.waiting[0].after)
		}).waiting[0].after
	}
	for _, s := range waiting {
		for len(s.waiting) > 0 && s.waiting[0].after < g.from {
			s.pop()
		}
		if len(s.waiting) > 0 {
			if s.waiting[0].after > g.from {
				continue
			}
			s.waiting[0].fresh = false
		}
		s.part, s.end, g.fresh = true, g.from, true
	}
}

// waiting returns the shards that do not take part and have records.
func (g *gathering) waiting() (found []*member) {
	for _, s := range g.members {
		if !s.part && len(s.waiting) > 0 {
			found = append(found, s)
		}
	}
	return found
}

// letGo forgets the shards that the others waited for too long, all that are
// as far behind as silent, and reports whether it did.
func (g *gathering) letGo(silent *member, now int64) bool {
	most := len(g.records)
	for _, s := range g.members {
		most = max(most, len(s.waiting))
	}
	if !g.blocked {
		g.blocked, g.since = most > 0, now
	}
	if !g.blocked || now-g.since < shardPatience && most < maxWaiting {
		return false
	}
	g.members = slices.DeleteFunc(g.members, func(s *member) bool {
		return s.part && s.end == silent.end && len(s.waiting) == 0
	})
	g.fresh, g.blocked = true, false
	return true
}

func (s *member) pop() queued {
	q := s.waiting[0]
	s.waiting[0] = queued{}
	s.waiting = s.waiting[1:]
	return q
}
