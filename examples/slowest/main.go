// Slowest is a switch with two paths. Each second it prints which of its flows
// were the slowest, without a table of flows.
//
//	go run ./examples/slowest
//	go run ./examples/slowest -flows 20000 -seconds 10 -top 3
//	go run ./examples/slowest -json
//
// A hash assigns each flow to one of two links, one of which is too narrow:
// its queue is seldom empty and drops what does not fit. A sketch at the
// entrance and one at the exit see every packet's flow, digest and time. Each
// second they are swapped for empty ones in no time, and lds.Peel takes the
// full ones apart: it returns every flow, with its packets, losses and mean
// delay. The exact mean beside it comes from a table of flows, kept for
// comparison.
//
// A flow with a packet on its way at the swap, or with a lost packet, has no
// mean: its packets are not the same at both ends.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lds"
	"github.com/hoplag/hoplag/queue"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "slowest:", err)
		if errors.As(err, new(usageError)) {
			os.Exit(2)
		}
		os.Exit(1)
	}
}

// A usageError is an error of the command line.
type usageError struct{ error }

type settings struct {
	flows, seconds, top, rate int
	seed                      uint64
	json                      bool
}

func run(args []string, out, errs io.Writer) error {
	var s settings
	flags := flag.NewFlagSet("slowest", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the error that Parse returns is printed once
	flags.IntVar(&s.flows, "flows", 5000, "number of `flows`, 1 to 1,000,000")
	flags.IntVar(&s.seconds, "seconds", 5, "`seconds` of traffic, 1 to 3,600")
	flags.IntVar(&s.top, "top", 5, "number of `flows` to print each second, 1 or more")
	flags.IntVar(&s.rate, "rate", 100_000, "`packets` a second, 1,000 to 10,000,000")
	flags.Uint64Var(&s.seed, "seed", 1, "`seed` of everything random")
	flags.BoolVar(&s.json, "json", false, "print one JSON object for each second")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		flags.SetOutput(errs)
		flags.Usage()
		return err
	} else if err != nil {
		return usageError{fmt.Errorf("%w; -h explains the flags", err)}
	}
	if flags.NArg() > 0 {
		return usageError{fmt.Errorf("argument %q: want flags only", flags.Arg(0))}
	}
	for _, f := range []struct {
		name             string
		got, least, most int
	}{{"flows", s.flows, 1, 1e6}, {"seconds", s.seconds, 1, 3600}, {"top", s.top, 1, math.MaxInt32}, {"rate", s.rate, 1000, 1e7}} {
		if f.got < f.least || f.got > f.most {
			return usageError{fmt.Errorf("-%s is %d, want %d to %d", f.name, f.got, f.least, f.most)}
		}
	}
	w, err := newSwitch(s)
	if err != nil {
		return err
	}
	return w.measure(out)
}

// A device is the simulated switch with a sketch at each end.
type device struct {
	settings
	hop     *queue.Multipath
	in, out *estimate.Rotation[*lds.Keyed]
	exact   map[hashing.Flow]*record // of the present second
	random  *rand.Rand
	sizes   *rand.Zipf
}

// A record is what a table of flows knows about one.
type record struct {
	sum, packets float64
}

const packetBytes = 500

func newSwitch(s settings) (*device, error) {
	each := int64(s.rate) * packetBytes * 8 / 2 // bits a second on each path
	hop, err := queue.NewMultipath(queue.ByFlow, s.seed,
		queue.LinkConfig{Rate: 4 * each, Propagation: 20_000},
		queue.LinkConfig{Rate: each * 9 / 10, Propagation: 20_000, Queue: queue.QueueConfig{Packets: 2000}})
	if err != nil {
		return nil, err
	}
	config, err := lds.PlanKeyed(s.flows)
	if err != nil {
		return nil, err
	}
	d := &device{settings: s, hop: hop, exact: map[hashing.Flow]*record{}, random: rand.New(rand.NewPCG(s.seed, 1))}
	d.sizes = rand.NewZipf(d.random, 1.1, 10, uint64(s.flows-1))
	if d.in, err = lds.NewKeyedRotation(config); err != nil {
		return nil, err
	}
	d.out, err = lds.NewKeyedRotation(config)
	return d, err
}

