package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/nats-io/nats.go/jetstream"
)

// A collector is one process of the group that works on the partitions.
// Each says every now and then that it lives; who lives decides who works on
// what. They need not agree: see worker.
type collector struct {
	*fleet
	id      string
	config  hoplag.Config
	counts  counts
	mu      sync.Mutex
	metrics *hoplag.Metrics // of the pairs that are its own
	working map[int]context.CancelFunc
	all     sync.WaitGroup
}

func newCollector(f *fleet, c hoplag.Config) *collector {
	return &collector{fleet: f, id: rand.Text(), config: c, metrics: new(hoplag.Metrics), working: map[int]context.CancelFunc{}}
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

// divide works on what is ours if those live who have these names.
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
			c.metrics = new(hoplag.Metrics) // without the pairs of others
		}
	}
}

// owner is who works on a partition: few change hands when someone comes or
// goes (highest random weight).
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
	for ctx.Err() == nil {
		w := &worker{fleet: c.fleet, partition: partition, config: c.config, counts: &c.counts, out: c.add}
		if w.run(ctx) != nil {
			c.counts.restarts.Add(1)
			sleep(ctx, 200*time.Millisecond)
		}
	}
}

func (c *collector) add(r hoplag.Report) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.metrics.Add(r)
}

// A status is what /status says.
type status struct {
	ID                                         string
	Partitions                                 []int
	Records, Bytes, Refused, Reports, Restarts uint64
}

// serve answers queries until it is closed.
func (c *collector) serve(l net.Listener) *http.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.metrics.ServeHTTP(w, r)
	})
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		answer(w, status{c.id, slices.Sorted(maps.Keys(c.working)), c.counts.records.Load(), c.counts.bytes.Load(),
			c.counts.refused.Load(), c.counts.reports.Load(), c.counts.restarts.Load()})
	})
	mux.HandleFunc("GET /latest", func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, c.metrics.String())
	})
	mux.HandleFunc("GET /reports", func(w http.ResponseWriter, r *http.Request) {
		pair, since := r.FormValue("pair"), time.Minute
		var err error
		if text := r.FormValue("since"); text != "" {
			since, err = time.ParseDuration(text)
		}
		if err != nil || since <= 0 || !pairName.MatchString(pair) {
			http.Error(w, fmt.Sprintf("pair is %q, want a name; since is %q, want a duration such as 5m", pair, r.FormValue("since")), http.StatusBadRequest)
			return
		}
		reports, err := c.since(r.Context(), pair, time.Now().Add(-since))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		answer(w, reports)
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go server.Serve(l)
	return server
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(v)
}

// since returns the reports of any pair that were published since a time.
func (f *fleet) since(ctx context.Context, pair string, start time.Time) ([]hoplag.Report, error) {
	reports := []hoplag.Report{}
	subject := fmt.Sprintf("%s%d.%s", reportPrefix, f.partition(pair), pair)
	last, err := f.reports.GetLastMsgForSubject(ctx, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) || err == nil && last.Time.Before(start) {
		return reports, nil
	} else if err != nil {
		return nil, err
	}
	consumer, err := f.js.OrderedConsumer(ctx, f.reports.CachedInfo().Config.Name, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{subject}, DeliverPolicy: jetstream.DeliverByStartTimePolicy, OptStartTime: &start})
	if err != nil {
		return nil, err
	}
	messages, err := consumer.Messages()
	if err != nil {
		return nil, err
	}
	defer messages.Stop()
	for {
		m, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return nil, err
		}
		meta, err := m.Metadata()
		if err != nil {
			return nil, err
		}
		var some []hoplag.Report
		if err := json.Unmarshal(m.Data(), &some); err != nil {
			return nil, err
		}
		reports = append(reports, some...)
		if meta.Sequence.Stream >= last.Sequence {
			return reports, nil
		}
	}
}
