package hoplag

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/areas"
	"github.com/hoplag/hoplag/lda/lost"
)

// A mostKey is for the most bytes that a reply may have, in the context of an exchange.
type mostKey struct{}

// Follow compares this point with another. Ask carries a request to the other's [Point.Answer], over HTTP ([HTTP]) or
// any bus, and returns the reply; it must return when the context is done. Follow yields a report for each interval, of
// packets that passed there first and then here, and of those that came back. Whatever happens to the other point, it
// continues until the context is done or this point is closed; reports say what is wrong.
func (p *Point) Follow(ctx context.Context, ask func(ctx context.Context, request []byte) (reply []byte, err error)) iter.Seq[Report] {
	return func(yield func(Report) bool) {
		// A megabyte of records, and one record with everything full, or names. Packing makes no cell larger
		// except for its share of a block's head; a flow takes 65 bytes in a direction.
		most := 2*maxReply + 4*int64(p.config.Cells.EncodedSize()) + 130*int64(p.config.Flows)
		ctx := context.WithValue(ctx, mostKey{}, most)
		f := follower{ctx: ctx, point: p, ask: ask, compare: newComparison(p.config), name: randomNumber()}
		p.Back.remember()
		f.compare.meeting.ends[second].name, f.compare.meeting.asks = p.config.Name, f.which
		f.compare.begin(p.number(p.clock.now()) - 1)
		for p.wait(ctx, f.wake()) == nil {
			now := p.number(p.clock.now()) - 1 // what both points have by now is fetched next
			f.fetch()
			for r, ok := f.compare.next(now); ok && ctx.Err() == nil; r, ok = f.compare.next(now) {
				if f.err != nil && r.Err != nil && !errors.Is(r.Err, f.err) {
					r.Err = fmt.Errorf("%w: %w", r.Err, f.err)
				}
				if !yield(r) {
					return
				}
			}
		}
	}
}

// A follower is one run of Follow.
type follower struct {
	ctx     context.Context
	point   *Point
	ask     func(context.Context, []byte) ([]byte, error)
	compare *comparison
	name    uint64 // as a reader of both points
	local   stored // the latest cut of the point's own
	err     error  // why the other point could not be reached
}

// wake returns when to look at the points again: when the current report can be complete, or soon if it should be or nothing was compared
// yet, and each second, so that histories need not hold a long report. The other point's cuts are up to half a cut later than ours.
func (f *follower) wake() int64 {
	cut := int64(f.point.config.Cut)
	now := f.point.clock.now()
	if !f.compare.meeting.warm && f.err == nil {
		return now + cut
	}
	due := (f.compare.due()+1)*cut + cut*6/10 + 2*int64(f.point.config.grace())
	return min(max(due, now+cut), now+max(cut, int64(time.Second)))
}

func (f *follower) fetch() {
	p, here := f.point, &f.compare.meeting.ends[second]
	p.mu.Lock()
	cuts, _ := p.history.read(f.name, f.local.end(), p.config.History, p.clock.elapsed())
	p.mu.Unlock()
	for i := range cuts {
		f.local = cuts[i]
		if r, err := p.seal.parse(p.seal.head(p.seal.of(&cuts[i]), recordMagic)); err == nil {
			f.compare.meeting.take(second, "", r)
		}
		here.ahead.add(0, -cuts[i].wall, 0)
	}

	ctx, cancel := context.WithTimeout(f.ctx, max(p.config.Report, time.Second))
	defer cancel()
	for more := true; more; {
		more, f.err = f.fetchOnce(ctx)
	}
}

// fetchOnce makes one exchange and reports whether there may be more to fetch.
func (f *follower) fetchOnce(ctx context.Context) (more bool, err error) {
	p, feed, here := f.point, &f.compare.meeting.ends[first], &f.compare.meeting.ends[second]
	var at position
	if len(feed.shards) > 0 {
		at = feed.shards[0].at
	}
	q := newRequest(f.name, at, nil)
	sent, before, sure := p.clock.nowAs(f.local.mark)
	data, err := f.ask(ctx, p.seal.request(q))
	if err != nil {
		return false, err
	}
	came, after, still := p.clock.nowAs(f.local.mark)
	r, err := p.seal.answered(q, data)
	if err != nil {
		return false, fmt.Errorf("hoplag: %w", err)
	}
	feed.name = r.name
	for _, record := range r.records {
		if record.session == f.local.session {
			return false, fmt.Errorf("%w: the other point is this one", estimate.ErrMismatch)
		}
		if _, err := f.compare.meeting.take(first, "", record); err != nil {
			return false, err
		}
	}
	if len(r.records) == 0 || r.more { // perhaps it was restarted, and its clock is of another session
		return r.more, nil
	}
	// The other clock was read between before and after: the less time that took, the more certain it is.
	feed.ahead.add(after-before, before+(after-before)/2-r.now, after)
	if sure && still {
		f.compare.clocks.exchanged = append(f.compare.clocks.exchanged, exchange{sent, r.now, came, sessions{feed.ahead, here.ahead}})
	}
	return false, nil
}

