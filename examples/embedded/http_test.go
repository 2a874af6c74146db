package embedded

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/examples/internal/relay"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(q *http.Request) (*http.Response, error) { return f(q) }

// TestHTTP runs a reverse proxy before a service whose limiter refuses requests, and whose answers exceed a
// buffer.
func TestHTTP(t *testing.T) {
	t.Parallel()
	var logged bytes.Buffer // the bench has a lock
	m, forth, back := newBench(t, testConfig, testConfig, Log(slog.New(slog.NewJSONHandler(&logged, nil)))), newTruth(), newTruth()
	m.begins(t)
	work := http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		id := q.Header.Get("Traceparent")
		forth.arrived(id)
		time.Sleep(5 * time.Millisecond)
		back.left(id)
		w.Write(make([]byte, 10_000))
	})
	measured, requests := Handler(m.second, work), atomic.Int64{}
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if requests.Add(1)%10 == 0 {
			http.Error(w, "too many requests", http.StatusTooManyRequests)
			return
		}
		measured.ServeHTTP(w, q)
	}))
	defer service.Close()
	wire := relay.NewWire(t, service.Listener.Addr().String(), 20*time.Millisecond, 10*time.Millisecond)
	transport := &http.Transport{MaxIdleConnsPerHost: 100}
	defer transport.CloseIdleConnections()
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: wire.Addr().String()})
	proxy.Transport = Transport{Point: m.first, RoundTripper: roundTripper(func(q *http.Request) (*http.Response, error) {
		id := q.Header.Get("Traceparent")
		forth.left(id)
		a, err := transport.RoundTrip(q)
		if err == nil && a.StatusCode == http.StatusOK {
			back.arrived(id)
		}
		return a, err
	})}
	front := httptest.NewServer(proxy)
	defer front.Close()

	var all sync.WaitGroup
	for i := range 400 {
		all.Go(func() {
			q, _ := http.NewRequest("GET", front.URL, nil)
			q.Header.Set("Traceparent", fmt.Sprintf("00-%032x-%016x-01", i+1, i+1))
			if a, err := http.DefaultClient.Do(q); err == nil {
				io.Copy(io.Discard, a.Body)
				a.Body.Close()
			}
		})
		time.Sleep(3 * time.Millisecond)
	}
	all.Wait()
	m.agrees(t, "forth", &m.forth, forth)
	m.agrees(t, "back", &m.back, back)
	m.mu.Lock()
	defer m.mu.Unlock()
	for line := range bytes.Lines(logged.Bytes()) {
		var entry struct{ Report hoplag.Report }
		if err := json.Unmarshal(line, &entry); err != nil || entry.Report.To != "second" {
			t.Errorf("the log has a line without a report: %v\n%s", err, line)
		}
	}
}
