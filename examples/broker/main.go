// Broker measures a message broker, and collects the measurements of a fleet
// of points through a broker. It includes a NATS server; -url names another
// one. README.md says how, what it survives, and what it keeps up with.
package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/internal/programs"
)

func main() { programs.Main("broker", run) }

// options are the options of the command line.
type options struct {
	role, url, key                string
	json, costs                   bool
	duration                      time.Duration
	size                          int
	window, pending               int
	rate                          float64
	listen, store, page           string
	keep                          time.Duration
	cut                           time.Duration
	partitions, pairs, collectors int
	shards                        int
}

func parse(args []string, stderr io.Writer) (*options, error) {
	o := new(options)
	f := programs.NewFlags("broker", "Broker measures a message broker, and collects by it what points measured.", stderr)
	f.Choice(&o.role, "role", "", "`role` to play", "measure", "broker", "points", "collector", "load")
	f.StringVar(&o.url, "url", "", "`address` of a NATS server or cluster, 2.10 or later (default: one inside this process)")
	f.Key(&o.key)
	f.BoolVar(&o.json, "json", false, "print JSON objects, one a line")
	programs.Range(f, &o.duration, "duration", 10*time.Second, time.Second, 24*time.Hour, "measure, points: how long")
	programs.Range(f, &o.size, "size", 128, header, 1<<20, "measure: `bytes` in a message")
	programs.Range(f, &o.rate, "rate", 0, 1, 1e8, "measure: `messages` a second; 0 means as fast as possible")
	programs.Range(f, &o.window, "window", 4096, 1, 1_000_000, "measure: most `messages` on their way")
	programs.Range(f, &o.pending, "pending", 0, 1, 1_000_000,
		"measure: most `messages` waiting at a receiver before it drops more; 0 means no limit")
	f.BoolVar(&o.costs, "costs", true, "measure: also measure what measuring costs")
	f.StringVar(&o.listen, "listen", "127.0.0.1:0", "`address` of the embedded broker")
	f.StringVar(&o.store, "store", "", "`directory` of the embedded broker's streams (default: one that is removed at the end)")
	f.StringVar(&o.page, "page", "127.0.0.1:0", "collector: `address` of /metrics, /latest, /reports?pair=NAME&since=5m, /status")
	programs.Range(f, &o.keep, "keep", 10*time.Minute, time.Minute, 24*time.Hour, "how long new streams keep records")
	programs.Range(f, &o.partitions, "partitions", 16, 1, 1024, "number of parts into which pairs are divided, for collectors to share")
	programs.Range(f, &o.cut, "cut", 100*time.Millisecond, time.Millisecond, time.Minute,
		"points, collector, load: how often a point publishes a record; ten are a report")
	programs.Range(f, &o.shards, "shards", 1, 1, 64, "points: number of points at each end of a pair")
	programs.Range(f, &o.pairs, "pairs", 4, 1, 10_000, "points, load: pairs of points")
	programs.Range(f, &o.collectors, "collectors", 1, 1, 64, "load: processes that collect")
	f.Check(o.check)
	return o, f.Parse(args)
}

// check reports what does not go together.
func (o *options) check() error {
	if o.role == "" {
		return programs.Usage("-role is missing; -h lists them")
	}
	if (o.role == "points" || o.role == "collector") && o.url == "" {
		return programs.Usage("-url is needed in -role %s", o.role)
	}
	if o.role == "broker" && o.url != "" {
		return programs.Usage("-url is %q, want none in -role broker", o.url)
	}
	if o.key == "" && o.url != "" {
		return programs.Usage("-key is missing: all points and collectors need the same")
	} else if o.key == "" {
		o.key = rand.Text() // nobody else needs to know it
	}
	return nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	if o.url == "" {
		b, err := newBroker(o.listen, o.store, stderr)
		if err != nil {
			return err
		}
		defer b.close()
		o.url = b.url
	}
	rows := &programs.Rows{W: stdout, JSON: o.json}
	switch o.role {
	case "broker":
		rows.Printf("broker at %s\n", o.url)
		if rows.Err == nil {
			<-ctx.Done()
		}
		return rows.Err
	case "measure":
		return measure(ctx, o, o.url, rows)
	}
	conn, err := connect(o.url)
	if err != nil {
		return err
	}
	defer conn.Close()
	f, err := openFleet(ctx, conn, o)
	if err != nil {
		return err
	}
	f.log = stderr
	switch o.role {
	case "points":
		return f.points(ctx, o, rows)
	case "load":
		return f.load(ctx, o, rows)
	}
	l, err := net.Listen("tcp", o.page)
	if err != nil {
		return err
	}
	c := newCollector(f, o.config())
	server := c.serve(l)
	defer server.Close()
	if _, err := fmt.Fprintf(stdout, "collector at http://%s/metrics\n", l.Addr()); err != nil {
		return err
	}
	c.run(ctx)
	return nil
}

// config returns the Config of the fleet's points.
func (o *options) config() hoplag.Config {
	return hoplag.Config{Key: hoplag.NewKey(o.key), Cut: o.cut, History: 64 << 20}
}
