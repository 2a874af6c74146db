package soak

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/estimate"
)

// points are two points of the front door. The near one follows the far one
// over HTTP, on this machine. Strangers send it anything, and it is restarted
// again and again.
type points struct {
	config hoplag.Config
	near   *hoplag.Point
	far    atomic.Pointer[hoplag.Point]
	server *httptest.Server
	rounds int

	mu       sync.Mutex
	recorded []byte // a request of the follower
	reports  int    // not yet counted
	wrong    error  // in a report
}

func newPoints() (machine, error) {
	p := &points{config: hoplag.Config{Key: hoplag.NewKey("a key of the soak test"), Cut: 5 * time.Millisecond, History: 64 << 10, Flows: 100}}
	near, err := hoplag.NewPoint(p.config)
	if err := errors.Join(err, p.restart()); err != nil {
		return machine{}, err
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
	return machine{round: p.round, close: func() error {
		stop()
		p.server.Close()
		done.Wait()
		p.far.Load().Close()
		p.near.Close()
		return nil
	}}, nil
}

// report counts a report, and looks for what is not a number in it.
func (p *points) report(r *hoplag.Report) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reports++
	for _, d := range [2]hoplag.Delay{r.Forth, r.Back} {
		if err := finite(estimate.Delay{Mean: d.Mean, StdDev: d.StdDev}); err != nil && p.wrong == nil {
			p.wrong = fmt.Errorf("report %d: %w", r.Number, err)
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

// round passes messages, some of which are lost, repeated or of impossible
// times, and sends damaged requests. It counts messages, requests and reports
// as tried.
func (p *points) round(random *rand.Rand, n *tally) error {
	if p.rounds++; p.rounds%200 == 0 {
		if err := p.restart(); err != nil {
			return err
		}
	}
	far := p.far.Load()
	for range 300 {
		n.count(nil)
		id, flow := uint64(hostilePacket(random)), far.Flow([]byte{byte(random.IntN(300))})
		name := []byte{byte(id), byte(id >> 8), byte(id >> 16), byte(id >> 24)}
		switch random.IntN(20) {
		case 0:
			far.Passed(name)
		case 1:
			p.near.Passed(name)
		case 2:
			far.Record(time.Unix(0, hostileTime(random, time.Now().UnixNano())), far.Packet(name))
		default:
			far.PassedIn(flow, name)
			p.near.PassedIn(flow, name)
			p.near.Back.Passed(name)
			far.Back.Passed(name)
		}
	}
	p.mu.Lock()
	recorded, reports, wrong := p.recorded, p.reports, p.wrong
	p.reports = 0
	p.mu.Unlock()
	n.tried += reports
	for range 3 {
		refused, err := p.ask(damage(random, recorded))
		if err != nil {
			return err
		}
		n.count(refused)
	}
	return wrong
}

// ask sends what a stranger sends, and returns whether it was refused.
func (p *points) ask(body []byte) (refused, err error) {
	request, err := http.NewRequest(http.MethodPost, p.server.URL, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Stranger", "yes")
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		refused = errors.New(reply.Status)
	}
	_, err = io.Copy(io.Discard, reply.Body)
	return refused, err
}
