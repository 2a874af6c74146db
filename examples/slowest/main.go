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
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/programs"
	"github.com/hoplag/hoplag/lds"
	"github.com/hoplag/hoplag/queue"
)

func main() { programs.Main("slowest", run) }

type settings struct {
	flows, seconds, top, rate int
	seed                      uint64
	json                      bool
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var s settings
	flags := programs.NewFlags("slowest", "Slowest prints each second which flows of a simulated switch were the slowest.", stderr)
	programs.Range(flags, &s.flows, "flows", 5000, 1, 1_000_000, "number of `flows`")
	programs.Range(flags, &s.seconds, "seconds", 5, 1, 3600, "`seconds` of traffic")
	programs.Range(flags, &s.top, "top", 5, 1, math.MaxInt32, "number of `flows` to print each second")
	programs.Range(flags, &s.rate, "rate", 100_000, 1000, 10_000_000, "`packets` a second")
	flags.Uint64Var(&s.seed, "seed", 1, "`seed` of everything random")
	flags.BoolVar(&s.json, "json", false, "print one JSON object for each second")
	if err := flags.Parse(args); err != nil {
		return err
	}
	d, err := newSwitch(s)
	if err != nil {
		return err
	}
	rows := &programs.Rows{W: stdout, JSON: s.json}
	for second := 0; second < s.seconds && ctx.Err() == nil && rows.Err == nil; second++ {
		if err := d.measure(rows, second); err != nil {
			return err
		}
	}
	return rows.Err
}

// A device is the simulated switch with a sketch at each end.
type device struct {
	settings
	hop     *queue.Multipath
	in, out *estimate.Rotation[*lds.Keyed]
	exact   map[hashing.Flow]*estimate.Moments // of the present second
	random  *rand.Rand
	sizes   *rand.Zipf
	now     float64 // ns
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
	config := lds.KeyedConfig{Flows: s.flows}
	d := &device{settings: s, hop: hop, exact: map[hashing.Flow]*estimate.Moments{}, random: rand.New(rand.NewPCG(s.seed, 1))}
	d.sizes = rand.NewZipf(d.random, 1.1, 10, uint64(s.flows-1))
	make := func() (*lds.Keyed, error) { return lds.NewKeyed(config) }
	if d.in, err = estimate.NewRotation(make); err != nil {
		return nil, err
	}
	d.out, err = estimate.NewRotation(make)
	return d, err
}

// measure sends packets at random times for a second, and reports.
func (d *device) measure(rows *programs.Rows, second int) error {
	end := int64(second+1) * 1e9
	for d.now += d.wait(); d.now < float64(end); d.now += d.wait() {
		p := queue.Packet{
			Sent: int64(d.now), Time: int64(d.now), Bytes: packetBytes,
			Flow: hashing.Flow(hashing.Word(d.seed, d.sizes.Uint64())), ID: hashing.Packet(d.random.Uint64()),
		}
		d.leave(p.Time)
		d.in.Active().Update(p.Flow, p.ID, p.Time)
		d.hop.Send(&p)
	}
	d.leave(end - 1)
	return d.report(rows, second)
}

func (d *device) wait() float64 { return d.random.ExpFloat64() * 1e9 / float64(d.rate) }

// leave takes what has come out of the switch by then.
func (d *device) leave(until int64) {
	var p queue.Packet
	for d.hop.Next(until, &p) {
		if p.Fate != queue.Passed {
			continue
		}
		d.out.Active().Update(p.Flow, p.ID, p.Time)
		if d.exact[p.Flow] == nil {
			d.exact[p.Flow] = new(estimate.Moments)
		}
		d.exact[p.Flow].Add(float64(p.Time - p.Sent))
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
func (d *device) report(rows *programs.Rows, number int) error {
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
	exact := map[hashing.Flow]*estimate.Moments{}
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
				one.ExactNs = r.Mean()
			}
			s.Slowest = append(s.Slowest, one)
		}
	}
	if rows.JSON {
		rows.Object(s)
	} else {
		s.print(rows)
	}
	return nil
}

func (s *second) print(rows *programs.Rows) {
	all := "all of them"
	if !s.Complete {
		all = fmt.Sprintf("too many: %d packets are of others", s.LeftSent)
	}
	rows.Printf("second %d: %d flows, %s; %d packets, %d lost or on their way\n", s.Second, s.Flows, all, s.Sent, s.Lost)
	for _, f := range s.Slowest {
		rows.Printf("  flow %s  %6d packets  %9.1f µs  (exactly %9.1f)\n", f.Key, f.Packets, f.MeanNs/1e3, f.ExactNs/1e3)
	}
}
