package rli

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// held is a packet in the interpolation buffer.
type held struct {
	flow  hashing.Flow
	time  int64
	delay int64 // from the origin, once estimated
	bytes int32
	at    int32 // where its flow's record is thought to be; -1 for nowhere
}

const heldSize = 32

// departure is the latest packet that left.
type departure struct {
	time      int64
	bytes     int32
	reference bool
}

// mark is what a reference tells of straight lines: the delay of a packet of
// its size that departed at a time.
type mark struct {
	seen     bool
	departed int64
	delay    int64 // from the origin
}

// never is when the latest packet left before there was one.
const never = math.MinInt64 / 2

// A Receiver estimates the delay of every packet that departs from a link,
// and keeps the sums of each flow. NewReceiver makes it, it never grows, and
// it is for one goroutine.
type Receiver struct {
	config    Config
	method    Method // not Auto
	threshold uint64 // for hashing.Sampled, of flows
	hold      uint64 // of packets that begin a record
	draws     uint64
	perByte   float64 // ns that a byte takes on the link; 0 if not known

	buffer  []held
	waiting int // of the buffer
	left    mark
	latest  departure
	nearest int64   // ns by which a reference followed the packet that it named, at least
	slack   float64 // Config.Tolerance, or more if references tell so
	extra   float64 // ns that a packet takes beside its bytes, if references tell so
	pace    estimate.Moments

	// Delays are differences from the delay of the first reference, or of the
	// last before Reset.
	origin    int64
	hasOrigin bool
	sequence  sequence
	guard     guard

	// For BusyAware:
	link     link
	spread   *spread
	periods  []period // of the packets in the buffer; the last is under way
	current  int      // the last
	leftHere bool     // whether the left reference is in periods[0]
	leftAt   point    // if so, where
	lesson   lesson

	flows     table
	total     record
	histogram []uint64 // of the total
	counts    Counts
	key       key
	residuals residuals
	earlier   mark // the reference before left
	probe     probe
}

// A lesson is one of the known points of the period under way, drawn, that tells
// about the spread once the period's end is known.
type lesson struct {
	of     int // how many references of the period there were
	at     point
	behind bool // at is the packet before the reference
}

// NewReceiver returns a receiver that has seen nothing. The error wraps
// [estimate.ErrConfig].
func NewReceiver(c Config) (*Receiver, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	var secret [16]byte
	rand.Read(secret[:]) // never fails
	r := &Receiver{
		config:    c,
		method:    c.method(),
		threshold: hashing.Threshold(c.Sample),
		hold:      hashing.Threshold(c.Hold),
		buffer:    make([]held, max(c.Buffer, 1)),
		latest:    departure{time: never},
		nearest:   math.MaxInt64,
		slack:     float64(c.Tolerance),
		link:      newLink(c.Tolerance),
		flows:     newTable(&c, [2]uint64{binary.LittleEndian.Uint64(secret[:]), binary.LittleEndian.Uint64(secret[8:])}),
		histogram: make([]uint64, c.Buckets),
	}
	if c.Rate > 0 {
		r.perByte = 8e9 / float64(c.Rate)
	}
	if c.method() == BusyAware {
		r.periods, r.spread = make([]period, c.Buffer+1), &spread{}
	}
	return r, nil
}

// Config returns the configuration that the receiver was made with.
func (r *Receiver) Config() Config { return r.config }

