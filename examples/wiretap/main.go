//go:build linux

// Wiretap measures from outside how long packets take from one interface of a Linux host to another, how many
// are lost on the way, and which flows are the slowest. Between the interfaces may be a router, a bridge, a
// firewall, a container, or anything else with two mirror ports.
//
//	sudo wiretap -from eth0 -to eth1                 # in at eth0, out at eth1
//	sudo wiretap -from eth0 -to eth1:in -promiscuous # two mirror ports
//	sudo wiretap -from eth0:out -to guest/eth0:in    # into another network namespace
//	sudo wiretap -from eth0 -to eth1 -page :8080     # a live page, and /metrics for Prometheus
//	sudo wiretap -kernel -from eth0 -to guest/eth0:in
//
// The kernel stamps every packet and writes its first bytes into a ring (AF_PACKET, TPACKET_V3). The program
// empties the ring of each interface in its own goroutine. It reports to one point of the library what passed
// -from, and to another what passed -to, and compares them each second. The kernel counts the packets for which
// a ring had no room. The program shows them as its own drops, second by second, and subtracts them from what
// the network seems to have lost. It needs Ethernet, and finds an interface again that went away and returned.
//
// With -kernel, package lda/kernel counts the packets inside the kernel, and copies none. It sees an outgoing packet before the
// interface's queue, while a ring sees it after. It does not know the flows.
//
// Packets that end in the host, or begin in it, pass only one of the interfaces, and count as lost or extra:
// -net says which destinations to count. Packets that are rewritten on the way, as by NAT, count as different
// packets. Bundles of segments (GRO, GSO) are not packets: rings count and skip them; ethtool -K eth0 gro off
// gso off tso off prevents them.
//
// It needs root, or CAP_NET_RAW (and CAP_BPF and more with -kernel). For a demonstration with namespaces, a
// queue, traffic and the exact answer: sudo go test -v -run 'Rings|Kernel' ./examples/wiretap
//
// # Performance
//
// go test -run '^$' -bench Tap ./examples/wiretap sends frames through a veth from a ring of its own, as fast
// as they are accepted, so that none are dropped. On two busy cores a tap took 121 ns of CPU for a frame of 64 bytes of one
// flow, and 173 for frames of a thousand flows (202 and 155 with 1,500 bytes); tcpdump -w /dev/null took 193 and 207 (251
// and 294), and a reader that only looks at every frame 20 and 26 (100 and 31); on two other cores 192 and 199 (243 and 274), 159
// and 162 (211 and 194), 43 and 37 (57 and 63). Including what the sender and the kernel do for a frame, 0.8 to 1.8 µs,
// that is 79 to 98 % of the frames per core that the bare reader gets: the thread that reads is busy for a tenth to a quarter
// of the time. Most of a tap's time goes into cells of the points that are not in a cache; identifying takes an eighth.
package main

import (
	"context"
	"io"
	"net/netip"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/internal/programs"
)

func main() { programs.Main("wiretap", run) }

// options are the options of the command line.
type options struct {
	from, to    place
	net         netip.Prefix
	buffer      int
	promiscuous bool
	flows       int
	cut         time.Duration
	key         string
	kernel      bool
	page        string
	json        bool
	duration    time.Duration
	ready       func() // called when everything watches
}

// Defaults.
const buffer, flows = 32, 4096

func parse(args []string, stderr io.Writer) (o options, err error) {
	f := programs.NewFlags("wiretap", "Wiretap measures delay and loss from one interface to another.", stderr)
	f.Func("from", "`interface` that packets pass first: [NAMESPACE/]NAME[:in|:out], coming in by default", func(s string) (err error) {
		o.from, err = parsePlace(s, false)
		return err
	})
	f.Func("to", "`interface` that they pass then, going out by default", func(s string) (err error) {
		o.to, err = parsePlace(s, true)
		return err
	})
	f.TextVar(&o.net, "net", netip.Prefix{}, "count only packets to these `addresses`, as in 10.0.0.0/8")
	programs.Range(f, &o.buffer, "buffer", buffer, 2, 1024, "`MiB` of the ring at each interface")
	f.BoolVar(&o.promiscuous, "promiscuous", false, "take packets that are not for this host, as from mirror ports")
	programs.Range(f, &o.flows, "flows", flows, 1, 1_000_000, "`number` of flows to distinguish in a second")
	programs.Range(f, &o.cut, "cut", 100*time.Millisecond, 20*time.Millisecond, time.Second,
		"`time` between comparisons, a whole part of 1s; shorter ones tolerate more loss")
	f.Key(&o.key)
	f.BoolVar(&o.kernel, "kernel", false, "count inside the kernel, without rings")
	f.StringVar(&o.page, "page", "", "`address` to serve the live page and /metrics on")
	f.BoolVar(&o.json, "json", false, "print a JSON object a second")
	programs.Range(f, &o.duration, "duration", 0, time.Second, 1e6*time.Hour, "end after this `time`; 0 means never")
	f.Check(o.check)
	return o, f.Parse(args)
}

// check returns what is wrong with the options.
func (o *options) check() error {
	none := place{}
	switch {
	case o.from == none || o.to == none:
		return programs.Usage("-from or -to is missing, want two interfaces")
	case o.from == o.to:
		return programs.Usage("-from and -to are both %v, want two places", o.to)
	case time.Second%o.cut != 0:
		return programs.Usage("-cut is %v, want a part of 1s", o.cut)
	case o.net.Addr().Is4In6():
		return programs.Usage("-net is %v, want IPv4 written as such, as in 10.0.0.0/8", o.net)
	case o.kernel && o.net.IsValid():
		return programs.Usage("-net is %v, want none with -kernel, which counts all packets", o.net)
	case o.kernel && (o.promiscuous || o.buffer != buffer || o.flows != flows):
		return programs.Usage("-promiscuous, -buffer and -flows are for rings, want none with -kernel")
	}
	return nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	return measure(ctx, &o, &output{Rows: programs.Rows{W: stdout, JSON: o.json}, stderr: stderr})
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
func measure(ctx context.Context, o *options, out *output) error {
	out.view = &programs.View{Drops: out.drops}
	stop, err := out.view.Serve(o.page, out.say)
	if err != nil {
		return err
	}
	defer stop()
	if o.kernel {
		return watchKernel(ctx, o, out)
	}
	return watchRings(ctx, o, out)
}

// config is that of the two points.
func (o *options) config(p place) hoplag.Config {
	return hoplag.Config{
		Key: hoplag.NewKey(o.key), Name: p.String(), Flows: o.flows, Cut: o.cut, Report: time.Second, Cells: cells, History: 16 << 20,
		ClocksAgree: true, // it is one
	}
}
