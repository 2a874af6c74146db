// Broker collects the measurements of a fleet of points through a NATS server, which it includes;
// -url names another one. README.md says how, what it survives, and what it keeps up with.
package main

import (
	"context"
	"io"
	"net"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/internal/programs"
	"github.com/hoplag/hoplag/lda"
)

func main() { programs.Main("broker", run) }

// options are the options of the command line.
type options struct {
	role, url, key, listen, store, page    string
	keep, cut, duration                    time.Duration
	partitions, cells, pairs, shards, rate int
	agree                                  bool
}

func parse(args []string, stderr io.Writer) (*options, error) {
	o := new(options)
	f := programs.NewFlags("broker", "Broker collects what points measured, by a message broker.", stderr)
	f.Choice(&o.role, "role", "", "`role` to play", "broker", "collector", "points")
	f.StringVar(&o.url, "url", "", "`address` of a NATS server or cluster, 2.10 or later, or of -role broker")
	f.Key(&o.key)
	f.StringVar(&o.listen, "listen", "127.0.0.1:0", "`address` of the embedded broker")
	f.StringVar(&o.store, "store", "", "`directory` of the embedded broker's streams (default: one that is removed at the end)")
	f.StringVar(&o.page, "page", "127.0.0.1:0", "collector: `address` of /metrics for Prometheus")
	programs.Range(f, &o.keep, "keep", 10*time.Minute, time.Minute, 24*time.Hour, "how long new streams keep records")
	programs.Range(f, &o.partitions, "partitions", 16, 1, 1024, "number of parts into which pairs are divided, for collectors to share")
	programs.Range(f, &o.cut, "cut", 100*time.Millisecond, time.Millisecond, time.Minute,
		"how often a point publishes a record; ten are a report")
	programs.Range(f, &o.cells, "cells", 5120, 20, 1<<20, "number of cells of a point each way; fewer for many pairs")
	programs.Range(f, &o.duration, "duration", 10*time.Second, time.Second, 24*time.Hour, "points: how long")
	programs.Range(f, &o.rate, "rate", 500, 1, 100_000, "points: messages a second of each pair")
	programs.Range(f, &o.pairs, "pairs", 4, 1, 10_000, "points: pairs of points")
	programs.Range(f, &o.shards, "shards", 1, 1, 64, "points: number of points at each end of a pair")
	f.BoolVar(&o.agree, "clocks-agree", false,
		"collector: the points' clocks agree, as on one host or by PTP; otherwise there are no delays of one way")
	f.Check(o.check)
	return o, f.Parse(args)
}

// check returns what is wrong with the options.
func (o *options) check() error {
	switch {
	case o.role == "":
		return programs.Usage("-role is missing; -h lists them")
	case o.role != "broker" && o.url == "":
		return programs.Usage("-url is needed in -role %s", o.role)
	case o.role == "broker" && o.url != "":
		return programs.Usage("-url is %q, want none in -role broker", o.url)
	case o.url != "" && o.key == "":
		return programs.Usage("-key is missing: all points and collectors need the same")
	}
	return nil
}

// config returns the Config of the fleet's points.
func (o *options) config() hoplag.Config {
	cells := lda.DefaultConfig
	for i := range cells.Banks {
		cells.Banks[i].Rows = cells.Banks[i].Rows * o.cells / 5120
	}
	cells.DigestBits = 32
	return hoplag.Config{Key: hoplag.NewKey(o.key), Cut: o.cut, Cells: cells, History: 64 << 20, ClocksAgree: o.agree}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	rows := &programs.Rows{W: stdout}
	if o.role == "broker" {
		b, err := newBroker(o.listen, o.store)
		if err != nil {
			return err
		}
		defer b.close()
		if rows.Printf("broker at %s\n", b.url); rows.Err == nil {
			<-ctx.Done()
		}
		return rows.Err
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
	if f.log = stderr; o.role == "points" {
		return f.points(ctx, o, rows)
	}
	l, err := net.Listen("tcp", o.page)
	if err != nil {
		return err
	}
	c := newCollector(f)
	defer c.serve(l).Close()
	if rows.Printf("collector at http://%s/metrics\n", l.Addr()); rows.Err == nil {
		c.run(ctx)
	}
	return rows.Err
}