// Update tells of a packet of flow f and the given size, whose last bit
// departed at time t, in nanoseconds, between -2^62 and 2^62. Times must not
// decrease over all calls of Update, Pass and Reference. A packet of fewer than
// 0 or more than 2^31-1 bytes is refused, and counted in Counts.Invalid.
func (r *Receiver) Update(f hashing.Flow, bytes int, t int64) {
	r.counts.Packets++
	if uint64(bytes) > math.MaxInt32 {
		r.counts.Invalid++
		return
	}
	if r.method == BusyAware {
		r.depart(bytes, t, false)
	} else {
		r.latest.time, r.latest.bytes, r.latest.reference = t, int32(bytes), false
	}
	if hashing.Sampled(uint64(f), r.threshold) == 0 {
		r.counts.Unsampled++
		return
	}
	if r.method == Left {
		r.buffer[0] = held{flow: f, time: t, bytes: int32(bytes), at: r.flows.guess(r.flows.mix(f))}
		r.waiting = 1
		r.settle(nil, nil)
		return
	}
	if r.waiting == len(r.buffer) {
		r.counts.Overflowed += uint64(r.waiting)
		r.settle(nil, nil)
	}
	h := &r.buffer[r.waiting]
	h.flow, h.time, h.bytes, h.at = f, t, int32(bytes), r.flows.guess(r.flows.mix(f))
	r.waiting++
}

// Pass tells of the departure of a packet that is not to be measured: one
// that did not come by way of the injector, such as cross traffic that joined
// the link's queue from another interface. BusyAware needs to know of all
// departures; the other methods need not be told.
func (r *Receiver) Pass(bytes int, t int64) {
	r.counts.Passed++
	if uint64(bytes) > math.MaxInt32 {
		r.counts.Invalid++
		return
	}
	if r.method == BusyAware {
		r.depart(bytes, t, false)
	} else {
		r.latest = departure{time: t, bytes: int32(bytes)}
	}
}

// Reference tells of a reference packet whose last bit departed at time
// received. All packets that wait for it are estimated. One that came twice,
// or after a later one, from another injector, or against all that others have
// told, only counts as a departure: see Counts.
func (r *Receiver) Reference(p ReferencePacket, received int64) {
	before := r.latest
	found := false
	if r.method == BusyAware {
		found = r.depart(r.config.ReferenceBytes, received, true)
	} else {
		r.latest = departure{time: received, bytes: int32(r.config.ReferenceBytes), reference: true}
	}
	r.counts.References++
	if !r.believe(&p, received) {
		return
	}
	if !r.hasOrigin {
		r.origin, r.hasOrigin = received-p.Sent, true
	}
	own := mark{seen: true, departed: received, delay: received - p.Sent - r.origin}
	right := own
	named := r.follows(&p, received, before)
	if named {
		right.departed = before.time
		right.delay += before.time - received - round(longer(before.bytes, r.config.ReferenceBytes, r.perByte))
	}
	if r.method != BusyAware {
		r.test(right)
		r.settle(&right, nil)
		r.earlier, r.left = r.left, right
		return
	}
	if !named || found {
		before = departure{}
	}
	itself, known := r.place(&own, before)
	if r.link.trusted() {
		r.probe.end(&r.residuals, r.spread, known)
	} else {
		r.test(right)
	}
	r.settle(&right, &known)
	r.probe.given = false
	if from, ok := r.start(r.current); ok && r.link.trusted() {
		r.probe = probe{given: true, from: from, at: known}
	}
	if before.bytes > 0 {
		r.spread.meet(r.sending(before.bytes))
	}
	r.teach(known, known != itself)
	r.earlier, r.left = r.left, right
	r.leftHere, r.leftAt = true, known
	if known != itself { // the reference came at the same instant, without a time to itself
		size := r.sending(int32(r.config.ReferenceBytes))
		r.leftAt = point{known.place + size, known.wait + size}
	}
}

// follows reports whether the packet before a reference is the one that it was
// sent with, at one instant: it is of that size, and the reference departed
// right after it. How soon that is follows from the rate, and is learned, as
// the rate may not be known.
func (r *Receiver) follows(p *ReferencePacket, received int64, before departure) bool {
	if p.Behind == 0 || before.reference || before.bytes != int32(p.Behind) || received < before.time {
		return false
	}
	gap := received - before.time
	alone := float64(r.config.ReferenceBytes) * r.perByte
	near := r.perByte > 0 && float64(gap) <= alone+r.extra+r.slack
	learned := r.nearest < math.MaxInt64 && gap <= 2*r.nearest
	r.nearest = min(r.nearest, gap)
	if !near && !learned {
		return false
	}
	if r.perByte > 0 {
		r.keepPace(float64(gap) - alone)
	}
	return true
}

