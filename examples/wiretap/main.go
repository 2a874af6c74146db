// Wiretap measures from outside how long packets take from one interface of a
// Linux host to another, how many are lost on the way, and which flows are the
// slowest. Between the interfaces may be a router, a bridge, a firewall, a
// container, or anything else with two mirror ports.
//
//	sudo wiretap -demo                              # namespaces, a queue, traffic, beside the exact answer
//	sudo wiretap -from eth0 -to eth1                # in at eth0, out at eth1
//	sudo wiretap -from eth0 -to eth1:in -promiscuous # two mirror ports
//	sudo wiretap -from eth0:out -to guest/eth0:in   # into another network namespace
//	sudo wiretap -from eth0 -to eth1 -keep kept     # for months: examples/colate asks later
//	sudo wiretap -kernel -from eth0 -to guest/eth0:in
//
// The kernel stamps every packet and writes its first bytes into a ring
// (AF_PACKET, TPACKET_V3). The program empties each ring in its own goroutine.
// It reports to one point of the library what passed -from, and to another
// what passed -to, and compares them each second. The kernel counts what a
// ring had no room for, and the program shows it: the answer of that second is
// worth less.
//
// With -kernel, package lda/kernel counts the packets inside the kernel, and
// copies none. It sees an outgoing packet before the interface's queue, while
// a ring sees it after. It does not know the flows, but answers for those that
// -flow names. A loss costs the flow all its packets between two cuts at least, so
// where losses come in bursts its mean is of calmer times, and low. The interval
// allows for that. With -demo -kernel -duration 5s -rate 10000 -bandwidth 17 to 21
// and -flow "udp 10.97.1.1:7001 10.97.2.1:7000" to 7005, where 0.2 to 3.3 % of all
// packets were lost, 50 means of flows in ten runs were 0.3 to 15 % low, and all
// were in their intervals, of 17 to 190 % to either side.
//
// Packets that end in the host, or begin in it, pass only one of the
// interfaces, and count as lost or extra: -net says which destinations to
// count. Packets that are rewritten on the way, as by NAT, count as other
// packets. Bundles of segments (GRO, GSO) are not packets either: rings count
// them as such and skip them; ethtool -K eth0 gro off gso off tso off prevents
// them.
//
// It needs root, or CAP_NET_RAW (and CAP_BPF and more with -kernel), and with
// -demo the commands ip and tc.
//
// # Performance
//
// On two cores, at the highest priority, -demo -duration 4s -rate 230000
// -bandwidth 250 sent 229,000 packets a second, and 40 % of them were lost in
// bursts. The counts of packets sent, received and lost were exactly those of
// a capture beside it, and the rings dropped none; the mean was 2.056 ms
// (exactly 2.054). With -kernel it was 2.1375 ms (exactly 2.1377), at a loss
// of 37 %. If nothing waits the mean is some microseconds. Two taps at one
// place differ by 10 to 50 ns of that, because each reads the time by itself.
//
// Ten minutes of the demo (-demo -duration 10m -rate 8000 -bandwidth 15 -json)
// on two cores that were busy with other work counted 4,618,886 packets,
// 261,390 of them lost, both exactly as in the capture, and the rings dropped
// none. The mean was 13.90 ms (exactly 13.91). After each collection the heap
// was 124 to 135 MB from the fourth minute on, when the points' histories were
// full, and 456 to 490 MB were resident, 192 MiB of them the rings of this
// program and of the capture.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop) // a second interrupt does not wait
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		fmt.Fprintln(os.Stderr, "wiretap:", err)
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "wiretap:", err)
		os.Exit(1)
	}
}

// errUsage is wrapped by what is wrong with the command line.
var errUsage = errors.New("usage")

// usage is an error of the command line.
func usage(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errUsage, fmt.Sprintf(format, args...))
}

// maxFlows is the largest number of flows that a ring knows by name: those of
// the latest minute, or with -keep all flows.
const maxFlows = 1 << 18

// options are the options of the command line.
type options struct {
	from, to      place
	net           netip.Prefix
	rings, buffer int
	promiscuous   bool
	flows         int
	cut, epoch    time.Duration
	keep, key     string
	kernel        bool
	ask           tuples
	json          bool
	duration      time.Duration
	demo          bool
	load          load
	ready         func() // called when everything watches
}