// wait waits until a time by the point's clock.
func (p *Point) wait(ctx context.Context, until int64) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-p.open.Done():
		return errClosed
	case <-time.After(time.Duration(until - p.clock.now())):
		return nil
	}
}

// Answer answers a follower's request, however it arrived. The reply says what passed since the last one, in up
// to a megabyte. The error says that the point is closed or that the request is not signed with its Key, or
// wraps [estimate.ErrMismatch] or [estimate.ErrEncoding].
func (p *Point) Answer(request []byte) ([]byte, error) {
	r, err := p.seal.open(request, requestMagic)
	if err == nil && p.open.Err() != nil {
		err = errClosed
	}
	nonce, at := r.Bytes(nonceSize), position{r.Uint64(), int64(r.Uint64())}
	a, cuts, trails := reply{name: p.config.Name}, []stored(nil), r.Bytes(r.Len())
	if err = cmp.Or(err, r.Close()); err == nil && len(trails) > 0 {
		a.names, err = p.which(trails)
	}
	if err != nil {
		return nil, fmt.Errorf("hoplag: %w", err)
	}
	if len(trails) > 0 {
		return p.seal.reply(nonce, a, nil), nil
	}
	p.Direction.remember()
	p.mu.Lock()
	cuts, a.more = p.history.read(binary.BigEndian.Uint64(nonce), at, maxReply, p.clock.elapsed())
	var latest stored
	if n := len(p.history.cuts); n > 0 {
		latest = p.history.cuts[n-1]
	}
	p.mu.Unlock()
	var sure bool
	if a.now, _, sure = p.clock.nowAs(latest.mark); !sure { // cuts come with one of a session that has the clock as it is now
		cuts, a.more = nil, false
	}
	return p.seal.reply(nonce, a, cuts), nil
}

// Records yields what passes the point as signed records, of one cut each if the caller keeps up, for any bus that carries
// them to a [Pair]. It begins with the latest cut and ends when the context is done or the point is closed.
func (p *Point) Records(ctx context.Context) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		at, name := position{}, randomNumber()
		for {
			closed := p.open.Err() != nil // before the last cuts are read
			p.mu.Lock()
			waiting := p.waiting
			cuts, _ := p.history.read(name, at, p.config.History, p.clock.elapsed())
			p.mu.Unlock()
			for i := range cuts {
				at = cuts[i].end()
				record := p.seal.of(&cuts[i])
				if !yield(slices.Concat(record, p.seal.tag(record))) {
					return
				}
			}
			if closed {
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-p.open.Done():
			case <-waiting:
			}
		}
	}
}

// A Pair compares two points that are elsewhere, by the records that [Point.Records] yields. Records of one
// point must arrive in order, and may arrive again. It cannot detect replays of records it never saw; if
// strangers can send records, use [Point.Follow]. Any number of goroutines may call its methods.
//
// Unless Config.ClocksAgree is set, the times at which records arrive tell the Pair which cuts of the points
// belong together. One point's records may arrive later than the other's by half a Config.Cut. If they are
// later by more, packets seem to take longer by as much, or to arrive before they are sent, which is an error.
type Pair struct {
	mu      sync.Mutex
	now     func() int64 // ns since some fixed moment
	compare *comparison
	ahead   *least // of the second point, when Next was last called
	cut     int64  // and its number then
}

// NewPair returns a Pair of points of this Config, whose names in reports are from and to. The error wraps [estimate.ErrConfig].
func NewPair(c Config, from, to string) (*Pair, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	began := time.Now()
	p := &Pair{now: func() int64 { return int64(time.Since(began)) }, compare: newComparison(c.withDefaults())}
	p.compare.meeting.ends[first].name = from
	p.compare.meeting.ends[second].name = to
	return p, nil
}

// At sets the time that the Pair uses instead of the clock. For records kept in a stream, pass the time at
// which each of them arrived there; the same records then give the same reports whenever they are read. Time
// must not go back. Without it, read them in the order in which they arrived.
func (p *Pair) At(t time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = t.UnixNano
}

// TakeFirst takes a record of the first point. The error says that it is not signed with the Key or that two points take turns as one
// shard, or wraps [estimate.ErrMismatch] or [estimate.ErrEncoding].
//
// Several Points may be the first point together: the machines behind one address, each with some of the packets. Each is a shard with a
// name of its own; the only one may have none. What they counted is added up cut by cut, and is as good as if one had counted everything,
// whichever of them a packet passes. Their clocks must agree, as on one machine or with PTP: no interval allows for their difference.
// Shards may come and go: reports then say that they begin anew (Report.Begins). What a shard sent before its first record arrived counts
// as Extra. A shard that is silent for 5 seconds counts as gone; until then the others wait for it.
func (p *Pair) TakeFirst(shard string, record []byte) error { return p.take(first, shard, record) }

// TakeSecond takes a record of the second point, or of one of its shards.
func (p *Pair) TakeSecond(shard string, record []byte) error { return p.take(second, shard, record) }