// keepPace takes in how much later a reference departed after its packet than
// its bytes take. On average that is what the link spends on a packet beside its
// bytes, such as a preamble or a checksum that sizes do not count; and its
// deviation is how far off time stamps are. What is learned is used after 16
// references, and every time that their number has doubled.
func (r *Receiver) keepPace(late float64) {
	r.pace.Add(late)
	n := r.pace.N()
	if n < acquainted || n&(n-1) != 0 {
		return
	}
	extra, slack := 0.0, max(float64(r.config.Tolerance), 4*math.Sqrt(r.pace.PopulationVariance()))
	if mean := r.pace.Mean(); mean > 1 {
		extra = mean
	}
	if math.Abs(extra-r.extra) > 0.5 || math.Abs(slack-r.slack) > 0.1*r.slack {
		r.extra, r.slack = extra, slack
		r.link.relax(slack)
	}
}

// sending is how long the link takes to send a packet.
func (r *Receiver) sending(bytes int32) float64 { return float64(bytes)*r.perByte + r.extra }

// place confronts the link with a reference, and returns the reference as a
// point of its busy period, and the point that it makes known: itself, or the
// packet before it where that was sent at the same instant and is given.
func (r *Receiver) place(own *mark, before departure) (itself, known point) {
	size := r.sending(int32(r.config.ReferenceBytes))
	here := &r.periods[r.current]
	behind := before.bytes > 0
	// Of the waiting times the base delay is only taken away at the end.
	itself = point{here.place(own.departed, size), float64(own.delay) - size}
	known = itself
	if behind {
		place := here.place(before.time, r.sending(before.bytes))
		known = point{place, itself.wait - (itself.place - place)}
	}
	b := bounds{math.Inf(-1), known.wait}
	if here.whole {
		b.low = known.wait - known.place
	}
	if behind && !r.link.fits(b) {
		// Perhaps it was another packet of that size.
		known, b.high = itself, itself.wait
	}
	r.verify(b)
	if r.link.pinned() {
		base := r.link.base()
		known.wait = max(known.wait-base, 0)
		itself.wait = max(itself.wait-base, 0)
	}
	return itself, known
}

// verify confronts the link with the bounds of one more reference.
func (r *Receiver) verify(b bounds) {
	trusted := r.link.trusted()
	if !r.link.learn(b) {
		r.counts.Conflicts++
	}
	if trusted && !r.link.trusted() {
		r.counts.Fallbacks++
	}
}

// teach draws one of the known points of a period whose beginning was seen, all
// with the same probability, until its end.
func (r *Receiver) teach(known point, behind bool) {
	if !r.periods[r.current].whole || !r.link.pinned() {
		return
	}
	l := &r.lesson
	l.of++
	if l.of == 1 || hashing.Sampled(uint64(hashing.Word(r.config.Identity, r.counts.References)), hashing.Threshold(1/float64(l.of))) == 1 {
		l.at, l.behind = known, behind
	}
}

// Flush estimates the packets that wait for a reference from what was seen so
// far: at the end of the traffic, or before results are read that are to
// include them.
func (r *Receiver) Flush() { r.settle(nil, nil) }

// Reset forgets all that was measured, for the next interval. What is known of
// the link, the latest reference and the packets that wait for the next one
// are kept; call Flush first to count those to this interval.
func (r *Receiver) Reset() {
	r.flows.reset()
	r.total = record{}
	clear(r.histogram)
	r.counts, r.residuals = Counts{}, residuals{}
	r.recentre()
}

