// Colate records real packets at two points, keeps what it recorded in two
// directories, and answers later how long the packets of any flow took.
//
//	go run ./examples/colate                       # the captures that ship
//	go run ./examples/colate record -dir kept -in a.pcap -out b.pcap
//	go run ./examples/colate query -dir kept -from 2026-01-31T12:00:00Z
//
// The captures hold one traffic stream before and after whatever delays it,
// stamped by clocks that agree. At every -period each point's counters go to its store, in
// DIR/ingress and DIR/egress. DIR/flows.csv stands for what a flow collector would know.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/colate"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/programs"
	"github.com/hoplag/hoplag/queue/trace"
)

func main() { programs.Main("colate", run) }

const about = `Records packets at two points, and answers later how long those of any flow took.

usage: colate [record|query] [flags]`

// options are those of all commands.
type options struct {
	dir, flow string
	captures  [2]string
	from, to  int64
	period    time.Duration
	seed      uint64
	json      bool
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	command := ""
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		command, args = args[0], args[1:]
	}
	o := options{from: math.MinInt64, to: math.MaxInt64}
	f := programs.NewFlags("colate", about, stderr)
	f.StringVar(&o.captures[0], "in", "examples/twopoint/testdata/ingress.pcap.gz", "capture `file` before the delay, to record")
	f.StringVar(&o.captures[1], "out", "examples/twopoint/testdata/egress.pcap.gz", "capture `file` after the delay")
	programs.Range(f, &o.period, "period", 500*time.Millisecond, time.Millisecond, 24*time.Hour, "`time` between stores of the counters")
	f.StringVar(&o.dir, "dir", "", "`directory` of the stores")
	f.Uint64Var(&o.seed, "seed", 1, "secret `seed` of all digests, which is not kept")
	f.StringVar(&o.flow, "flow", "", "ask for this `flow` only, such as \"tcp 10.0.0.1:80 10.0.0.2:1234\"")
	for name, at := range map[string]*int64{"from": &o.from, "to": &o.to} {
		f.Func(name, "ask "+name+" this `time`, RFC 3339", func(s string) error {
			t, err := time.Parse(time.RFC3339Nano, s)
			*at = t.UnixNano()
			return err
		})
	}
	f.BoolVar(&o.json, "json", false, "print the answers as JSON")
	if err := f.Parse(args); err != nil {
		return err
	}
	if command != "" && command != "record" && command != "query" {
		return programs.Usage("command %q, want record or query", command)
	}
	if command == "" {
		if o.dir, err = os.MkdirTemp("", "colate"); err != nil {
			return err
		}
		defer os.RemoveAll(o.dir)
	} else if o.dir == "" {
		return programs.Usage("-dir is missing: the directory of the stores")
	}
	rows := &programs.Rows{W: stdout, JSON: o.json}
	if command == "record" || command == "" {
		if err := o.record(ctx, rows); err != nil || command == "record" {
			return cmp.Or(err, rows.Err)
		}
	}
	return cmp.Or(o.query(ctx, rows), rows.Err)
}

// points are the names of the two points' stores.
var points = [2]string{"ingress", "egress"}

// A point has a recorder, and a store for its epochs.
type point struct {
	*colate.Recorder
	store   *colate.Store
	packets float64
}

func (o *options) open(options colate.StoreOptions) (at [2]point, err error) {
	for i := range at {
		if at[i].store, err = colate.OpenStore(filepath.Join(o.dir, points[i]), options); err != nil {
			break
		}
	}
	return at, err
}

