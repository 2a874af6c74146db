package soak

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hoplag/hoplag"
)

// points are two points of the front door. The near one follows the far one
// over HTTP, on this machine.
type points struct {
	config hoplag.Config
	near   *hoplag.Point
	far    atomic.Pointer[hoplag.Point]
	server *httptest.Server
	close  func()

	rounds, messages, requests, refused, restarts int

	mu       sync.Mutex
	recorded []byte // a request of the follower
	reports  int
	wrong    error // in a report
}

func newPoints() (*points, error) {
	p := &points{config: hoplag.Config{Key: hoplag.NewKey("a key of the soak test"), Cut: 5 * time.Millisecond, History: 64 << 10, Flows: 100}}
	near, err := hoplag.NewPoint(p.config)
	if err := errors.Join(err, p.restart()); err != nil {
		return nil, err
	}
	p.near = near
	p.server = httptest.NewServer(p)
	ctx, stop := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		for r := range p.near.Follow(ctx, p.server.URL) {
			p.report(&r)
		}
	})
	p.close = func() {
		stop()
		p.server.Close()
		done.Wait()
		p.far.Load().Close()
		p.near.Close()
	}
	return p, nil
}

// report counts a report, and looks for answers in it that are not numbers.
func (p *points) report(r *hoplag.Report) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reports++
	for _, d := range [2]hoplag.Delay{r.Forth, r.Back} {
		if sum := d.Mean + d.StdDev; math.IsNaN(sum) || math.IsInf(sum, 0) {
			p.wrong = errors.Join(p.wrong, fmt.Errorf("report %d: the answer is %+v", r.Number, d.Delay))
		}
	}
}

// ServeHTTP passes a request to the far point, and keeps it for strangers.
func (p *points) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err == nil && r.Header.Get("Stranger") == "" {
		p.mu.Lock()
		p.recorded = body
		p.mu.Unlock()
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	p.far.Load().ServeHTTP(w, r)
}

// restart restarts the far point, which then knows nothing.
func (p *points) restart() error {
	far, err := hoplag.NewPoint(p.config)
	if err != nil {
		return err
	}
	if old := p.far.Swap(far); old != nil {
		old.Close()
	}
	return nil
}

// round passes messages and sends damaged requests.
func (p *points) round(random *rand.Rand) error {
	if p.rounds++; p.rounds%200 == 0 {
		p.restarts++
		if err := p.restart(); err != nil {
			return err
		}
	}
	for range 300 {
		p.message(random)
	}
	p.mu.Lock()
	recorded, wrong := p.recorded, p.wrong
	p.mu.Unlock()
	for range 3 {
		status, err := p.ask(damage(random, recorded))
		if err != nil {
			return err
		}
		if p.requests++; status != http.StatusOK {
			p.refused++
		}
	}
	return wrong
}

// message passes a message, which may be lost, repeated or of an impossible
// time.
func (p *points) message(random *rand.Rand) {
	p.messages++
	far := p.far.Load()
	id := random.Uint32()
	if random.IntN(3) == 0 {
		id %= 3
	}
	name, flow := []byte{byte(id), byte(id >> 8), byte(id >> 16), byte(id >> 24)}, far.Flow([]byte{byte(random.IntN(300))})
	switch random.IntN(20) {
	case 0:
		far.Passed(name)
	case 1:
		p.near.Passed(name)
	case 2:
		at := []int64{math.MinInt64, math.MaxInt64, int64(random.Uint64()), time.Now().UnixNano()}[min(3, random.IntN(1000))]
		far.Record(time.Unix(0, at), far.Packet(name))
	default:
		far.PassedIn(flow, name)
		p.near.PassedIn(flow, name)
		p.near.Back.Passed(name)
		far.Back.Passed(name)
	}
}

// damage changes some bytes, cuts some off or adds some.
func damage(random *rand.Rand, b []byte) []byte {
	b = bytes.Clone(b)
	for range random.IntN(8) {
		if len(b) > 0 {
			b[random.IntN(len(b))] = byte(random.Uint32())
		}
	}
	switch random.IntN(4) {
	case 0:
		b = b[:random.IntN(len(b)+1)]
	case 1:
		b = append(b, byte(random.Uint32()))
	}
	return b
}

// ask sends what a stranger sends.
func (p *points) ask(body []byte) (status int, err error) {
	request, err := http.NewRequest(http.MethodPost, p.server.URL, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Stranger", "yes")
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer reply.Body.Close()
	_, err = io.Copy(io.Discard, reply.Body)
	return reply.StatusCode, err
}