// recentre makes the delay of the latest reference the origin, now that there
// are no sums: if a clock was stepped, by years where it had not been set, sums
// of differences from an origin before that would not fit. Without a reference
// the next one, or a Merge, brings it.
func (r *Receiver) recentre() {
	r.hasOrigin = r.left.seen
	step := r.left.delay
	r.origin += step
	r.left.delay = 0
	if !r.link.pinned() { // else it is a difference from the base delay
		r.leftAt.wait -= float64(step)
	}
	r.link.shift(-float64(step))
}

// Merge adds the flows and counts of b, which saw other flows of the same
// interval or another one. A flow's record goes in whole, or, where there is
// no room, is shed whole. Packets that wait in b are not included. The error
// wraps [estimate.ErrMismatch], and r is then unchanged.
func (r *Receiver) Merge(b *Receiver) error {
	if r.config != b.config {
		return fmt.Errorf("rli: %w: %+v and %+v", estimate.ErrMismatch, r.config, b.config)
	}
	r.counts.add(&b.counts)
	r.residuals.add(&b.residuals)
	if b.total.count() == 0 {
		return nil
	}
	if !r.hasOrigin {
		r.origin, r.hasOrigin = b.origin, true
	}
	step := b.origin - r.origin
	total := b.total
	total.shift(step)
	r.total.merge(&total)
	for i, n := range b.histogram {
		r.histogram[i] += n
	}
	for i := range b.flows.records {
		theirs := b.flows.records[i]
		if theirs.count() == 0 {
			continue
		}
		theirs.shift(step)
		at := r.flows.find(theirs.flow)
		mine := &r.flows.records[at]
		if mine.count() == 0 && !r.flows.claim(at, theirs.flow) {
			r.counts.Shed += theirs.count()
			continue
		}
		mine.merge(&theirs)
		histogram := r.flows.histogram(at)
		for k, n := range b.flows.histogram(i) {
			histogram[k] = plus(histogram[k], n)
		}
	}
	return nil
}

// depart follows the busy periods and reports whether the packet found the
// link idle.
func (r *Receiver) depart(bytes int, t int64, reference bool) bool {
	size := r.sending(int32(bytes))
	excess := float64(t-r.latest.time) - size
	idle := false
	if excess > r.slack {
		idle = r.latest.time != never
		r.nextPeriod()
		r.periods[r.current] = period{first: t, lead: size, whole: idle, held: int32(r.waiting)}
	} else if excess < -r.slack {
		r.impossible()
	}
	// Field by field: a copy of the whole would be read back before it is
	// written.
	r.latest.time, r.latest.bytes, r.latest.reference = t, int32(bytes), reference
	return idle
}

// nextPeriod closes the period under way, and makes another current.
func (r *Receiver) nextPeriod() {
	p := &r.periods[r.current]
	p.end = r.latest.time
	r.probe.end(&r.residuals, r.spread, point{place: p.place(p.end, 0)})
	if l := &r.lesson; l.of > 0 {
		left := p.place(p.end, 0) - l.at.place
		if l.behind { // as if there were no reference
			left -= r.sending(int32(r.config.ReferenceBytes))
		}
		r.spread.learn(l.at.place, left, l.at.wait)
		l.of = 0
	}
	if r.waiting > int(p.held) {
		r.current++
	} else if r.current == 0 {
		r.leftHere = false
	}
}

// impossible notes a packet that departed sooner after the one before than
// the link can send it.
func (r *Receiver) impossible() {
	r.counts.Impossible++
	if r.link.trusted() {
		r.counts.Fallbacks++
	}
	r.link.doubt()
}

// start is the point from which a period's waiting times are known: the left
// reference if it is in it, or else the beginning, if that was seen.
func (r *Receiver) start(period int) (point, bool) {
	if period == 0 && r.leftHere {
		return r.leftAt, true
	}
	return point{}, r.periods[period].whole
}
