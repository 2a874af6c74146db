package session

// A track is a sender and how far it has come.
type track struct {
	session uint64
	next    uint64 // intervals before have begun
	seen    int    // markers that followed on each other
}

const (
	// maxAhead is how many intervals a marker may be ahead of the next.
	maxAhead = 8
	// convincing is how many markers of another track, one after another and
	// without one of the present track, make it the present one.
	convincing = 3
)

// follows reports whether a marker is of the open interval, the next, or one
// soon after.
func (t *track) follows(f *Frame) bool {
	return f.Session == t.session && f.Interval+1 >= t.next && f.Interval <= t.next+maxAhead
}

// A judgement is what a marker belongs to.
type judgement int

const (
	present  judgement = iota // the present track
	fresh                     // the first of a new one
	stale                     // neither
	repeated                  // neither, like others before it, and there is a key
)

// judge decides what a marker belongs to. A greater session belongs to a sender
// that was restarted, and is followed at once. A marker of a lower session, or far
// from the present interval, may come from a sender whose clock was set back, or
// from a stranger. Others must follow it, and none of the present track.
//
// With a key nobody can make up a marker, only send one again; it then belongs
// to an interval or a session that has passed. A sender that was restarted with a
// number that it had before looks the same, so it is told, by feedback, which
// number is greater.
func (r *Receiver[R]) judge(f *Frame) judgement {
	if r.now.follows(f) {
		r.rival = track{}
		return present
	}
	switch {
	case r.key.set && f.Session == r.now.session && f.Interval >= r.now.next:
		return present
	case f.Session > r.now.session:
		return fresh
	}
	if r.rival.seen == 0 || !r.rival.follows(f) {
		r.rival = track{session: f.Session}
	}
	r.rival.next = f.Interval + 1
	r.rival.seen++
	switch {
	case r.rival.seen < convincing:
		return stale
	case r.key.set:
		r.rival.seen = 0
		return repeated
	}
	return fresh
}

// adopt makes a marker's track the present one, and reports the missed
// intervals of the track.
func (r *Receiver[R]) adopt(f *Frame, reports []Report[R]) []Report[R] {
	reports = r.Flush(reports)
	first := uint64(0)
	switch f.Session {
	case r.now.session:
		first = min(r.now.next, f.Interval)
	case r.before.session:
		first = min(r.before.next, f.Interval)
	}
	if f.Session != r.now.session {
		r.before = r.now
	}
	r.now, r.rival = track{session: f.Session, next: first}, track{}
	return r.skip(f.Interval, reports)
}
