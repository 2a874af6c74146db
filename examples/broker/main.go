// Broker measures a message broker, and collects the measurements of a fleet
// of points through a broker. It includes a NATS server; -url names another
// one.
//
//	go run . -role measure -duration 10s     # delay and loss of every message, beside time stamps in them
//	go run . -role load -pairs 50 -collectors 2    # how many points collectors keep up with
//
//	export HOPLAG_KEY=…                      # a fleet, each line a process, on any machine
//	broker -role broker -listen :4222 -store /var/lib/hoplag
//	broker -role collector -url nats://broker:4222 -page :8080    # any number of these
//	broker -role points -url nats://broker:4222 -pairs 10 -duration 1m
//
// With -role measure it publishes messages as fast as the broker takes them.
// One hoplag.Point is where they are published and one where they are
// received; a message's identity is its subject and its number. One in 64 is
// answered, so that the clocks are known. The second point queries the first
// one through the broker as well. Each second a row compares the points with
// time stamps in the messages, which do not notice losses. Then it sends in
// turns without measuring, with stamps, with points and with both, to show
// what each costs.
//
// In the other roles points publish their records to a JetStream stream, and
// collectors publish reports of each pair of points to another one. A pair
// belongs to one of -partitions by its name; the living collectors divide the
// partitions. The stream is the only state. Each report is made from the
// records and the times at which the broker stored them, so every collector
// makes the same one: whoever takes over reads the stream from a little before
// the latest report. The broker accepts a report only after the one that came
// before it, so there is never a second one, even if two collectors work on a
// partition for a while. So kill -9 of a collector or of the broker loses and
// duplicates nothing that was acknowledged; points send the rest again. If the
// machine loses power, the broker may lose what it did not yet sync, unless it
// syncs always.
//
// Each end of a pair may consist of several points, its shards, such as the
// machines behind one address: a message may pass any of them. Their records
// are added up before they are compared; their clocks should agree. Reports
// begin anew when a shard comes or goes, and say so (Begins). They also begin
// anew when points were silent for so long that a collector's warm-up, 10
// seconds of the stream, does not reach back.
//
// A broker with a damaged store silently reuses the numbers of lost records.
// Collectors go on from a time and not from a number, and count what is
// missing (hoplag_collector_damaged); reports begin anew there. Records of
// another key or cut, and invalid records, are counted
// (hoplag_collector_refused_total) and have no other effect.
//
// # Capacity of a collector
//
//	go run . -role load -pairs 100 -collectors 1    # and 2, 4
//
// plays 100 pairs of points for 12.5 seconds, and then lets collectors take
// what the broker kept. Three fifths of the records count 2,000 messages in
// 100 ms, in 5,120 cells, of 75 KiB in memory and 9 KiB packed; the others
// none. On two cores, shared with the broker:
//
//	processes   records/s   CPU a record   the broker's   share of the records
//	1           15,000      0.09 ms        0.03 ms        1.00
//	2           12,000      0.11 ms        0.04 ms        0.61 0.66
//	4           11,000      0.11 ms        0.04 ms        0.49 0.07 0.31 0.53
//
// The rates count from the start of the processes until the broker has the
// last report. If other programs keep the cores busy as well the rates are
// lower, by as much as those take. One process uses all cores by itself. So
// with n cores, and a broker elsewhere, it takes about 10,000 such records a
// second for each core, those of 1,000 points. With -cut 1s a record counts
// 20,000 messages and has 21 KiB; one process and the broker then took 9,900 a
// second on two cores, at 0.13 and 0.05 ms each: 7,500 points for each core that
// a collector has to itself. Each pair takes 1.5 MB of memory. Checking a
// record's key and form takes 0.01 ms of its time, and comparing takes nearly
// all the rest, as load prints; a process that only reads takes 90,000 records
// a second and more.
//
// Processes share the partitions, though not evenly. Together they take
// somewhat more than all records, because a partition that changes hands is
// read again from a little before. If there are few cores, shared with the
// broker, a second process adds no speed: it takes over when the first one
// dies. No packet is lost or duplicated: load ends with an error if one is.
//
// A collector serves /metrics for Prometheus and, as JSON, /latest, /status
// and /reports?pair=NAME&since=5m, for any pair. The points of -role points
// are an example of how a program publishes: see fleet.publish.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/hoplag/hoplag"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		fmt.Fprintln(os.Stderr, "broker:", err)
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "broker:", err)
		os.Exit(1)
	}
}

// errUsage is wrapped by what is wrong with the command line.
var errUsage = errors.New("usage")

// options are the options of the command line.
type options struct {
	role, url, key                string
	json, costs                   bool
	duration                      time.Duration
	publishers, size              int
	window, pending               int
	rate                          float64
	listen, store, page           string
	keep                          time.Duration
	cut                           time.Duration
	partitions, pairs, collectors int
	shards                        int
}

var roles = []string{"measure", "broker", "points", "collector", "load"}

