package hoplag

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/lda/lost"
)

// An Exchange carries a request to another point's [Point.Answer] and returns
// the reply: over HTTP ([HTTP]), a connection ([Conn], [Dial]) or any bus.
type Exchange func(ctx context.Context, request []byte) (reply []byte, err error)

// Follow compares this point with the one whose ServeHTTP is at the URL. It
// yields a report for each interval, of packets that passed there first and
// then here, and of those that came back. Whatever happens to the other point,
// it continues until the context is done; reports say what is wrong.
func (p *Point) Follow(ctx context.Context, url string) iter.Seq[Report] {
	return p.FollowOver(ctx, HTTP(nil, url))
}

// FollowOver is [Point.Follow] over any transport.
func (p *Point) FollowOver(ctx context.Context, ask Exchange) iter.Seq[Report] {
	return func(yield func(Report) bool) {
		f := follower{point: p, ask: ask, compare: newComparison(p.config), name: randomNumber()}
		p.Back.remember()
		f.compare.meeting.which = func(direction int, trails []estimate.Trail, take func([]estimate.Trail, *lost.Names)) {
			f.which(ctx, direction, trails, take)
		}
		f.compare.meeting.ends[second].name, f.compare.meeting.asks = p.config.Name, true
		f.compare.begin(p.number(p.clock.now()) - 1)
		for p.wait(ctx, f.wake()) == nil {
			now := p.number(p.clock.now()) - 1 // what both points have by now is fetched next
			f.fetch(ctx)
			for ctx.Err() == nil {
				r, ok := f.compare.next(now)
				if !ok {
					break
				}
				if f.err != nil && r.Err != nil {
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
	point   *Point
	ask     Exchange
	compare *comparison
	name    uint64 // as a reader of both points
	local   position
	err     error // why the other point could not be reached
}

// wake returns when to look at the points again: when the current report can
// be complete, or soon if it should be or nothing was compared yet. The other
// point's cuts are up to half a cut later than ours.
func (f *follower) wake() int64 {
	cut := int64(f.point.config.Cut)
	now := f.point.clock.now()
	if !f.compare.meeting.warm && f.err == nil {
		return now + cut
	}
	due := (f.compare.due()+1)*cut + cut*6/10 + 2*int64(f.point.config.grace())
	return min(max(due, now+cut), now+2*int64(f.point.config.Report))
}

// fetch fetches what both points have.
func (f *follower) fetch(ctx context.Context) {
	p, here := f.point, &f.compare.meeting.ends[second]
	p.mu.Lock()
	cuts, _ := p.history.read(f.name, f.local, p.config.History, p.clock.elapsed())
	p.mu.Unlock()
	for i := range cuts {
		f.local = position{cuts[i].session, cuts[i].through}
		_, err := f.compare.meeting.take(second, "", p.seal.of(&cuts[i]))
		must(0, err) // our own
		here.ahead.add(0, -cuts[i].wall, 0)
	}

	ctx, cancel := context.WithTimeout(ctx, max(p.config.Report, time.Second))
	defer cancel()
	for more := true; more; {
		if more, f.err = f.fetchOnce(ctx); f.err != nil {
			return
		}
	}
}

// fetchOnce makes one exchange and reports whether there may be more to fetch.
func (f *follower) fetchOnce(ctx context.Context) (more bool, err error) {
	p, feed := f.point, &f.compare.meeting.ends[first]
	var at position
	if len(feed.shards) > 0 {
		at = feed.shards[0].at
	}
	q := newRequest(f.name, at)
	before, sent := p.clock.elapsed(), p.clock.now()
	data, err := f.ask(ctx, p.seal.request(q))
	if err != nil {
		return false, err
	}
	after, came := p.clock.elapsed(), p.clock.now()
	r, err := p.seal.answered(q, data)
	if err != nil {
		return false, err
	}
	feed.name = r.name
	for _, record := range r.records {
		if _, err := f.compare.meeting.take(first, "", record); err != nil {
			return false, err
		}
	}
	// The other clock was read between before and after, the surer the less time
	// that took.
	feed.ahead.add(after-before, before+(after-before)/2-r.now, after)
	f.compare.clocks.exchanged = append(f.compare.clocks.exchanged, exchange{sent, r.now, came})
	return r.more && len(r.records) > 0, nil
}

// wait waits until a time by the point's clock.
func (p *Point) wait(ctx context.Context, until int64) error {
	timer := time.NewTimer(time.Duration(until - p.clock.now()))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-p.open.Done():
		return ErrClosed
	case <-timer.C:
		return nil
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
	at      time.Time // zero: use the clock
	ahead   *least    // of the second point, when Next was last called
	cut     int64     // and its number then
}

// NewPair returns a Pair of points of this Config, whose names in reports are
// from and to. The error wraps [estimate.ErrConfig].
func NewPair(c Config, from, to string) (*Pair, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	p := &Pair{clock: newTimeline(nil), compare: newComparison(c.withDefaults())}
	p.compare.meeting.ends[first].name = from
	p.compare.meeting.ends[second].name = to
	return p, nil
}

// Format prints the names of the points, and no secret.
func (p *Pair) Format(s fmt.State, _ rune) {
	fmt.Fprintf(s, "hoplag.Pair(%q, %q)", p.compare.meeting.ends[first].name, p.compare.meeting.ends[second].name)
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
	m, now := p.compare.meeting, p.elapsed()
	r, err := m.take(point, shard, bytes.Clone(record))
	if r != nil {
		// The record was on its way for a while. The smallest of many such
		// differences is close to that of the clocks.
		ahead := now - (r.through+1)*m.cut
		m.ends[point].ahead.add(ahead, ahead, now)
		m.hear(point, now)
	}
	return err
}

// Next returns the next report, if one is due. Call it until there is none,
// after each record and regularly: reports of silent points become due by
// time. Records wait for it, at most 64 of a point that has just begun; older
// ones are dropped, and the next report says that it begins (Report.Begins).
func (p *Pair) Next() (Report, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m, now := p.compare.meeting, p.elapsed()
	ahead := m.ends[second].ahead
	_, difference := ahead.value()
	cut := floorDiv(now-difference, m.cut) - 1
	if ahead == p.ahead { // records that come late do not turn back time; a clock that is set does, in a session of its own
		cut = max(cut, p.cut)
	}
	p.ahead, p.cut = ahead, cut
	return p.compare.next(cut)
}

const (
	contentType = "application/vnd.hoplag"

	// maxMessage bounds what is read from a peer, in bytes.
	maxMessage = 64 << 20
	maxRequest = 64 << 10

	// A connection has firstTimeout until its first signed request has come, and
	// nextTimeout for each one after that. maxConns are open at a time.
	firstTimeout, nextTimeout = 10 * time.Second, 10 * time.Minute
	maxConns                  = 1024
)

// ServeHTTP answers followers. The body of a POST is the request, and the body
// of the response is the reply. Only those who have the Key get one.
func (p *Point) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "This is a point of hoplag. Follow it with Point.Follow, from a point of the same Key.", http.StatusMethodNotAllowed)
		return
	}
	http.NewResponseController(w).SetReadDeadline(time.Now().Add(firstTimeout)) // where the server can
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	http.NewResponseController(w).SetReadDeadline(time.Time{})
	var reply []byte
	if err == nil {
		reply, err = p.Answer(body)
	}
	switch {
	case errors.Is(err, ErrForged):
		http.Error(w, err.Error(), http.StatusForbidden)
	case errors.Is(err, ErrClosed):
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
	default:
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Cache-Control", "no-store")
		w.Write(reply)
	}
}

// HTTP exchanges with the point whose ServeHTTP is at a URL, by a client, or
// [http.DefaultClient] for nil.
func HTTP(client *http.Client, url string) Exchange {
	if client == nil {
		client = http.DefaultClient
	}
	return func(ctx context.Context, request []byte) ([]byte, error) {
		q, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(request))
		if err != nil {
			return nil, fmt.Errorf("hoplag: %w", err)
		}
		q.Header.Set("Content-Type", contentType)
		a, err := client.Do(q)
		if err != nil {
			return nil, fmt.Errorf("hoplag: %w", err)
		}
		defer a.Body.Close()
		body, err := io.ReadAll(io.LimitReader(a.Body, maxMessage+1))
		switch {
		case err != nil:
			return nil, fmt.Errorf("hoplag: %w", err)
		case a.StatusCode == http.StatusNotFound || a.StatusCode == http.StatusOK && a.Header.Get("Content-Type") != contentType:
			return nil, fmt.Errorf("hoplag: no point is at %s: it answers %s; is the path right?", url, a.Status)
		case a.StatusCode != http.StatusOK:
			return nil, fmt.Errorf("hoplag: %s answers %s: %.200s", url, a.Status, bytes.TrimSpace(body))
		case len(body) > maxMessage:
			return nil, fmt.Errorf("hoplag: %s answers with more than %d bytes", url, maxMessage)
		}
		return body, nil
	}
}