func parse(args []string, stderr io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("wiretap", flag.ContinueOnError)
	flags.SetOutput(stderr)
	from := flags.String("from", "", "`interface` that packets pass first: [NAMESPACE/]NAME[:in|:out], coming in by default")
	to := flags.String("to", "", "`interface` that they pass then, going out by default")
	only := flags.String("net", "", "count only packets to these `addresses`, as in 10.0.0.0/8")
	flags.IntVar(&o.rings, "rings", 1, "`number` of rings at each interface, 1 to 64")
	flags.IntVar(&o.buffer, "buffer", 32, "`MiB` of each ring, 2 to 1024")
	flags.BoolVar(&o.promiscuous, "promiscuous", false, "take packets that are not for this host, as from mirror ports")
	flags.IntVar(&o.flows, "flows", 4096, "`number` of flows to distinguish in a second, 1 to 1000000")
	flags.DurationVar(&o.cut, "cut", 100*time.Millisecond,
		"`time` between comparisons, 20ms to 1s: a whole part of 1s; shorter ones tolerate more loss")
	flags.StringVar(&o.keep, "keep", "", "`directory` to keep what passes, for later queries by examples/colate")
	flags.DurationVar(&o.epoch, "epoch", time.Second,
		"-keep: `time` that one entry of the store covers, 100ms to 1h; shorter ones tolerate more loss and take more room")
	flags.StringVar(&o.key, "key", os.Getenv("HOPLAG_KEY"), "`secret` that packets are hashed with (default: $HOPLAG_KEY, or a random one)")
	flags.BoolVar(&o.kernel, "kernel", false, "count inside the kernel, without rings")
	flags.Var(&o.ask, "flow", "-kernel: `flow` to report, as in \"udp 10.0.0.1:80 10.0.0.2:1234\"; may be repeated")
	flags.BoolVar(&o.json, "json", false, "print a JSON object a second")
	flags.DurationVar(&o.duration, "duration", 0, "end after this `time`, 1s or more (default: never; with -demo, 10s)")
	flags.BoolVar(&o.demo, "demo", false, "make namespaces with a queue and traffic, and measure that")
	flags.Float64Var(&o.load.rate, "rate", 15000, "demo: `packets` of 200 bytes a second, 100 to 1000000")
	flags.Float64Var(&o.load.bandwidth, "bandwidth", 28, "demo: rate of the queue in `Mbit/s`, 1 to 10000")
	flags.Usage = func() {
		fmt.Fprintln(stderr, "Wiretap measures delay and loss from one interface to another.")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return o, err
	} else if err != nil {
		return o, fmt.Errorf("%w: %v", errUsage, err)
	}
	if flags.NArg() > 0 {
		return o, usage("argument %q, want none", flags.Arg(0))
	}
	if *only != "" {
		if o.net, err = netip.ParsePrefix(*only); err != nil {
			return o, usage("-net is %q, want addresses as in 10.0.0.0/8", *only)
		}
	}
	if o.demo {
		if *from != "" || *to != "" {
			return o, usage("-from is %q and -to %q, want none with -demo", *from, *to)
		}
		return o, o.check()
	}
	if o.from, err = parsePlace("-from", *from, false); err != nil {
		return o, err
	}
	if o.to, err = parsePlace("-to", *to, true); err != nil {
		return o, err
	}
	if o.from == o.to {
		return o, usage("-from and -to are both %v, want two places", o.to)
	}
	return o, o.check()
}

// check reports what is out of range.
func (o *options) check() error {
	switch {
	case o.rings < 1 || o.rings > 64:
		return usage("-rings is %d, want 1 to 64", o.rings)
	case o.buffer < 2 || o.buffer > 1024:
		return usage("-buffer is %d, want 2 to 1024", o.buffer)
	case o.flows < 1 || o.flows > 1_000_000:
		return usage("-flows is %d, want 1 to 1000000", o.flows)
	case o.cut < 20*time.Millisecond || o.cut > time.Second || time.Second%o.cut != 0:
		return usage("-cut is %v, want 20ms to 1s, a part of 1s", o.cut)
	case o.epoch < 100*time.Millisecond || o.epoch > time.Hour:
		return usage("-epoch is %v, want 100ms to 1h", o.epoch)
	case o.duration != 0 && o.duration < time.Second:
		return usage("-duration is %v, want 1s or more", o.duration)
	case o.kernel && o.keep != "":
		return usage("-keep is %q, want none with -kernel, which does not know the flows", o.keep)
	case o.kernel && o.net.IsValid():
		return usage("-net is %v, want none with -kernel, which counts all packets", o.net)
	case !o.kernel && len(o.ask) > 0:
		return usage("-flow is %v, want none without -kernel: rings know the flows", &o.ask)
	case o.key != "" && len(o.key) < 16:
		return usage("-key has %d characters, want at least 16", len(o.key))
	}
	return o.load.check()
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	if o.demo {
		return demo(ctx, o, stdout, stderr)
	}
	return measure(ctx, &o, newOutput(stdout, o.json), stderr)
}

// begin returns a context that ends after the duration, if there is one.
func (o *options) begin(ctx context.Context) (context.Context, context.CancelFunc) {
	if o.ready != nil {
		o.ready()
	}
	if o.duration == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, o.duration)
}

// measure measures until the context is done, or for the duration.
func measure(ctx context.Context, o *options, out *output, stderr io.Writer) error {
	if o.kernel {
		return watchKernel(ctx, o, out)
	}
	return watchRings(ctx, o, out, stderr)
}
