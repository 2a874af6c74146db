package mplane

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/hoplag/hoplag/hashing"
)

// A SegmentID names one stretch of the network in one direction: the way through an m-router, from the
// neighbour that a packet comes from to the one that it goes to, or the way from one monitor, m-router or
// m-server, to another.
type SegmentID struct {
	From, To Router
	Via      Router // the m-router that the segment is inside, or -1 between monitors
	Path     uint32 // digest of the routers between From and To; 0 for a link
}

// notInside is the Via of segments between monitors.
const notInside Router = -1

// internal reports whether the segment is inside an m-router.
func (id SegmentID) internal() bool { return id.Via != notInside }

// A segment is a stretch between two monitors, with the routers on it.
type segment struct {
	id   SegmentID
	hops []Router // from From to To, including both: more than two on a virtual link
}

// A Plan says who measures what. It does not change, so any number of goroutines may read it.
type Plan struct {
	fingerprint uint64
	upgraded    []bool
	monitors    []bool
	sets        map[Router][]segment
	neighbour   [][]Router // by router, those with a link to or from it
}

// Plan computes every monitor's m-set (section VI): the segments that it probes. Upgraded routers (m-routers)
// measure inside themselves by LDA, and probe; others may have a server beside them that probes (m-server). It cuts each shortest path to
// another monitor at the first m-router on it, which measures the rest. Equal-cost paths are separate segments,
// at most 64 between two routers. After a change of routing make a new Plan: see [Station.Replan]. The error
// wraps [estimate.ErrConfig].
func (n *Network) Plan(upgraded, servers []Router) (*Plan, error) {
	p := &Plan{fingerprint: n.fingerprint(), sets: map[Router][]segment{}}
	var err, err2 error
	p.upgraded, err = n.set("upgraded", upgraded)
	p.monitors, err2 = n.set("servers", servers)
	if err = cmp.Or(err, err2); err != nil {
		return nil, err
	}
	for _, r := range upgraded {
		p.monitors[r] = true
	}
	search := newPathSearch(n)
	for r := range Router(n.Routers()) {
		p.neighbour = append(p.neighbour, n.neighbours(r))
		if p.monitors[r] {
			p.sets[r] = p.set(search.from(r))
		}
	}
	return p, nil
}

// set returns the m-set of a tree's source.
func (p *Plan) set(t pathTree) []segment {
	var set []segment
	for at, r := range t.routers[1:] {
		if !p.monitors[r] {
			continue
		}
		for _, hops := range t.paths(int32(at+1), func(r Router) bool { return !p.upgraded[r] }) {
			set = append(set, segment{outside(hops), hops})
		}
	}
	slices.SortFunc(set, func(a, b segment) int { return slices.Compare(a.hops, b.hops) })
	return set
}

// outside returns the name of the segment along some routers.
func outside(hops []Router) SegmentID {
	id := SegmentID{From: hops[0], To: hops[len(hops)-1], Via: notInside}
	if between := hops[1 : len(hops)-1]; len(between) > 0 {
		var b []byte
		for _, r := range between {
			b = binary.BigEndian.AppendUint32(b, uint32(r))
		}
		id.Path = uint32(hashing.Digest(0, b)) | 1
	}
	return id
}

// MSet returns the segments that a router's monitor probes, if it has one.
func (p *Plan) MSet(r Router) (ids []SegmentID) {
	for _, s := range p.sets[r] {
		ids = append(ids, s.id)
	}
	return ids
}

// Hops returns the routers on a segment between monitors, with both ends: more than two on a virtual link. Do
// not change them: they belong to the plan.
func (p *Plan) Hops(id SegmentID) []Router {
	s, _ := p.probed(id)
	return s.hops
}

// Internal returns the segments inside an m-router, one for each pair of neighbours that a packet may come from
// and go to: Σd² over all m-routers. Other routers have none.
func (p *Plan) Internal(r Router) []SegmentID {
	if !p.measures(r) {
		return nil
	}
	var ids []SegmentID
	for _, from := range p.neighbour[r] {
		for _, to := range p.neighbour[r] {
			ids = append(ids, SegmentID{From: from, To: to, Via: r})
		}
	}
	return ids
}

// measures reports whether a router is an m-router.
func (p *Plan) measures(r Router) bool { return r >= 0 && int(r) < len(p.upgraded) && p.upgraded[r] }

// has reports whether the plan has a segment.
func (p *Plan) has(id SegmentID) bool {
	if id.internal() {
		return p.measures(id.Via) && id.Path == 0 &&
			slices.Contains(p.neighbour[id.Via], id.From) && slices.Contains(p.neighbour[id.Via], id.To)
	}
	_, ok := p.probed(id)
	return ok
}

// probed returns a segment between monitors.
func (p *Plan) probed(id SegmentID) (segment, bool) {
	for _, s := range p.sets[id.From] {
		if s.id == id {
			return s, true
		}
	}
	return segment{}, false
}

// Opposite returns the segment along the same routers in the other direction, if the plan has it.
func (p *Plan) Opposite(id SegmentID) (SegmentID, bool) {
	s, ok := p.probed(id)
	if !ok {
		return id, false
	}
	hops := slices.Clone(s.hops)
	slices.Reverse(hops)
	back, ok := p.probed(outside(hops))
	return back.id, ok
}

// Along cuts a path into its segments, in order: those between monitors, and those inside the m-routers between
// them. The path must begin and end at monitors and take shortest paths, as [Network.Paths] returns them. The
// error wraps [estimate.ErrConfig].
func (p *Plan) Along(path []Router) ([]SegmentID, error) {
	if len(path) < 2 || slices.ContainsFunc(path, func(r Router) bool { return r < 0 || int(r) >= len(p.upgraded) }) {
		return nil, invalid("path", path, fmt.Sprintf("at least two routers from 0 to %d", len(p.upgraded)-1))
	}
	var ids []SegmentID
	begin := 0
	for i := 1; i < len(path); i++ {
		last := i == len(path)-1
		if !last && !p.upgraded[path[i]] {
			continue
		}
		id := outside(path[begin : i+1])
		if !p.has(id) {
			return nil, invalid("path", path, fmt.Sprintf("one whose part %v a monitor probes", path[begin:i+1]))
		}
		ids = append(ids, id)
		if !last {
			ids = append(ids, SegmentID{From: path[i-1], To: path[i+1], Via: path[i]})
		}
		begin = i
	}
	return ids, nil
}
