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

// A collector is one process of the group that works on the partitions. Each
// says regularly that it is alive, and the living divide the work. They need
// not agree: see worker.
type collector struct {
	*fleet
	id      string
	config  hoplag.Config
	counts  counts
	mu      sync.Mutex
	metrics *hoplag.Metrics // of its own pairs
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
		c.inspect(try)
		cancel()
		sleep(ctx, memberLife/6)
	}
	c.all.Wait()
	bye, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	c.members.Delete(bye, c.id)
}

// inspect counts what is missing in the middle of the streams. Only their
// oldest messages are ever deleted on purpose.
func (c *collector) inspect(ctx context.Context) {
	missing := 0
	for _, stream := range []jetstream.Stream{c.records, c.reports} {
		info, err := stream.Info(ctx)
		if err != nil {
			return
		}
		missing += info.State.NumDeleted
	}
	c.counts.missing.Store(uint64(missing))
}

// divide works on our share of the partitions, given the names of the living
// collectors.
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

// owner returns who works on a partition. Few partitions change hands when
// someone comes or goes (highest random weight).
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
	failed := ""
	for wait := 200 * time.Millisecond; ctx.Err() == nil; wait = min(2*wait, 5*time.Second) {
		w := &worker{fleet: c.fleet, partition: partition, config: c.config, counts: &c.counts}
		w.out = func(r hoplag.Report) {
			c.add(r)
			failed = c.tell(fmt.Sprintf("collecting partition %d", partition), failed, nil)
			wait = 200 * time.Millisecond
		}
		if err := w.run(ctx); err != nil {
			c.counts.restarts.Add(1)
			failed = c.tell(fmt.Sprintf("collecting partition %d", partition), failed, err)
			sleep(ctx, wait)
		}
	}
	c.counts.behind.Delete(partition)
}

func (c *collector) add(r hoplag.Report) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.metrics.Add(r)
}

// A status is what /status reports about a process since it began.
type status struct {
	ID         string
	Partitions []int          // it works on
	Records    uint64         // accepted
	Bytes      uint64         // of them
	Refused    uint64         // records of another Key or Config, or of nobody
	Reports    uint64         // published
	Restarts   uint64         // of partitions, because others published first or the broker did not answer
	Behind     map[int]uint64 // records that were not read yet, by partition
	Damaged    uint64         // records and reports that the broker lost: its store was damaged
}

func (c *collector) status() status {
	s := status{
		ID: c.id, Records: c.counts.records.Load(), Bytes: c.counts.bytes.Load(), Refused: c.counts.refused.Load(),
		Reports: c.counts.reports.Load(), Restarts: c.counts.restarts.Load(), Damaged: c.counts.cutOff.Load() + c.counts.missing.Load(),
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s.Partitions = slices.Sorted(maps.Keys(c.working))
	s.Behind = map[int]uint64{}
	c.counts.behind.Range(func(p, n any) bool {
		s.Behind[p.(int)] = n.(uint64)
		return true
	})
	return s
}

// writeTo writes the status in the text format that Prometheus reads.
func (s *status) writeTo(w io.Writer) {
	for _, f := range []struct {
		name, kind, help string
		value            uint64
	}{
		{"partitions", "gauge", "Parts of the pairs that this process works on.", uint64(len(s.Partitions))},
		{"records_total", "counter", "Records that were read.", s.Records},
		{"bytes_total", "counter", "Bytes of the records that were read.", s.Bytes},
		{"refused_total", "counter", "Records of another key or configuration, or of nobody.", s.Refused},
		{"reports_total", "counter", "Reports that were published.", s.Reports},
		{"restarts_total", "counter", "Times that work on a partition began anew.", s.Restarts},
		{"damaged", "gauge", "Records and reports that the broker had and has no more.", s.Damaged},
	} {
		const format = "# HELP hoplag_collector_%[1]s %[2]s\n# TYPE hoplag_collector_%[1]s %[3]s\nhoplag_collector_%[1]s %[4]d\n"
		fmt.Fprintf(w, format, f.name, f.help, f.kind, f.value)
	}
	const lag = "hoplag_collector_lag_records"
	fmt.Fprintf(w, "# HELP %s Records in the broker that were not read yet.\n# TYPE %s gauge\n", lag, lag)
	for _, p := range s.Partitions {
		fmt.Fprintf(w, "%s{partition=\"%d\"} %d\n", lag, p, s.Behind[p])
	}
}

// serve answers queries until it is closed.
func (c *collector) serve(l net.Listener) *http.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		c.latest().ServeHTTP(w, r)
		s := c.status()
		s.writeTo(w)
	})
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, r *http.Request) { answer(w, c.status()) })
	mux.HandleFunc("GET /latest", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, c.latest().String())
	})
	mux.HandleFunc("GET /reports", c.serveReports)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go server.Serve(l)
	return server
}

// latest returns the metrics of the process's own pairs.
func (c *collector) latest() *hoplag.Metrics {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.metrics
}

func (c *collector) serveReports(w http.ResponseWriter, r *http.Request) {
	pair, since := r.FormValue("pair"), time.Minute
	var err error
	if text := r.FormValue("since"); text != "" {
		since, err = time.ParseDuration(text)
	}
	if err != nil || since <= 0 || !pairName.MatchString(pair) {
		http.Error(w, fmt.Sprintf("pair is %q, want a name of letters, digits, _ and -; since is %q, want a duration such as 5m",
			pair, r.FormValue("since")), http.StatusBadRequest)
		return
	}
	reports, err := c.since(r.Context(), pair, time.Now().Add(-since))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	answer(w, reports)
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(v)
}

// since returns the reports of any pair published since a time.
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
