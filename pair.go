package hoplag

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/hoplag/hoplag/hashing"
)

// Records yields what passes the point, cut by cut, until the context is done
// or the point is closed: signed records of one cut each, for whatever bus
// carries them to a [Pair]. It begins with the present cut.
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
// [Point.Records] gives. Records of one point come in order; those that were
// taken before, and those of sessions that ended, are passed over, so that
// they may come again. It does not know a replay of records that it never saw:
// where strangers can speak, use [Point.Follow].
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

// Watch says of which flows to report, with Config.Flows.
func (p *Pair) Watch(flows ...hashing.Flow) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watched = flows
}

// At says what time it is, until it is said again, in place of the clock: for
// records that a stream kept, when each of them came there. So the same records
// give the same reports whenever they are read. It is not to go back.
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

// Next returns the next report, if it is due: ask until there is none, after
// every few records and now and then, as reports of points that are silent are
// due by the time.
func (p *Pair) Next() (Report, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pairing := p.compare.pairing
	now := p.elapsed() - pairing.feeds[second].ahead.value()
	return p.compare.next(floorDiv(now, pairing.cut) - 1)
}
