// Collector compares pairs of points that push what they count to it over HTTP,
// prints a report of each pair a second, and serves /metrics for Prometheus.
//
//	collector -listen :8080 -key …
//
// A point pushes each of its records to /records/PAIR/1 or, at the other end, to /records/PAIR/2 (POST), and
// sends those again that were not accepted; see push. A pair exists once somebody with the key has pushed a
// record of it. If the collector restarts, pairs begin anew, and their reports say so; examples/broker is for
// fleets that must not lose a report.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/internal/programs"
)

func main() { programs.Main("collector", run) }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var listen, key string
	f := programs.NewFlags("collector", "Collector compares pairs of points that push what they count.", stderr)
	f.StringVar(&listen, "listen", "127.0.0.1:8080", "`address` to take records at, and to serve /metrics")
	f.Key(&key)
	f.Required("key")
	if err := f.Parse(args); err != nil {
		return err
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	c := newCollector(hoplag.Config{Key: hoplag.NewKey(key)})
	server := &http.Server{Handler: c.handler(), ReadHeaderTimeout: 10 * time.Second}
	defer server.Close()
	go server.Serve(l)
	fmt.Fprintf(stderr, "collecting at http://%v/\n", l.Addr())
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		for _, r := range c.reports() {
			if _, err := fmt.Fprintln(stdout, r); err != nil {
				return err
			}
		}
	}
}

// A collector has a Pair for each pair of points.
type collector struct {
	config  hoplag.Config
	metrics hoplag.Metrics
	mu      sync.Mutex
	pairs   map[string]*tracked // by name
}

// A tracked is a pair, with the time when one of its points was last heard.
type tracked struct {
	*hoplag.Pair
	heard time.Time
}

// forget is how long a silent pair is still reported.
const forget = 10 * time.Minute

func newCollector(c hoplag.Config) *collector {
	return &collector{config: c, pairs: map[string]*tracked{}}
}

func (c *collector) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", &c.metrics)
	mux.HandleFunc("POST /records/{pair}/{end}", func(w http.ResponseWriter, r *http.Request) {
		record, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 8<<20))
		if err == nil {
			err = c.take(r.PathValue("pair"), r.PathValue("end"), record)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	})
	return mux
}

// take takes a record of one end of a pair. Only a record signed with our key can start a pair.
func (c *collector) take(name, end string, record []byte) (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.pairs[name]
	if t == nil {
		t = new(tracked)
		if t.Pair, err = hoplag.NewPair(c.config, name+".1", name+".2"); err != nil {
			return err
		}
	}
	switch end {
	case "1":
		err = t.TakeFirst("", record)
	case "2":
		err = t.TakeSecond("", record)
	default:
		err = errors.New("want end 1 or 2")
	}
	if err == nil {
		t.heard, c.pairs[name] = time.Now(), t
	}
	return err
}

// reports returns the reports that are due.
func (c *collector) reports() (all []hoplag.Report) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, t := range c.pairs {
		for r, ok := t.Next(); ok; r, ok = t.Next() {
			c.metrics.Add(r)
			all = append(all, r)
		}
		if time.Since(t.heard) > forget {
			delete(c.pairs, name)
		}
	}
	return all
}
