// Rli is one port of a software switch that knows, each second, how long the
// packets of every flow waited in it.
//
//	go run ./examples/rli
//	go run ./examples/rli -live tbf -rate 20           # real packets through a real queue; needs root
//	go run ./examples/rli -traffic tcp -every 100      # senders that slow down; a reference per 100 packets
//	go run ./examples/rli -load 30 -method linear -json
//
// Without -live the port is simulated: packets join a queue before a link that sends them at
// its rate. At the entrance an injector now and then sends a reference packet
// into the queue, with the time and a tag that nobody else can make. At the
// exit a receiver sees the packets of all flows, and learns from each
// reference when it was sent; no other packet carries anything. From the
// references, and from when the link was idle, it computes how long each
// packet took.
//
// Each second it prints the slowest flows: the mean delay, the interval that
// contains it with 95 % probability, and the deviation, each with the exact
// value from a table of all packets. It also prints how many packets are
// missing, because references say how many were sent. The last lines say how
// many intervals contained the exact value, and what the references cost.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/hoplag/hoplag/rli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		fmt.Fprintln(os.Stderr, "rli:", err)
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "rli:", err)
		os.Exit(1)
	}
}

// errUsage is wrapped by what is wrong with the command line.
var errUsage = errors.New("usage")

// usage is an error of the command line.
func usage(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errUsage, fmt.Sprintf(format, args...))
}

// options are the options of the command line.
type options struct {
	traffic, method    string
	rate, load         float64 // Mbit/s, per cent
	flows, queue       int
	every              int
	seconds, top, fits int
	seed               uint64
	live               string
	json               bool
}

func parse(args []string, stderr io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("rli", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.traffic, "traffic", "bursty", "`kind` of senders: bursty, poisson, or tcp, which slow down when packets are dropped")
	flags.Float64Var(&o.rate, "rate", 1000, "rate of the link in `Mbit/s`, 1 to 100000")
	flags.Float64Var(&o.load, "load", 80, "traffic in `per cent` of the rate, 1 to 150; tcp sends what the link takes")
	flags.IntVar(&o.flows, "flows", 200, "number of `senders`, 1 to 100000")
	flags.IntVar(&o.queue, "queue", 1000, "`packets` that the queue holds, 1 to 1000000")
	flags.IntVar(&o.every, "every", 0, "`packets` between references, 1 to 1000000; 0 means as the load allows")
	flags.StringVar(&o.method, "method", "auto", "`method` of estimating packets between references: auto, busy-aware, linear or left")
	flags.IntVar(&o.seconds, "seconds", 5, "`seconds` of traffic, 1 to 86400")
	flags.IntVar(&o.top, "top", 10, "number of slowest `flows` to print; 0 means all")
	flags.IntVar(&o.fits, "records", 65536, "`flows` that the receiver can hold, 1 to 1000000")
	flags.Uint64Var(&o.seed, "seed", 1, "`seed` of everything random")
	flags.StringVar(&o.live, "live", "", "send real packets through a `wire`: veth, or tbf, a token bucket of -rate before it; needs root")
	flags.BoolVar(&o.json, "json", false, "print a JSON object for each second, and one at the end")
	flags.Usage = func() {
		fmt.Fprint(stderr, "Rli measures each flow's delay through a simulated port of a switch, from reference packets.\n\n")
		flags.SetOutput(stderr)
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return o, err
	} else if err != nil {
		return o, usage("%v", err)
	}
	if flags.NArg() > 0 {
		return o, usage("argument %q, want none", flags.Arg(0))
	}
	return o, o.check()
}

// check reports what is out of range.
func (o *options) check() error {
	for _, f := range []struct {
		name             string
		got, least, most float64
	}{
		{"rate", o.rate, 1, 1e5}, {"load", o.load, 1, 150}, {"flows", float64(o.flows), 1, 1e5}, {"queue", float64(o.queue), 1, 1e6},
		{"every", float64(o.every), 0, 1e6}, {"seconds", float64(o.seconds), 1, 86400}, {"top", float64(o.top), 0, 1e6},
		{"records", float64(o.fits), 1, 1e6},
	} {
		if !(f.got >= f.least && f.got <= f.most) {
			return usage("-%s is %v, want %.0f to %.0f", f.name, f.got, f.least, f.most)
		}
	}
	if o.live != "" && o.live != "veth" && o.live != "tbf" {
		return usage("-live is %q, want veth or tbf", o.live)
	}
	if o.live != "" && o.traffic == "tcp" {
		return usage("-traffic tcp is only simulated")
	}
	if _, ok := kinds[o.traffic]; !ok {
		return usage("-traffic is %q, want bursty, poisson or tcp", o.traffic)
	}
	if _, ok := methods[o.method]; !ok {
		return usage("-method is %q, want auto, busy-aware, linear or left", o.method)
	}
	return nil
}

var methods = map[string]rli.Method{
	rli.Auto.String(): rli.Auto, rli.BusyAware.String(): rli.BusyAware, rli.Linear.String(): rli.Linear, rli.Left.String(): rli.Left,
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	p, err := newPort(o)
	if err != nil {
		return err
	}
	if p.wires != nil {
		defer p.wires.close()
	}
	s := &screen{w: stdout, options: o}
	if file, ok := stdout.(*os.File); ok && o.live != "" && !o.json {
		about, err := file.Stat()
		s.clears = err == nil && about.Mode()&os.ModeCharDevice != 0
	}
	for n := 1; n <= o.seconds && ctx.Err() == nil; n++ {
		p.pass(ctx, n)
		r, err := p.take(n)
		if err != nil {
			return err
		}
		if s.show(r); s.err != nil {
			return s.err
		}
	}
	s.end()
	return s.err
}
