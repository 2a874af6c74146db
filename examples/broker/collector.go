package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"hash/fnv"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hoplag/hoplag"
)

// A collector is one process of the group that works on the partitions. Each announces regularly that
// it is alive, and those alive divide the work. They need not agree: see worker.
type collector struct {
	*fleet
	id                       string
	taken, refused, restarts atomic.Uint64

	mu      sync.Mutex
	metrics *hoplag.Metrics // of its own pairs
	working map[int]context.CancelFunc
	lag     map[int]uint64 // records that were not read yet, by partition
	all     sync.WaitGroup
}

func newCollector(f *fleet) *collector {
	return &collector{fleet: f, id: rand.Text(), metrics: new(hoplag.Metrics), working: map[int]context.CancelFunc{}, lag: map[int]uint64{}}
}

// run works until the context is done.
func (c *collector) run(ctx context.Context) {
	for ctx.Err() == nil {
		try, cancel := context.WithTimeout(ctx, memberLife/2)
		if _, err := c.members.Put(try, c.id, nil); err == nil {
			if names, err := c.members.Keys(try); err == nil {
				c.divide(ctx, names)
			}
		}
		cancel()
		sleep(ctx, memberLife/6)
	}
	c.all.Wait()
	bye, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	c.members.Delete(bye, c.id)
}

// divide works on our share of the partitions, given the names of the collectors alive.
func (c *collector) divide(ctx context.Context, names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for p := range c.partitions {
		stop, working := c.working[p]
		switch mine := owner(p, names) == c.id; {
		case mine && !working:
			ctx, cancel := context.WithCancel(ctx)
			c.working[p] = cancel
			c.all.Go(func() { c.work(ctx, p) })
		case !mine && working:
			stop()
			delete(c.working, p)
			delete(c.lag, p)
			c.metrics = new(hoplag.Metrics) // without the pairs of others
		}
	}
}

// owner returns which collector works on a partition. Few partitions change hands
// when one comes or goes (highest random weight).
func owner(partition int, names []string) (best string) {
	var most uint64
	for _, name := range names {
		h := fnv.New64a()
		fmt.Fprintf(h, "%s %d", name, partition)
		x := h.Sum64() * 0x9e3779b97f4a7c15
		if x ^= x >> 32; best == "" || x > most {
			best, most = name, x
		}
	}
	return best
}

// work works on a partition until the context is done.
func (c *collector) work(ctx context.Context, partition int) {
	what, failed := fmt.Sprintf("collecting partition %d", partition), ""
	for wait := 200 * time.Millisecond; ctx.Err() == nil; wait = min(2*wait, 5*time.Second) {
		w := &worker{collector: c, number: partition, out: func(r hoplag.Report) {
			c.add(r)
			failed, wait = c.tell(what, failed, nil), 200*time.Millisecond
		}}
		if err := w.run(ctx); err != nil {
			c.restarts.Add(1)
			failed = c.tell(what, failed, err)
			sleep(ctx, wait)
		}
	}
}

func (c *collector) add(r hoplag.Report) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.metrics.Add(r)
}

// behind records how far a partition is behind, if it is still ours.
func (c *collector) behind(partition int, records uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.working[partition] != nil {
		c.lag[partition] = records
	}
}

// serve answers queries until it is closed.
func (c *collector) serve(l net.Listener) *http.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", c.serveMetrics)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go server.Serve(l)
	return server
}

// serveMetrics writes what Prometheus reads: the metrics of our pairs, and ours.
func (c *collector) serveMetrics(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.metrics.ServeHTTP(w, r)
	const format = "# HELP hoplag_collector_%[1]s %[2]s\n# TYPE hoplag_collector_%[1]s %[3]s\n"
	for _, f := range []struct {
		name, help string
		value      uint64
	}{
		{"records_total", "Records that were read.", c.taken.Load()},
		{"refused_total", "Records of another key or configuration, or of nobody.", c.refused.Load()},
		{"restarts_total", "Times that work on a partition began anew.", c.restarts.Load()},
	} {
		fmt.Fprintf(w, format+"hoplag_collector_%[1]s %[4]d\n", f.name, f.help, "counter", f.value)
	}
	fmt.Fprintf(w, format, "lag_records", "Records in the broker that were not read yet.", "gauge")
	for p := range c.working {
		fmt.Fprintf(w, "hoplag_collector_lag_records{partition=\"%d\"} %d\n", p, c.lag[p])
	}
}
