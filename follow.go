package hoplag

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"time"

	"github.com/hoplag/hoplag/hashing"
)

// An Exchange carries a request to another point's [Point.Answer] and returns
// the reply: over HTTP ([HTTP]), a connection ([Conn]), datagrams ([Datagrams])
// or any bus.
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
		f := follower{point: p, ask: ask, compare: newComparison(p.config)}
		f.compare.pairing.feeds[second].name = p.config.Name
		f.compare.seen = func(direction int, since int64) []hashing.Flow { return p.census.since(nil, direction, since) }
		f.compare.begin(p.number(p.clock.now()) - 1)
		for p.wait(ctx, f.wake()) == nil {
			f.fetch(ctx)
			for ctx.Err() == nil {
				r, ok := f.compare.next(p.number(p.clock.now()) - 1)
				if !ok {
					break
				}
				if r.Err != nil && f.err != nil {
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
	local   position
	err     error // why the other point could not be reached
}

// wake returns when to look at the points again: when the current report can
// be complete, or soon if it should be or nothing was compared yet. The other
// point's cuts are up to half a cut later than ours.
func (f *follower) wake() int64 {
	cut := int64(f.point.config.Cut)
	if !f.compare.pairing.warm && f.err == nil {
		return f.point.clock.now() + cut
	}
	due := (f.compare.last(f.compare.current)+1+f.compare.hold())*cut + cut*6/10
	return max(due, f.point.clock.now()+cut)
}

// fetch fetches what both points have.
func (f *follower) fetch(ctx context.Context) {
	f.point.mu.Lock()
	cuts, _ := f.point.history.since(f.local, f.point.config.History)
	f.point.mu.Unlock()
	here := &f.compare.pairing.feeds[second]
	for _, c := range cuts {
		f.local = position{c.session, c.through}
		must(0, f.compare.pairing.take(second, c.data)) // our own
		here.see(-c.wall)
	}

	ctx, cancel := context.WithTimeout(ctx, max(f.point.config.Report, time.Second))
	defer cancel()
	for {
		more, err := f.fetchOnce(ctx)
		if f.err = err; !more || err != nil {
			return
		}
	}
}

// fetchOnce makes one exchange and reports whether there may be more to fetch.
func (f *follower) fetchOnce(ctx context.Context) (more bool, err error) {
	p, feed := f.point, &f.compare.pairing.feeds[first]
	q := newRequest(feed.at)
	before := p.clock.elapsed()
	data, err := f.ask(ctx, p.seal.request(q))
	if err != nil {
		return false, err
	}
	after := p.clock.elapsed()
	r, err := p.seal.reply(q, data)
	if err != nil {
		return false, err
	}
	feed.name = r.name
	for _, record := range r.records {
		if err := f.compare.pairing.take(first, record); err != nil {
			return false, err
		}
	}
	// The other clock was read between before and after.
	feed.see(before + (after-before)/2 - r.now)
	return r.more && len(r.records) > 0, nil
}

// wait waits until a time by the point's clock.
func (p *Point) wait(ctx context.Context, until int64) error {
	timer := time.NewTimer(time.Duration(until - p.clock.now()))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-p.closing:
		return context.Canceled
	case <-timer.C:
		return nil
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
		case a.StatusCode != http.StatusOK:
			return nil, fmt.Errorf("hoplag: %s answers %s: %.200s", url, a.Status, bytes.TrimSpace(body))
		case len(body) > maxMessage:
			return nil, fmt.Errorf("hoplag: %s answers with more than %d bytes", url, maxMessage)
		}
		return body, nil
	}
}