// Serve answers the followers that connect, until the listener or the point is
// closed. Of those who do not show within ten seconds that they have the Key, or
// are more than a thousand, it closes the connections. Errors such as too many open
// files may pass: it waits a while.
func (p *Point) Serve(l net.Listener) error {
	defer context.AfterFunc(p.open, func() { l.Close() })()
	for wait := time.Millisecond; ; {
		conn, err := l.Accept()
		switch {
		case err == nil:
			wait = time.Millisecond
			go func() {
				defer conn.Close()
				defer context.AfterFunc(p.open, func() { conn.Close() })()
				defer p.conns.Add(-1)
				if p.conns.Add(1) <= maxConns {
					p.ServeConn(conn)
				}
			}()
		case errors.Is(err, net.ErrClosed), p.open.Err() != nil:
			return nil
		case wait > 10*time.Second:
			return fmt.Errorf("hoplag: %w", err)
		default:
			wait *= 2
			p.wait(context.Background(), p.clock.now()+int64(min(wait, time.Second)))
		}
	}
}

// ServeConn answers the follower at the other end of a connection, until the
// follower closes it. Anything that carries bytes both ways will do. A request
// that is not signed ends it with [ErrForged].
func (p *Point) ServeConn(conn io.ReadWriter) error {
	timed, _ := conn.(interface{ SetDeadline(time.Time) error })
	for timeout := firstTimeout; ; timeout = nextTimeout {
		if timed != nil {
			timed.SetDeadline(time.Now().Add(timeout))
		}
		request, err := readMessage(conn, maxRequest)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		reply, err := p.Answer(request)
		if err != nil {
			return err
		}
		if err := writeMessage(conn, reply); err != nil {
			return err
		}
	}
}