func parse(args []string, stderr io.Writer) (*options, error) {
	o := new(options)
	flags := flag.NewFlagSet("broker", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.role, "role", "", "`role` to play: "+strings.Join(roles, ", "))
	flags.StringVar(&o.url, "url", "", "`address` of a NATS server or cluster (default: one inside this process)")
	flags.StringVar(&o.key, "key", os.Getenv("HOPLAG_KEY"), "`secret` that all points and collectors share (default: $HOPLAG_KEY)")
	flags.BoolVar(&o.json, "json", false, "print JSON objects, one a line")
	flags.DurationVar(&o.duration, "duration", 10*time.Second, "measure, points: how long, 1s to 24h")
	flags.IntVar(&o.publishers, "publishers", 2, "measure: connections that publish, 1 to 64")
	flags.IntVar(&o.size, "size", 128, "measure: `bytes` in a message, 16 to 1048576")
	flags.Float64Var(&o.rate, "rate", 0, "measure: `messages` a second, up to 1e8; 0 means as fast as possible")
	flags.IntVar(&o.window, "window", 4096, "measure: most `messages` of a publisher on their way, 1 to 1000000")
	flags.IntVar(&o.pending, "pending", 0,
		"measure: most `messages` waiting at a receiver before it drops more, 1 to 1000000; 0 means no limit")
	flags.BoolVar(&o.costs, "costs", true, "measure: also measure what measuring costs")
	flags.StringVar(&o.listen, "listen", "127.0.0.1:0", "`address` of the embedded broker")
	flags.StringVar(&o.store, "store", "", "`directory` of the embedded broker's streams (default: one that is removed at the end)")
	flags.StringVar(&o.page, "page", "127.0.0.1:0", "collector: `address` of /metrics, /latest, /reports?pair=NAME&since=5m, /status")
	flags.DurationVar(&o.keep, "keep", 10*time.Minute, "how long new streams keep records, 1m to 24h")
	flags.IntVar(&o.partitions, "partitions", 16, "number of parts into which pairs are divided, for collectors to share, 1 to 1024")
	flags.DurationVar(&o.cut, "cut", 100*time.Millisecond,
		"points, collector, load: how often a point publishes a record, 1ms to 1m; ten are a report")
	flags.IntVar(&o.shards, "shards", 1, "points: number of points at each end of a pair, 1 to 64")
	flags.IntVar(&o.pairs, "pairs", 4, "points, load: pairs of points, 1 to 10000")
	flags.IntVar(&o.collectors, "collectors", 1, "load: processes that collect, 1 to 64")
	flags.Usage = func() {
		fmt.Fprintln(stderr, "Broker measures a message broker, and collects by it what points measured.")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return o, err
	} else if err != nil {
		return o, fmt.Errorf("%w: %v", errUsage, err)
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("%w: argument %q, want none", errUsage, flags.Arg(0))
	}
	return o, o.check()
}

// usage is an error of the command line.
func usage(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errUsage, fmt.Sprintf(format, args...))
}

// check reports what is missing or out of range.
func (o *options) check() error {
	if !slices.Contains(roles, o.role) {
		return usage("-role is %q, want one of %s", o.role, strings.Join(roles, ", "))
	}
	if o.key == "" && o.url == "" {
		o.key = rand.Text() // nobody else needs to know it
	}
	if len(o.key) < 16 {
		return usage("-key has %d characters, want at least 16: anybody who guesses it can read and forge records", len(o.key))
	}
	if o.duration < time.Second || o.duration > 24*time.Hour {
		return usage("-duration is %v, want 1s to 24h", o.duration)
	}
	for _, n := range []struct {
		name            string
		value, low, top int
	}{
		{"publishers", o.publishers, 1, 64}, {"size", o.size, header, 1 << 20},
		{"window", o.window, 1, 1e6}, {"pending", o.pending, 0, 1e6},
		{"partitions", o.partitions, 1, 1024}, {"pairs", o.pairs, 1, 10000}, {"collectors", o.collectors, 1, 64},
		{"shards", o.shards, 1, 64},
	} {
		if n.value < n.low || n.value > n.top {
			return usage("-%s is %d, want %d to %d", n.name, n.value, n.low, n.top)
		}
	}
	if o.keep < time.Minute || o.keep > 24*time.Hour {
		return usage("-keep is %v, want 1m to 24h", o.keep)
	}
	if o.cut < time.Millisecond || o.cut > time.Minute {
		return usage("-cut is %v, want 1ms to 1m", o.cut)
	}
	if (o.role == "points" || o.role == "collector") && o.url == "" {
		return usage("-url is needed in -role %s", o.role)
	}
	if o.role == "broker" && o.url != "" {
		return usage("-url is %q, want none in -role broker", o.url)
	}
	if !(o.rate >= 0 && o.rate <= 1e8) {
		return usage("-rate is %v, want 0 to 1e8", o.rate)
	}
	return nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	if o.url == "" {
		b, err := newBroker(o.listen, o.store)
		if err != nil {
			return err
		}
		defer b.close()
		o.url = b.url
	}
	if o.role == "broker" {
		if _, err := fmt.Fprintf(stdout, "broker at %s\n", o.url); err != nil {
			return err
		}
		<-ctx.Done()
		return nil
	}
	if o.role == "measure" {
		return measure(ctx, o, o.url, stdout)
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
	switch o.role {
	case "points":
		return f.points(ctx, o, stdout)
	case "load":
		return f.load(ctx, o, stdout)
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
