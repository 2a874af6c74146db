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
// [Point.Records] yields. Records of one point must come in order. A Pair skips
// records that it has seen and records of sessions that ended, so they may come
// again. It cannot tell that records it never saw are replayed; where strangers
// can speak, use [Point.Follow].
//
// All methods are for any number of goroutines at once.
type Pair struct {
	mu      sync.Mutex
	clock   *timeline
	compare *comparison
	watched []hashing.Flow
	at      time.Time // zero: as the clock says
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

// At sets the time that the Pair uses instead of the clock. For records that a
// stream kept, say when each of them arrived there; then the same records give
// the same reports whenever they are read. Time must not go back.
func (p *Pair) At(t time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at = t
}

// elapsed is the time, since whenever.
func (p *Pair) elapsed() int64 {
	if p.at.IsZero() {
		return p.clock.elapsed()
	}
	return p.at.UnixNano()
}

// TakeFirst takes a record of the first point. The error wraps [ErrForged],
// [estimate.ErrMismatch] or [estimate.ErrEncoding].
func (p *Pair) TakeFirst(record []byte) error { return p.take(first, record) }

// TakeSecond takes a record of the second point.
func (p *Pair) TakeSecond(record []byte) error { return p.take(second, record) }

func (p *Pair) take(point int, record []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	pairing := p.compare.pairing
	if err := pairing.take(point, record); err != nil {
		return err
	}
	// The record was on its way for a while; the least of many such
	// differences is close to that of the clocks.
	feed := &pairing.feeds[point]
	feed.see(p.elapsed() - (feed.at.through+1)*pairing.cut)
	return nil
}

// Next returns the next report, if one is due. Call it until there is none,
// after every few records and now and then: reports of silent points become due
// by time.
func (p *Pair) Next() (Report, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pairing := p.compare.pairing
	now := p.elapsed() - pairing.feeds[second].ahead.value()
	return p.compare.next(floorDiv(now, pairing.cut) - 1)
}
