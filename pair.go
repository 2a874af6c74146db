package hoplag

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/hoplag/hoplag/hashing"
)

// Records yields what passes the point as signed records of one cut each, for
// any bus that carries them to a [Pair]. It begins with the present cut and
// ends when the context is done or the point is closed.
func (p *Point) Records(ctx context.Context) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		p.mu.Lock()
		latest, waiting := p.history.latest(), p.waiting
		p.mu.Unlock()
		at := position{latest.session, latest.through}
		for {
			select {
			case <-ctx.Done():
				return
			case <-p.closing:
				return
			case <-waiting:
			}
			p.mu.Lock()
			cuts, _ := p.history.since(at, p.config.History)
			waiting = p.waiting
			p.mu.Unlock()
			for _, c := range cuts {
				at = position{c.session, c.through}
				if !yield(c.data) {
					return
				}
			}
		}
	}
}

// A Pair compares two points that are elsewhere, by the records that
// [Point.Records] yields. Records of one point must come in order. A Pair
// skips records that it has seen and records of sessions that ended, so they
// may come again. It cannot detect replays of records it never saw; if
// strangers can send records, use [Point.Follow].
//
// Any number of goroutines may call its methods.
type Pair struct {
	mu      sync.Mutex
	clock   *timeline
	compare *comparison
	gather  [2]gathering // of the shards of each point
	watched []hashing.Flow
	at      time.Time // zero: use the clock
}

// NewPair returns a Pair of points of this Config, whose names in reports are
// from and to. The error wraps [estimate.ErrConfig].
func NewPair(c Config, from, to string) (*Pair, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	p := &Pair{clock: newTimeline(), compare: newComparison(c.withDefaults())}
	p.compare.pairing.feeds[first].name = from
	p.compare.pairing.feeds[second].name = to
	p.compare.seen = func(int, int64) []hashing.Flow { return p.watched }
	return p, nil
}

// Watch says which flows to report, if Config.Flows is set.
func (p *Pair) Watch(flows ...hashing.Flow) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watched = flows
}

// At sets the time that the Pair uses instead of the clock. For records kept
// in a stream, pass the time at which each of them arrived there; the same
// records then give the same reports whenever they are read. Time must not go
// back.
func (p *Pair) At(t time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at = t
}

// elapsed returns the time since some fixed moment.
func (p *Pair) elapsed() int64 {
	if p.at.IsZero() {
		return p.clock.elapsed()
	}
	return p.at.UnixNano()
}

// TakeFirst takes a record of the first point. The error wraps [ErrForged],
// [estimate.ErrMismatch] or [estimate.ErrEncoding].
func (p *Pair) TakeFirst(record []byte) error { return p.take(first, "", record) }

// TakeSecond takes a record of the second point.
func (p *Pair) TakeSecond(record []byte) error { return p.take(second, "", record) }

// TakeFirstShard takes a record of one of several Points that together are the
// first point: the machines behind one address, each with some of the packets.
// What they counted is added up cut by cut, and is as good as if one had
// counted all, whichever of them a packet passes. Their clocks must agree for
// that, as those of one machine or of a rack do. Shards may come and go:
// reports then say that they begin anew (Report.Begins). A shard that is
// silent for 5 seconds counts as gone; until then the others wait for it.
func (p *Pair) TakeFirstShard(shard string, record []byte) error {
	return p.take(first, shard, record)
}

// TakeSecondShard takes a record of one of the shards of the second point.
func (p *Pair) TakeSecondShard(shard string, record []byte) error {
	return p.take(second, shard, record)
}

func (p *Pair) take(point int, shard string, record []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	pairing, now := p.compare.pairing, p.elapsed()
	r, err := pairing.seal.decode(record)
	if err != nil {
		return err
	}
	feed := &pairing.feeds[point]
	isNew, restarted, err := p.gather[point].take(shard, r)
	if !isNew {
		return err
	}
	if restarted || feed.ahead == nil {
		feed.ahead = new(least)
	}
	// The record was on its way for a while. The smallest of many such
	// differences is close to that of the clocks.
	feed.see(now - (r.through+1)*pairing.cut)
	p.merge(point, now)
	return nil
}

// merge adds up what all shards of a point have.
func (p *Pair) merge(point int, now int64) {
	feed := &p.compare.pairing.feeds[point]
	for q, ok := p.gather[point].next(now); ok; q, ok = p.gather[point].next(now) {
		q.ahead = feed.ahead
		feed.queue = append(feed.queue, q)
	}
}

// Next returns the next report, if one is due. Call it until there is none,
// after each record and regularly: reports of silent points become due by
// time. Records wait for it, at most 64 of a point that has just begun; older
// ones are dropped, and the next report says that it begins (Report.Begins).
func (p *Pair) Next() (Report, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pairing, now := p.compare.pairing, p.elapsed()
	p.merge(first, now)
	p.merge(second, now)
	return p.compare.next(floorDiv(now-pairing.feeds[second].ahead.value(), pairing.cut) - 1)
}