func (p *Pair) take(point int, shard string, record []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	m, now := p.compare.meeting, p.now()
	r, err := m.seal.decode(bytes.Clone(record))
	if err != nil {
		return fmt.Errorf("hoplag: %w", err)
	}
	isNew, err := m.take(point, shard, r)
	if isNew {
		// The record was on its way for a while. The smallest of many such differences is close to that of the clocks.
		ahead := now - (r.through+1)*m.cut
		m.ends[point].ahead.add(ahead, ahead, now)
		e := &m.ends[point]
		if gap := now - e.heard; gap > max(shardPatience/5, 2*m.cut) {
			e.since += gap // nothing was heard: those that wait for a shard wait on
		}
		e.heard = now
	}
	return err
}

// Next returns the next report, if one is due. Call it until there is none, after each record and regularly:
// reports of silent points become due by time. Records wait for it, at most 64 of a point that has just begun;
// older ones are dropped, and the next report says that it begins (Report.Begins).
func (p *Pair) Next() (Report, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m, now := p.compare.meeting, p.now()
	ahead := m.ends[second].ahead
	cut := floorDiv(now, m.cut) - 1
	if ahead != nil {
		cut = floorDiv(now-ahead.x, m.cut) - 1
	}
	if ahead == p.ahead { // records that come late do not turn back time; a clock that is set does, in a session of its own
		cut = max(cut, p.cut)
	}
	p.ahead, p.cut = ahead, cut
	if p.compare.early(cut) {
		return Report{}, false
	}
	return p.compare.next(cut)
}

const (
	contentType = "application/vnd.hoplag"

	maxRequest = 64 << 10 // bytes

	// requestTimeout is how long a request may take to come.
	requestTimeout = 10 * time.Second
)

// ServeHTTP answers followers. The body of a POST is the request, and the body
// of the response is the reply. Only those who have the Key get one.
func (p *Point) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "This is a point of hoplag. Follow it with Point.Follow, from a point of the same Key.", http.StatusMethodNotAllowed)
		return
	}
	http.NewResponseController(w).SetReadDeadline(time.Now().Add(requestTimeout)) // where the server can
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	var reply []byte
	if err == nil {
		reply, err = p.Answer(body)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Cache-Control", "no-store")
	w.Write(reply)
}

// HTTP returns a function with which [Point.Follow] asks the point whose ServeHTTP is at url, by client, or by
// [http.DefaultClient] if that is nil. It reads no more than a point of the follower's Config can answer.
func HTTP(client *http.Client, url string) func(ctx context.Context, request []byte) (reply []byte, err error) {
	return func(ctx context.Context, request []byte) ([]byte, error) {
		q, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(request))
		if err != nil {
			return nil, fmt.Errorf("hoplag: %w", err)
		}
		q.Header.Set("Content-Type", contentType)
		a, err := cmp.Or(client, http.DefaultClient).Do(q)
		most, _ := ctx.Value(mostKey{}).(int64)
		most = max(most, 2*maxReply) // where it is not a follower who asks
		var body []byte
		if err == nil {
			defer a.Body.Close()
			body, err = io.ReadAll(io.LimitReader(a.Body, most+1))
		}
		switch {
		case err != nil:
			return nil, fmt.Errorf("hoplag: %w", err)
		case a.Request != nil && a.Request.Method != http.MethodPost:
			return nil, fmt.Errorf("hoplag: %s redirects to %s, which turns a POST into a GET: use that address, or status 308", url, a.Request.URL)
		case a.StatusCode == http.StatusNotFound || a.StatusCode == http.StatusOK && a.Header.Get("Content-Type") != contentType:
			return nil, fmt.Errorf("hoplag: no point is at %s: it answers %s; is the path right?", url, a.Status)
		case a.StatusCode != http.StatusOK:
			return nil, fmt.Errorf("hoplag: %s answers %s: %.200s", url, a.Status, bytes.TrimSpace(body))
		case int64(len(body)) > most:
			return nil, fmt.Errorf("hoplag: %s answers with more than %d bytes: does it have other Cells?", url, most)
		}
		return body, nil
	}
}

// which asks the first point what is missing in trails, or this point if the messages went back. It also returns the
// trails that it asked about, which are fewer if the question would be too long.
func (f *follower) which(direction int, trails []areas.Trail) (_ []areas.Trail, names lost.Names) {
	p := f.point
	if direction == back {
		names, _ = p.Back.find(trails) // or none
		return trails, names
	}
	if p.number(p.clock.now()) > max(f.compare.due(), f.compare.since+learning)+f.compare.cuts {
		return nil, names // exchanges are so slow that reports are late
	}
	unit := int64(p.config.Cut)
	for len(lost.AppendTrails(nil, trails, unit)) > maxRequest-100 {
		trails = trails[:len(trails)*3/4]
	}
	ctx, cancel := context.WithTimeout(f.ctx, max(p.config.Report, time.Second)/2)
	defer cancel()
	q := newRequest(f.name, position{}, lost.AppendTrails(nil, trails, unit))
	if data, err := f.ask(ctx, p.seal.request(q)); err == nil {
		if r, err := p.seal.answered(q, data); err == nil {
			names, _ = p.seal.names(r.names, trails, p.Direction) // or none
		}
	}
	return trails, names
}