// measure sends packets at random times and reports at the end of each second.
func (d *device) measure(out io.Writer) error {
	now := 0.0
	for second := range d.seconds {
		end := int64(second+1) * 1e9
		for {
			now += d.random.ExpFloat64() * 1e9 / float64(d.rate)
			if now >= float64(end) {
				break
			}
			p := queue.Packet{
				Sent: int64(now), Time: int64(now), Bytes: packetBytes,
				Flow: hashing.Flow(hashing.Word(d.seed, d.sizes.Uint64())), ID: hashing.Packet(d.random.Uint64()),
			}
			d.leave(p.Time)
			d.in.Active().Update(p.Flow, p.ID, p.Time)
			d.hop.Send(&p)
		}
		d.leave(end - 1)
		if err := d.report(out, second); err != nil {
			return err
		}
	}
	return nil
}

// leave takes what has come out of the switch by then.
func (d *device) leave(until int64) {
	var p queue.Packet
	for d.hop.Next(until, &p) {
		if p.Fate != queue.Passed {
			continue
		}
		d.out.Active().Update(p.Flow, p.ID, p.Time)
		r := d.exact[p.Flow]
		if r == nil {
			r = new(record)
			d.exact[p.Flow] = r
		}
		r.sum += float64(p.Time - p.Sent)
		r.packets++
	}
}

// A second is what is printed for one second.
type second struct {
	Second, Flows, WithMean        int
	Complete                       bool
	Sent, Lost, LeftSent, LeftRecd uint64
	Slowest                        []slow
}

type slow struct {
	Key             string
	Packets         uint64
	MeanNs, ExactNs float64
}

// report swaps both sketches and takes the full ones apart.
func (d *device) report(out io.Writer, number int) error {
	up, err := d.in.Rotate()
	if err != nil {
		return err
	}
	down, err := d.out.Rotate()
	if err != nil {
		return err
	}
	peeled, err := lds.Peel(up, down)
	if err != nil && !errors.Is(err, estimate.ErrNoSamples) {
		return err
	}
	if err := errors.Join(d.in.Release(up), d.out.Release(down)); err != nil {
		return err
	}
	s := second{Second: number, Flows: len(peeled.Flows), Complete: peeled.Complete, LeftSent: peeled.LeftSent, LeftRecd: peeled.LeftReceived}
	exact := map[hashing.Flow]*record{}
	for f, r := range d.exact {
		exact[f>>19<<19] = r
	}
	clear(d.exact)
	for _, f := range peeled.Flows {
		s.Sent += f.Sent
		s.Lost += uint64(max(f.Lost, 0))
		if !f.Whole {
			continue
		}
		if s.WithMean++; len(s.Slowest) < d.top {
			one := slow{Key: fmt.Sprintf("%012x", uint64(f.Key)>>16), Packets: f.Sent, MeanNs: f.Mean}
			if r := exact[f.Key]; r != nil {
				one.ExactNs = r.sum / r.packets
			}
			s.Slowest = append(s.Slowest, one)
		}
	}
	if d.json {
		return json.NewEncoder(out).Encode(s)
	}
	return s.print(out)
}

func (s *second) print(out io.Writer) error {
	all := "all of them"
	if !s.Complete {
		all = fmt.Sprintf("too many: %d packets are of others", s.LeftSent)
	}
	_, err := fmt.Fprintf(out, "second %d: %d flows, %s; %d packets, %d lost or on their way\n", s.Second, s.Flows, all, s.Sent, s.Lost)
	for _, f := range s.Slowest {
		if _, err := fmt.Fprintf(out, "  flow %s  %6d packets  %9.1f µs  (exactly %9.1f)\n", f.Key, f.Packets, f.MeanNs/1e3,
			f.ExactNs/1e3); err != nil {
			return err
		}
	}
	return err
}