// Conn exchanges over a connection to a point's [Point.ServeConn], one request
// at a time. After an error it is useless.
func Conn(conn net.Conn) Exchange {
	var mu sync.Mutex
	return func(ctx context.Context, request []byte) ([]byte, error) {
		mu.Lock()
		defer mu.Unlock()
		end, _ := ctx.Deadline()
		conn.SetDeadline(end)
		stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
		defer stop()
		if err := writeMessage(conn, request); err != nil {
			return nil, err
		}
		return readMessage(conn, maxMessage)
	}
}

// Dial exchanges over connections to the [Point.Serve] at an address, given as for
// [net.Dial]. It connects when first needed, and again after an error: at once if
// the connection is old.
func Dial(network, address string) Exchange {
	var conn net.Conn
	var mu sync.Mutex
	return func(ctx context.Context, request []byte) (reply []byte, err error) {
		mu.Lock()
		defer mu.Unlock()
		for old := conn != nil; ; old = false {
			if conn == nil {
				var d net.Dialer
				if conn, err = d.DialContext(ctx, network, address); err != nil {
					conn = nil
					return nil, fmt.Errorf("hoplag: %w", err)
				}
			}
			if reply, err = Conn(conn)(ctx, request); err == nil {
				return reply, nil
			}
			conn.Close()
			conn = nil
			if !old || ctx.Err() != nil {
				return nil, err
			}
		}
	}
}

// On a connection, each message follows its length in 4 bytes.

func writeMessage(w io.Writer, message []byte) error {
	b := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(message)), uint32(len(message)))
	if _, err := w.Write(append(b, message...)); err != nil {
		return fmt.Errorf("hoplag: %w", err)
	}
	return nil
}

// readMessage reads a message of at most limit bytes.
func readMessage(r io.Reader, limit uint32) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, fmt.Errorf("hoplag: %w", err)
	}
	n := binary.BigEndian.Uint32(length[:])
	if n > limit {
		return nil, fmt.Errorf("hoplag: a message of %d bytes, at most %d: is there a point at the other end?", n, limit)
	}
	// The length is only the peer's word: memory grows with what really comes.
	var b bytes.Buffer
	if _, err := io.CopyN(&b, r, int64(n)); errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("hoplag: %w", io.ErrUnexpectedEOF)
	} else if err != nil {
		return nil, fmt.Errorf("hoplag: %w", err)
	}
	return b.Bytes(), nil
}
