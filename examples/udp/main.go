// Udp measures the one-way delay and the loss of UDP datagrams while they are
// on their way, with a Lossy Difference Aggregator at each end, and prints for
// every interval what the two say beside the exact answer.
//
//	go run ./examples/udp                                  # 10 intervals of 0.5 s
//	go run ./examples/udp -intervals 3 -interval 200ms
//	go run ./examples/udp -loss 0.1 -json
//
// Source, relay and sink are in this one process, each with a socket on
// 127.0.0.1, so that one clock serves both ends and nothing need be set up:
//
//	source ── datagrams, Start, End ──▶ relay ── those not lost ──▶ sink
//	source ── parts of the synopsis ──────────────────────────────▶ sink
//	source ◀───────────────────────────────────────── feedback ──── sink
//
// The datagrams carry a sequence number and no time; a digest of all their
// bytes says who they are. The relay's queue drains a quarter faster than they
// come on average, and they come in bursts: so the delay varies, and what finds
// the queue full is dropped, as are datagrams drawn at random (-loss). The
// markers stand in the stream and fare as the datagrams do: an interval whose
// Start or End is lost is unusable, and the row says so. Synopsis and feedback
// go beside the relay, as through a network for management.
//
// The feedback says how many were lost, from which both ends choose the
// sampling. It comes about when the next interval begins, just in time or not,
// and so shows one or two rows later.
//
// The exact answer comes from remembering every datagram until it is seen
// again, in a table that both ends reach only because they are one process.
// One -seed sends the same datagrams and draws the same to be lost; the
// delays, and what the queue drops, are of the moment.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "udp:", err)
		os.Exit(1)
	}
}

// options are what the command line says.
type options struct {
	intervals int
	interval  time.Duration
	rate      float64 // datagrams per second
	loss      float64
	json      bool
	seed      uint64
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	opt, err := parse(args, stderr)
	if err != nil {
		return err
	}
	// So late is only a machine that cannot send at that rate.
	ctx, cancel := context.WithTimeout(ctx, 2*time.Duration(opt.intervals)*opt.interval+5*time.Second)
	defer cancel()
	show := func(w *row) { fmt.Fprintln(stdout, w) }
	if opt.json {
		show = func(*row) {}
	} else {
		fmt.Fprint(stdout, heading)
	}
	rows, err := measure(ctx, opt, show)
	switch {
	case err != nil:
		return fmt.Errorf("stopped after %d of %d intervals: %w", len(rows), opt.intervals, err)
	case !opt.json:
		return nil
	}
	enc := json.NewEncoder(stdout)
	enc.SetIndent("", "  ")
	return enc.Encode(rows)
}

func parse(args []string, stderr io.Writer) (options, error) {
	var opt options
	f := flag.NewFlagSet("udp", flag.ContinueOnError)
	f.SetOutput(io.Discard) // the error that Parse returns is printed once
	f.IntVar(&opt.intervals, "intervals", 10, "stop after so many `intervals`")
	f.DurationVar(&opt.interval, "interval", 500*time.Millisecond, "`length` of an interval")
	f.Float64Var(&opt.rate, "rate", 10_000, "`datagrams` a second, on average")
	f.Float64Var(&opt.loss, "loss", 0.01, "`share` of the datagrams that the relay loses, beside those that find its queue full")
	f.BoolVar(&opt.json, "json", false, "print JSON instead of text, at the end; delays in nanoseconds")
	f.Uint64Var(&opt.seed, "seed", 1, "seed of the packet digests, the traffic and the losses")
	err := f.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stderr, "Measures delay and loss of UDP datagrams through a relay on this machine, beside the exact answer.\n\nusage: udp [flags]\n\n")
		f.SetOutput(stderr)
		f.PrintDefaults()
		return opt, err
	case err != nil:
		return opt, fmt.Errorf("%w; -h explains the flags", err)
	case f.NArg() > 0:
		return opt, fmt.Errorf("unexpected argument %q", f.Arg(0))
	case opt.intervals < 1 || opt.intervals > 100_000:
		return opt, fmt.Errorf("-intervals %d: want 1 to 100000", opt.intervals)
	case opt.interval < 50*time.Millisecond || opt.interval > time.Minute:
		return opt, fmt.Errorf("-interval %v: want 50ms to 1m", opt.interval)
	case !(opt.rate >= 100 && opt.rate <= 100_000):
		return opt, fmt.Errorf("-rate %v: want 100 to 100000", opt.rate)
	case !(opt.loss >= 0 && opt.loss <= 1):
		return opt, fmt.Errorf("-loss %v: want 0 to 1", opt.loss)
	}
	return opt, nil
}
