package soak

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/estimate"
)

// points are two points of the front door. The second one follows the first
// over HTTP, on this machine. Strangers send it anything, and it is restarted
// again and again.
type points struct {
	config hoplag.Config
	near   *hoplag.Point
	far    atomic.Pointer[hoplag.Point]
	server http.Server
	url    string
	stop   context.CancelFunc
	done   sync.WaitGroup

	recorded atomic.Pointer[[]byte] // a request of the follower
	wrong    atomic.Pointer[error]  // the error in a report
	reports  atomic.Int64
	told     int64 // reports of earlier rounds
	rounds   int
}

func newPoints() (machine, error) {
	p := &points{config: hoplag.Config{Key: hoplag.NewKey("a key of the soak test"), Cut: 5 * time.Millisecond, History: 64 << 10, Flows: 100}}
	near, err := hoplag.NewPoint(p.config)
	if err != nil {
		return machine{}, err
	}
	p.near = near
	if err := p.restart(); err != nil {
		return machine{}, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return machine{}, err
	}
	p.url = "http://" + listener.Addr().String()
	p.server.Handler = p
	p.done.Go(func() { p.server.Serve(listener) })
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	p.done.Go(func() {
		for r := range p.near.Follow(ctx, p.url) {
			p.reports.Add(1)
			for _, d := range [2]hoplag.Delay{r.Forth, r.Back} {
				if err := finite(estimate.Delay{Mean: d.Mean, StdDev: d.StdDev}); err != nil {
					err = fmt.Errorf("report %d: %w", r.Number, err)
					p.wrong.CompareAndSwap(nil, &err)
				}
			}
		}
	})
	return machine{round: p.round, close: p.close}, nil
}

// ServeHTTP passes a request to the far point, and keeps it for strangers.
func (p *points) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err == nil && r.Header.Get("Stranger") == "" {
		p.recorded.Store(&body)
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

func (p *points) close() error {
	p.stop()
	err := p.server.Close()
	p.done.Wait()
	p.far.Load().Close()
	p.near.Close()
	return err
}

// round passes messages, some of which are lost, repeated or of impossible
// times, and sends damaged requests. It counts messages, requests and reports
// as tried.
func (p *points) round(random *rand.Rand) (tried, refused int, err error) {
	if p.rounds++; p.rounds%200 == 0 {
		if err := p.restart(); err != nil {
			return 0, 0, err
		}
	}
	far := p.far.Load()
	for range 300 {
		tried++
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
	for range 3 {
		tried++
		var body []byte
		if sent := p.recorded.Load(); sent != nil {
			body = damage(random, *sent)
		}
		status, err := p.ask(body)
		if err != nil {
			return tried, refused, err
		}
		if status != http.StatusOK {
			refused++
		}
	}
	now := p.reports.Load()
	tried, p.told = tried+int(now-p.told), now
	if wrong := p.wrong.Load(); wrong != nil {
		return tried, refused, *wrong
	}
	return tried, refused, nil
}

// ask sends what a stranger sends.
func (p *points) ask(body []byte) (status int, err error) {
	request, err := http.NewRequest(http.MethodPost, p.url, bytes.NewReader(body))
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
