// Twopoint measures the one-way delay and the loss of real packets between two points, with a Lossy
// Difference Aggregator at each. It compares what the two small synopses say with the exact answer.
//
//	go run ./examples/twopoint                                    # the captures that ship with it
//	go run ./examples/twopoint -before a.pcap -after b.pcap.gz    # your own
//	go run ./examples/twopoint -interval 100ms -json
//
// The captures hold one traffic stream before (-before) and after (-after) whatever delays it: pcap
// or pcapng, with or without gzip, stamped by clocks that agree. The first goes to the sender's
// aggregator and the second to the receiver's; an IP packet is identified by a digest of the bytes
// that do not change in transit. The exact answer comes from remembering every packet until it is
// seen again, which an aggregator never does. What was lost is named too, by its number among the
// packets of -before, from counters that are cut every 10 ms and a memory of what went in.
//
// There is a row for each second of the first capture's clock, or as -interval says. In a network
// the sender ends an interval with a marker packet (section III of the paper). Captures hold none, so
// the receiver's interval ends with the first packet that was sent after the sender's had ended.
//
// If a capture is damaged or cut off, or Ctrl-C ends the reading, the report covers what precedes, with every
// packet that both captures have, and says so, and the exit code is 1. For wrong flags it is 2.
//
// record.sh recorded the captures that ship with the program: web pages, DNS, ping and iperf3 through a queue
// that overflows.
package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/hoplag/hoplag/internal/programs"
)

func main() { programs.Main("twopoint", run) }

// options are the options of the command line.
type options struct {
	before, after string
	interval      time.Duration
	seed          uint64
	json          bool
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	opt, err := parse(args, stderr)
	if err != nil {
		return err
	}
	captures, err := open(opt.before, opt.after)
	if err != nil {
		return err
	}
	defer captures.Close()
	m, err := newMeter(opt.seed, opt.interval)
	if err != nil {
		return err
	}
	stopped := captures.feed(ctx, m)
	if stopped != nil && m.matched == 0 {
		return stopped
	}
	r, err := m.report()
	if err != nil {
		return cmp.Or(stopped, err)
	}
	r.In, r.Out = captures.names[0], captures.names[1]
	if stopped != nil {
		r.Stopped = stopped.Error()
	}
	out := bufio.NewWriter(stdout)
	if opt.json {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		err = enc.Encode(r)
	} else {
		err = r.writeText(out)
	}
	return cmp.Or(err, out.Flush(), stopped)
}

func parse(args []string, stderr io.Writer) (opt options, err error) {
	f := programs.NewFlags("twopoint", "Measures delay and loss between two captures of one traffic stream, beside the exact answer.", stderr)
	f.StringVar(&opt.before, "before", "", "capture `file` before the delay; pcap or pcapng, also .gz (default: the one that ships)")
	f.StringVar(&opt.after, "after", "", "capture `file` after the delay (default: the one that ships)")
	programs.Range(f, &opt.interval, "interval", time.Second, 0, 1000*time.Hour, "`length` of a measurement interval; 0 is the whole capture")
	f.Uint64Var(&opt.seed, "seed", 1, "`seed` of the packets' digests")
	f.BoolVar(&opt.json, "json", false, "print JSON instead of text; delays in nanoseconds")
	return opt, f.Parse(args)
}