// record reads the captures into the stores.
func (o *options) record(ctx context.Context, rows *programs.Rows) error {
	var readers [2]*trace.Reader
	for i, name := range o.captures {
		f, err := os.Open(name)
		if err != nil {
			return fmt.Errorf("%w (the captures that ship are found from the top of the project)", err)
		}
		defer f.Close()
		if readers[i], err = trace.NewReader(f); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if _, err := os.Stat(filepath.Join(o.dir, flowsFile)); err == nil {
		return fmt.Errorf("%s already has a recording; choose another -dir", o.dir)
	}
	at, err := o.open(colate.StoreOptions{})
	if err != nil {
		return err
	}
	config := colate.Config{Identity: hashing.Fingerprint(o.seed), Counters: 4096, PerFlow: 16, Bits: 64, CountBits: 12, DigestBits: 20,
		Shift: 6, Period: int64(o.period)}
	for i := range at {
		defer at[i].store.Close()
		if at[i].Recorder, err = colate.New(config); err != nil {
			return err
		}
	}
	flows := flowTable{}
	if err = o.pass(ctx, trace.NewPair(readers[0], readers[1]), &at, flows); err != nil {
		return err
	}
	for i, p := range at {
		if err := errors.Join(p.store.Append(p.Recorder), p.store.Close()); err != nil {
			return err
		}
		if kept := p.store.Summary(); !rows.JSON {
			rows.Printf("%s: %.0f packets in %d epochs, %.1f bits a packet\n", points[i], p.packets, kept.Epochs, float64(8*kept.Bytes)/p.packets)
		}
	}
	return flows.write(o.dir)
}

// pass passes all packets to the points where they were captured.
func (o *options) pass(ctx context.Context, pair *trace.Pair, at *[2]point, flows flowTable) error {
	var frame hashing.Frame
	for ctx.Err() == nil {
		side, rec, err := pair.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if frame.Parse(rec.Link, rec.Frame) != nil {
			continue // no IP
		}
		p := &at[side]
		if p.Due(rec.Time) {
			if err := p.store.Append(p.Recorder); err != nil {
				return err
			}
			p.Reset()
		}
		p.Update(frame.Tuple.Flow(o.seed), frame.Digest(o.seed), rec.Time)
		p.packets++
		f := flowRecord{tuple: frame.Tuple, first: rec.Time, last: rec.Time}
		if side == trace.Egress {
			f.packets = 1
		}
		flows.add(f)
	}
	return ctx.Err()
}

// asked returns the flows that are asked for, of those that were recorded.
func (o *options) asked() (names []string, records []joint.FlowRecord, err error) {
	flows, err := readFlows(o.dir)
	for _, f := range flows {
		name := programs.FlowName(&f.tuple)
		if o.flow == name || o.flow == "" && f.packets >= 20 && f.first <= o.to && f.last >= o.from {
			names = append(names, name)
			records = append(records, joint.FlowRecord{Flow: f.tuple.Flow(o.seed), Packets: float64(f.packets)})
		}
	}
	if len(names) == 0 && err == nil {
		err = fmt.Errorf("no flow of 20 packets at that time, or called %q, in %s", o.flow, flowsFile)
	}
	return names, records, err
}

// An answer is what -json prints for a flow, with times in nanoseconds.
type answer struct {
	Flow           string
	Packets, Mean  float64
	MeanInterval95 estimate.Interval
}

// query asks the stores, and prints the slowest flows first.
func (o *options) query(ctx context.Context, rows *programs.Rows) error {
	names, records, err := o.asked()
	at, other := o.open(colate.StoreOptions{ReadOnly: true})
	if err := cmp.Or(err, other); err != nil {
		return err
	}
	for r := range at[0].store.Epochs(o.from, o.to) {
		if r != nil && r.Config().Identity != hashing.Fingerprint(o.seed) {
			return fmt.Errorf("%w: recorded with another -seed than %d", estimate.ErrMismatch, o.seed)
		}
	}
	path := colate.Path{Up: at[0].store, Down: at[1].store}
	found, coverage, err := path.EstimateAll(ctx, records, o.from, o.to)
	if err != nil {
		return err
	}
	answers := []answer{}
	for i := range found {
		if r := &found[i]; r.Err == nil {
			answers = append(answers, answer{names[i], r.Packets, r.Mean, r.MeanInterval(0.95)})
		} else if o.flow != "" {
			return r.Err
		}
	}
	slices.SortFunc(answers, func(a, b answer) int { return -cmp.Compare(a.Mean, b.Mean) })
	if o.json {
		rows.Object(answers)
		return nil
	}
	for _, m := range slices.Concat(path.Up.Summary().Missing, path.Down.Summary().Missing, coverage.Missing) {
		rows.Printf("missing: %v\n", m.Err)
	}
	rows.Printf("%d pairs of epochs, %d missing, %d bytes read; %d of %d flows have an answer\n", coverage.Epochs, len(coverage.Missing),
		coverage.Bytes, len(answers), len(found))
	for _, a := range answers {
		rows.Printf("%10s  %-23s %7.0f packets  %s\n", hoplag.Format(a.Mean), programs.Between(a.MeanInterval95), a.Packets, a.Flow)
	}
	return nil
}
