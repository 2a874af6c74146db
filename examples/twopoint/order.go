package main

import (
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/queue/trace"
)

// sighting is a packet at a point.
type sighting struct {
	point            trace.Point
	time             int64
	digest, identity hashing.Packet // to the aggregators, to the exact answer
	noIP             bool
}

// inOrder puts sightings in the order of their times. A capture may hold a
// packet later than its time by up to [trace.MaxBackstep]. Fed in the order of
// the files, the exact answer would miss a packet that is seen to come out
// before it is seen to go in.
type inOrder struct {
	waiting []sighting // in order
	done    int        // how many of these were taken
}

// add accepts a sighting. At equal times the ingress comes first.
func (o *inOrder) add(s sighting) {
	if o.done > len(o.waiting)/2 {
		o.waiting = o.waiting[:copy(o.waiting, o.waiting[o.done:])]
		o.done = 0
	}
	o.waiting = append(o.waiting, s)
	i := len(o.waiting) - 1
	for ; i > o.done && s.before(&o.waiting[i-1]); i-- {
		o.waiting[i] = o.waiting[i-1]
	}
	o.waiting[i] = s
}

func (s *sighting) before(other *sighting) bool {
	return s.time < other.time || s.time == other.time && s.point < other.point
}

func (o *inOrder) empty() bool { return o.done == len(o.waiting) }

// ready tells whether no sighting can come any more that is before the next.
func (o *inOrder) ready() bool {
	// The difference may exceed an int64, but not a uint64.
	return !o.empty() && uint64(o.waiting[len(o.waiting)-1].time)-uint64(o.waiting[o.done].time) > trace.MaxBackstep
}

// next takes the next sighting.
func (o *inOrder) next() sighting {
	o.done++
	return o.waiting[o.done-1]
}
