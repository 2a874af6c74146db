// Colate records real packets at two points, keeps that in two directories, and answers later how long those of any flow took.
//
//	go run ./examples/colate                       # the captures that ship
//	go run ./examples/colate record -dir kept -in a.pcap -out b.pcap
//	go run ./examples/colate query -dir kept -from 2026-01-31T12:00:00Z
//
// The captures hold one traffic stream before and after whatever delays it, stamped by clocks that agree. At every -period each
// point's counters go to its store, in DIR/ingress and DIR/egress. DIR/flows.json stands for what a flow collector would know.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/netip"
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
		if command, args = args[0], args[1:]; command != "record" && command != "query" {
			return programs.Usage("command %q, want record or query", command)
		}
	}
	o := options{from: math.MinInt64, to: math.MaxInt64}
	f := programs.NewFlags("colate", "Records packets at two points, and answers later how long those of any flow took.\n\n"+
		"usage: colate [record|query] [flags]", stderr)
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
	switch {
	case command == "":
		if o.dir, err = os.MkdirTemp("", "colate"); err != nil {
			return err
		}
		defer os.RemoveAll(o.dir)
	case o.dir == "":
		return programs.Usage("-dir is missing: the directory of the stores")
	}
	rows := &programs.Rows{W: stdout, JSON: o.json}
	if command != "query" {
		err = o.record(ctx, rows)
	}
	if command != "record" && err == nil {
		err = o.query(ctx, rows)
	}
	return cmp.Or(err, rows.Err)
}

// A flow is what a flow collector knows about one.
type flow struct {
	Proto       uint8
	Ends        [2]netip.AddrPort
	Packets     float64 // that arrived
	First, Last int64   // at either point, ns
}

const flowsFile = "flows.json" // in -dir, beside the stores of these points

var points = [2]string{"ingress", "egress"}

func (o *options) open(options colate.StoreOptions) (stores [2]*colate.Store, err error) {
	for i := 0; i < len(stores) && err == nil; i++ {
		stores[i], err = colate.OpenStore(filepath.Join(o.dir, points[i]), options)
	}
	return stores, err
}

// record reads the captures into the stores.
func (o *options) record(ctx context.Context, rows *programs.Rows) error {
	var readers [2]*trace.Reader
	for i, name := range o.captures {
		f, err := os.Open(name)
		if err == nil {
			defer f.Close()
			readers[i], err = trace.NewReader(f)
		}
		if err != nil {
			return fmt.Errorf("%s: %w (the captures that ship are found from the top of the project)", name, err)
		}
	}
	file := filepath.Join(o.dir, flowsFile)
	if _, err := os.Stat(file); err == nil {
		return fmt.Errorf("%s exists; choose another -dir", file)
	}
	config := colate.Config{Identity: hashing.Fingerprint(o.seed), Counters: 4096, PerFlow: 16, Bits: 64, CountBits: 12, DigestBits: 20,
		Shift: 6, Period: int64(o.period)}
	var recorders [2]*colate.Recorder
	stores, err := o.open(colate.StoreOptions{})
	for i := range recorders {
		if err != nil {
			return err
		}
		defer stores[i].Close()
		recorders[i], err = colate.New(config)
	}
	flows, packets, other := o.pass(ctx, trace.NewPair(readers[0], readers[1]), recorders, stores)
	if err = cmp.Or(err, other); err != nil {
		return err
	}
	for i, store := range stores {
		if err := cmp.Or(store.Append(recorders[i]), store.Close()); err != nil {
			return err
		}
		if kept := store.Summary(); !rows.JSON {
			rows.Printf("%s: %.0f packets in %d epochs, %.1f bits a packet\n", points[i], packets[i], kept.Epochs, float64(8*kept.Bytes)/packets[i])
		}
	}
	text, err := json.Marshal(flows)
	return cmp.Or(err, os.WriteFile(file, text, 0o666))
}

// pass passes all packets to the points where they were captured, and returns their flows and numbers.
func (o *options) pass(ctx context.Context, pair *trace.Pair, recorders [2]*colate.Recorder, stores [2]*colate.Store) (
	flows []flow, packets [2]float64, err error) {
	index := map[hashing.Tuple]int{}
	for frame := (hashing.Frame{}); ctx.Err() == nil; {
		side, rec, err := pair.Next()
		p, key := recorders[side], &frame.Tuple
		switch {
		case err == io.EOF:
			return flows, packets, nil
		case err == nil && frame.Parse(rec.Link, rec.Frame) != nil:
			continue // no IP
		case err == nil && p.Due(rec.Time):
			err = stores[side].Append(p)
			p.Reset()
		}
		if err != nil {
			return flows, packets, err
		}
		p.Update(key.Flow(o.seed), frame.Digest(o.seed), rec.Time)
		packets[side]++
		i, known := index[*key]
		if !known {
			i, index[*key] = len(flows), len(flows)
			flows = append(flows, flow{Proto: key.Proto, Ends: [2]netip.AddrPort{key.Source(), key.Destination()}, First: rec.Time})
		}
		flows[i].Last, flows[i].Packets = rec.Time, flows[i].Packets+float64(side) // that arrived
	}
	return flows, packets, ctx.Err()
}

// asked returns the flows that are asked for, of those that were recorded.
func (o *options) asked() (names []string, records []joint.FlowRecord, err error) {
	var flows []flow
	text, err := os.ReadFile(filepath.Join(o.dir, flowsFile))
	if err = cmp.Or(err, json.Unmarshal(text, &flows)); err != nil {
		return nil, nil, fmt.Errorf("%w: nothing was recorded in %s", err, o.dir)
	}
	for _, f := range flows {
		key := hashing.MakeTuple(f.Proto, f.Ends[0], f.Ends[1])
		name := programs.FlowName(&key)
		if o.flow == name || o.flow == "" && f.Packets >= 20 && f.First <= o.to && f.Last >= o.from {
			names = append(names, name)
			records = append(records, joint.FlowRecord{Flow: key.Flow(o.seed), Packets: f.Packets})
		}
	}
	if len(names) == 0 {
		err = fmt.Errorf("no flow of 20 packets at that time, or called %q", o.flow)
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
	for r := range at[0].Epochs(o.from, o.to) {
		if r != nil && r.Config().Identity != hashing.Fingerprint(o.seed) {
			return fmt.Errorf("%w: recorded with another -seed than %d", estimate.ErrMismatch, o.seed)
		}
	}
	path := colate.Path{Up: at[0], Down: at[1]}
	found, coverage, err := path.EstimateAll(ctx, records, o.from, o.to)
	answers := []answer{}
	for i, r := range found {
		if r.Err == nil {
			answers = append(answers, answer{names[i], r.Packets, r.Mean, r.MeanInterval(0.95)})
		} else if o.flow != "" {
			err = r.Err
		}
	}
	slices.SortFunc(answers, func(a, b answer) int { return -cmp.Compare(a.Mean, b.Mean) })
	if o.json && err == nil {
		rows.Object(answers)
	}
	if o.json || err != nil {
		return err
	}
	for _, m := range slices.Concat(path.Up.Summary().Missing, path.Down.Summary().Missing, coverage.Missing) {
		rows.Printf("missing: %v\n", m.Err)
	}
	rows.Printf("%d epochs, %d bytes read; %d of %d flows have an answer\n", coverage.Epochs, coverage.Bytes, len(answers), len(found))
	for _, a := range answers {
		rows.Printf("%10s  %-23s %7.0f packets  %s\n", hoplag.Format(a.Mean), programs.Between(a.MeanInterval95), a.Packets, a.Flow)
	}
	return nil
}
