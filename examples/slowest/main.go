// Slowest is a switch with two paths. Each second it prints which of its flows
// were the slowest.
//
//	go run ./examples/slowest
//	go run ./examples/slowest -flows 20000 -seconds 10 -top 3
//	go run ./examples/slowest -json
//
// A hash assigns each flow to one of two links, one of which is too narrow:
// its queue is seldom empty and drops what does not fit. An lds.Table at the
// entrance and one at the exit see every packet's flow, digest and time. Each
// second they are swapped for empty ones in no time. They have room for all flows;
// with less room they hold the larger ones. The exact mean beside a flow's comes from
// a map, kept for comparison.
//
// Printed are flows of which both tables counted the same packets of the second;
// the exact mean is also of packets that neither counted.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"

	"github.com/hoplag/hoplag"
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
	programs.Range(flags, &s.top, "top", 5, 1, 1_000_000, "number of `flows` to print each second")
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

// A device is the simulated switch with a table at each end.
type device struct {
	settings
	paths   [2]*queue.Link
	onWay   [2][]queue.Packet // in order of the time at which they come out
	in, out *estimate.Rotation[*lds.Table]
	exact   map[hashing.Flow]*estimate.Moments // of the present second
	random  *rand.Rand
	sizes   *rand.Zipf
	now     float64 // ns
}

const packetBytes = 500

func newSwitch(s settings) (*device, error) {
	each := int64(s.rate) * packetBytes * 8 / 2 // bits a second on each path
	d := &device{settings: s, exact: map[hashing.Flow]*estimate.Moments{}, random: rand.New(rand.NewPCG(s.seed, 1))}
	var errs [2]error
	d.paths[0], errs[0] = queue.NewLink(queue.LinkConfig{Rate: 4 * each, Propagation: 20_000})
	d.paths[1], errs[1] = queue.NewLink(queue.LinkConfig{Rate: each * 9 / 10, Propagation: 20_000, Queue: queue.QueueConfig{Packets: 2000}})
	err := errors.Join(errs[:]...)
	if err != nil {
		return nil, err
	}
	config := lds.DefaultTableConfig
	config.Flows = (2*s.flows + 7) / 8 * 8
	d.sizes = rand.NewZipf(d.random, 1.1, 10, uint64(s.flows-1))
	make := func() (*lds.Table, error) { return lds.NewTable(config) }
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
		path := hashing.Mix(uint64(p.Flow), d.seed) >> 63
		if p.Time, p.Fate = d.paths[path].Send(p.Time, packetBytes); p.Fate == queue.Passed {
			d.onWay[path] = append(d.onWay[path], p)
		}
	}
	d.leave(end - 1)
	return d.report(rows, second)
}

func (d *device) wait() float64 { return d.random.ExpFloat64() * 1e9 / float64(d.rate) }

// leave takes what has come out of the switch by then.
func (d *device) leave(until int64) {
	for i := range d.onWay {
		for ; len(d.onWay[i]) > 0 && d.onWay[i][0].Time <= until; d.onWay[i] = d.onWay[i][1:] {
			p := &d.onWay[i][0]
			d.out.Active().Update(p.Flow, p.ID, p.Time)
			if d.exact[p.Flow] == nil {
				d.exact[p.Flow] = new(estimate.Moments)
			}
			d.exact[p.Flow].Add(float64(p.Time - p.Sent))
		}
	}
}

// A second is what is printed for one second.
type second struct {
	Second, Flows, WithMean int
	Sent, Lost              uint64
	Slowest                 []slow
}

type slow struct {
	Key             string
	Packets         uint64
	MeanNs, ExactNs float64
}

// report swaps both tables and reads the full ones.
func (d *device) report(rows *programs.Rows, number int) error {
	up, err := d.in.Rotate()
	if err != nil {
		return err
	}
	down, err := d.out.Rotate()
	if err != nil {
		return err
	}
	s := second{Second: number}
	for _, f := range up.Flows(1) {
		r, err := lds.EstimateTable(up, down, f)
		if err != nil && !errors.Is(err, estimate.ErrNoSamples) {
			return err
		}
		s.Flows++
		s.Sent += r.Sent
		s.Lost += r.Lost
		if err != nil || r.N < max(r.Sent, r.Received) {
			continue
		}
		s.WithMean++
		s.Slowest = append(s.Slowest, slow{fmt.Sprintf("%016x", uint64(f)), r.Sent, r.Mean, d.exact[f].Mean()})
	}
	if err := errors.Join(d.in.Release(up), d.out.Release(down)); err != nil {
		return err
	}
	clear(d.exact)
	slices.SortFunc(s.Slowest, func(a, b slow) int { return cmp.Or(cmp.Compare(b.MeanNs, a.MeanNs), cmp.Compare(a.Key, b.Key)) })
	s.Slowest = s.Slowest[:min(d.top, len(s.Slowest))]
	if rows.JSON {
		rows.Object(s)
	} else {
		s.print(rows)
	}
	return nil
}

func (s *second) print(rows *programs.Rows) {
	rows.Printf("second %d: %d flows held; %d packets, %d lost or on their way\n", s.Second, s.Flows, s.Sent, s.Lost)
	for _, f := range s.Slowest {
		rows.Printf("  flow %s  %6d packets  %8s  exactly %8s\n", f.Key, f.Packets, hoplag.Format(f.MeanNs), hoplag.Format(f.ExactNs))
	}
}
