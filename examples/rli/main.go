// Rli is one port of a software switch that knows, each second, how long the packets of every flow
// waited in it.
//
//	go run ./examples/rli
//	go run ./examples/rli -live tbf -rate 20           # real packets through a real queue; needs root
//	go run ./examples/rli -traffic poisson -every 100 -json # a reference per 100 packets
//
// Without -live the port is simulated: packets join a queue before a link. At the entrance an
// injector now and then sends a reference packet into the queue, with the time and a tag that
// nobody else can make. At the exit a receiver sees the packets of all flows, and computes from the
// references, and from when the link was idle, how long each took.
//
// Each second it prints the slowest flows: the mean delay, the interval that contains it with 95 %
// probability, and the deviation, each with the exact value from a table of all packets. The last
// line says how many intervals contained the exact value.
package main

import (
	"context"
	"io"

	"github.com/hoplag/hoplag/internal/programs"
)

func main() { programs.Main("rli", run) }

// options are the options of the command line.
type options struct {
	traffic, method string
	rate, load      float64 // Mbit/s, per cent
	confidence      float64 // per cent
	flows, queue    int
	every           int
	seconds, top    int
	seed            uint64
	live            string
	json            bool
}

// methods are those of the library, by their numbers.
var methods = []string{"auto", "linear", "left"}

func parse(args []string, stderr io.Writer) (o options, err error) {
	f := programs.NewFlags("rli", "Rli measures each flow's delay through a port of a switch, from reference packets.", stderr)
	f.Choice(&o.traffic, "traffic", "bursty", "`kind` of senders", "bursty", "poisson")
	programs.Range(f, &o.rate, "rate", 1000, 1, 100000, "rate of the link in `Mbit/s`")
	programs.Range(f, &o.load, "load", 80, 1, 150, "traffic in `per cent` of the rate")
	programs.Range(f, &o.flows, "flows", 200, 1, 100000, "number of `senders`")
	programs.Range(f, &o.queue, "queue", 1000, 1, 1000000, "`packets` that the queue holds")
	programs.Range(f, &o.every, "every", 0, 1, 1000000, "`packets` between references; 0 means as the load allows")
	f.Choice(&o.method, "method", "auto", "`method` of estimating packets between references", methods...)
	programs.Range(f, &o.seconds, "seconds", 5, 1, 86400, "`seconds` of traffic")
	programs.Range(f, &o.top, "top", 10, 0, 1000000, "number of slowest `flows` to print; 0 means all")
	programs.Range(f, &o.confidence, "confidence", 95, 50, 99.99, "`per cent` of intervals that hold the exact mean")
	f.Uint64Var(&o.seed, "seed", 1, "`seed` of everything random")
	f.Choice(&o.live, "live", "", "send real packets through a `wire`; tbf has a token bucket of -rate before it; needs root", "veth", "tbf")
	f.BoolVar(&o.json, "json", false, "print a JSON object for each second, and one at the end")
	return o, f.Parse(args)
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
	s := &screen{Rows: programs.Rows{W: stdout, JSON: o.json}, options: o}
	for n := 1; n <= o.seconds && ctx.Err() == nil; n++ {
		p.pass(ctx, n)
		r, err := p.take(n)
		if err != nil {
			return err
		}
		if s.show(r); s.Err != nil {
			return s.Err
		}
	}
	s.end()
	return s.Err
}
