// Kernel measures delay and loss from inside the Linux kernel, with a point at
// each end of a shaped queue, and each second prints a row with the exact
// answer beside it.
//
//	sudo go run ./examples/kernel
//	sudo go run ./examples/kernel -duration 30s -bandwidth 50 -rate 8000
//	sudo go run ./examples/kernel -xdp -json
//
// It makes two network namespaces with a virtual cable between them, and removes
// them at the end:
//
//	sender ── [point at egress] queue of tc ── cable ── [point at ingress] receiver
//
// Datagrams come in bursts, so that the queue (a token bucket) fills, and
// drops what finds it full. Each datagram carries the time at which it was
// sent, and the kernel stamps it when it is received. That is the exact
// answer, for every datagram, to within the few microseconds between a program
// and the point at its side. The points do not use it: they see packets, and
// keep 5,120 cells each.
//
// It needs Linux 5.8 and root, or CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN and
// CAP_SYS_ADMIN; and the commands ip and tc.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"time"

	"github.com/hoplag/hoplag/lda/kernel"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		fmt.Fprintln(os.Stderr, "kernel:", err)
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "kernel:", err)
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
	duration  time.Duration
	compare   time.Duration
	rate      float64 // datagrams a second, on average
	bandwidth float64 // of the queue, Mbit/s
	xdp, json bool
}

func parse(args []string, stderr io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("kernel", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.DurationVar(&o.duration, "duration", 10*time.Second, "how long to measure, a `time` of 1s or more: a row a second")
	flags.DurationVar(&o.compare, "compare", 100*time.Millisecond, "`time` between comparisons of the two points, 20ms to 1s")
	flags.Float64Var(&o.rate, "rate", 15000, "`datagrams` of 1,000 bytes a second, on average, 100 to 100000")
	flags.Float64Var(&o.bandwidth, "bandwidth", 150, "rate of the queue in `Mbit/s`, 1 to 10000")
	flags.BoolVar(&o.xdp, "xdp", false, "count at XDP on the receiving side, instead of tc")
	flags.BoolVar(&o.json, "json", false, "print a JSON object for each row")
	flags.Usage = func() {
		fmt.Fprintln(stderr, "Kernel measures delay and loss from inside the kernel, and prints the exact answer beside.")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return o, err
	} else if err != nil {
		return o, usage("%v", err)
	}
	switch {
	case flags.NArg() > 0:
		return o, usage("argument %q, want none", flags.Arg(0))
	case o.duration < time.Second:
		return o, usage("-duration is %v, want 1s or more", o.duration)
	case o.compare < 20*time.Millisecond || o.compare > time.Second:
		return o, usage("-compare is %v, want 20ms to 1s", o.compare)
	case !(o.rate >= 100 && o.rate <= 100000):
		return o, usage("-rate is %v, want 100 to 100000", o.rate)
	case !(o.bandwidth >= 1 && o.bandwidth <= 10000):
		return o, usage("-bandwidth is %v, want 1 to 10000", o.bandwidth)
	}
	return o, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	wire, err := newCable(o.bandwidth)
	if err != nil {
		return err
	}
	defer wire.remove()
	m, err := newMeter(wire, o.xdp)
	if err != nil {
		return err
	}
	defer m.close()
	traffic, err := newTraffic(wire)
	if err != nil {
		return err
	}
	defer traffic.close()
	ctx, stop := context.WithTimeout(ctx, o.duration)
	defer stop()
	go traffic.receive()
	go traffic.send(ctx, o.rate)
	if !o.json {
		if _, err := fmt.Fprintln(stdout, header); err != nil {
			return err
		}
	}
	start := time.Now()
	tick := time.NewTicker(o.compare)
	defer tick.Stop()
	for second := 1; ; second++ {
		for running := true; running && time.Since(start) < time.Duration(second)*time.Second; {
			select {
			case <-tick.C:
			case <-ctx.Done():
				running = false
			}
			if err := m.compare(); err != nil {
				return err
			}
		}
		last := ctx.Err() != nil
		if last { // the packets in the queue are still to come
			time.Sleep(300 * time.Millisecond)
			if err := m.compare(); err != nil {
				return err
			}
		}
		r := m.row(second, last)
		r.ExactMicros, r.ExactLost = traffic.row(last)
		if err := r.print(stdout, o.json); err != nil || last {
			return err
		}
	}
}

// A row is one second.
type row struct {
	Second      int      `json:"second"`
	Sent        uint64   `json:"sent"`
	Lost        int64    `json:"lost"`       // since the beginning
	ExactLost   *int64   `json:"exact_lost"` // at the end, when nothing is on its way
	MeanMicros  *float64 `json:"mean_us"`
	LowMicros   *float64 `json:"low_us"`
	HighMicros  *float64 `json:"high_us"`
	ExactMicros *float64 `json:"exact_us"`
	Sample      uint64   `json:"sample"`
	Passed      uint64   `json:"passed_over"` // frames without IP
	Error       string   `json:"error,omitempty"`
}

const header = "second     sent lost, all    exact    mean µs             98 % interval   exact µs     sample"

func (r *row) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(r)
	}
	exactLost := "-"
	if r.ExactLost != nil {
		exactLost = fmt.Sprint(*r.ExactLost)
	}
	if r.Error != "" {
		_, err := fmt.Fprintf(w, "%6d %8d %9d %8s  %s\n", r.Second, r.Sent, r.Lost, exactLost, r.Error)
		return err
	}
	interval := fmt.Sprintf("%s to %s", number(r.LowMicros), number(r.HighMicros))
	_, err := fmt.Fprintf(w, "%6d %8d %9d %8s %10s %25s %10s %10d\n", r.Second, r.Sent, r.Lost, exactLost,
		number(r.MeanMicros), interval, number(r.ExactMicros), r.Sample)
	return err
}

func number(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f", *v)
}

// known returns a number for JSON, or null if it is not finite.
func known(v float64) *float64 {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return nil
	}
	return &v
}

// explain adds to an error what the program needs.
func explain(err error) error {
	switch {
	case errors.Is(err, kernel.ErrPrivilege):
		return fmt.Errorf("%w; run it as root", err)
	case errors.Is(err, kernel.ErrUnsupported):
		return fmt.Errorf("%w; it needs Linux", err)
	}
	return err
}
