package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/hoplag/hoplag/colate"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/programs"
)

// confidence is that of the printed intervals.
const confidence = 0.95

// queryOptions are the options of query and rank.
type queryOptions struct {
	dir      string
	seed     uint64
	flow     hashing.Tuple
	from, to time.Time // zero: the flow's lifetime, or all time
	packets  float64   // 0: as recorded
	json     bool

	top, least int // for rank
}

// windowFlags defines the flags that query and rank share. The function it
// returns parses them.
func windowFlags(opt *queryOptions, command, what string, stderr io.Writer) (parse func(args []string) error) {
	f := flags(command, what, stderr)
	f.StringVar(&opt.dir, "dir", "", "`directory` that record wrote")
	f.Uint64Var(&opt.seed, "seed", 1, "`seed` that was passed to record")
	f.BoolVar(&opt.json, "json", false, "print JSON")
	from := f.String("from", "", "beginning of the `time` window, RFC 3339 (default: the first packet)")
	to := f.String("to", "", "end of the `time` window (default: the last packet)")
	var flow *string
	if command == "query" {
		flow = f.String("flow", "", "`5-tuple` as list prints it: \"tcp 10.0.0.1:80 10.0.0.2:1234\"")
		f.Float64Var(&opt.packets, "packets", 0, "`number` of the flow's packets in that window (default: as in flows.csv)")
	} else {
		f.IntVar(&opt.top, "top", 20, "number of `flows` to print; 0 means all")
		f.IntVar(&opt.least, "least", 20, "rank only flows of at least this many `packets`")
	}
	return func(args []string) error {
		if err := parseDir(f, args, &opt.dir); err != nil {
			return err
		}
		var errs [3]error
		opt.from, errs[0] = parseTime("-from", *from)
		opt.to, errs[1] = parseTime("-to", *to)
		switch {
		case flow == nil:
		case *flow == "":
			errs[2] = errors.New("-flow is missing: a 5-tuple as list prints it, \"tcp 10.0.0.1:80 10.0.0.2:1234\"")
		default:
			opt.flow, errs[2] = programs.ParseFlow(*flow)
		}
		return errors.Join(errs[:]...)
	}
}

func parseTime(name, s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return t, fmt.Errorf("%s is %q, want a time as list prints it, %s", name, s, "2026-01-31T12:00:00.5Z")
	}
	return t, nil
}

// window returns the requested window, or else the given one.
func (opt *queryOptions) window(first, last int64) (from, to int64) {
	if !opt.from.IsZero() {
		first = opt.from.UnixNano()
	}
	if !opt.to.IsZero() {
		last = opt.to.UnixNano()
	}
	return first, last
}

// known returns what the flow collector, or the command line, knows about the
// flow.
func (opt *queryOptions) known() (programs.FlowRecord, error) {
	flows, err := programs.ReadFlows(opt.dir)
	if err != nil {
		return programs.FlowRecord{}, err
	}
	for _, f := range flows {
		if f.Tuple == opt.flow {
			return f, nil
		}
	}
	if opt.packets == 0 || opt.from.IsZero() || opt.to.IsZero() {
		return programs.FlowRecord{}, fmt.Errorf(
			"%s is not in flows.csv (colate list prints what is); for a flow that is not, give -packets, -from and -to",
			programs.FlowName(&opt.flow))
	}
	return programs.FlowRecord{Tuple: opt.flow}, nil
}

// openPath opens both points' stores for reading.
func openPath(opt *queryOptions) (colate.Path, error) {
	var stores [2]*colate.Store
	for i := range stores {
		store, err := openStore(opt.dir, i, colate.StoreOptions{ReadOnly: true})
		if err != nil {
			return colate.Path{}, err
		}
		config, err := store.Config()
		if err != nil {
			return colate.Path{}, fmt.Errorf("%s: %w", points[i], err)
		}
		if config.Identity != hashing.Fingerprint(opt.seed) {
			return colate.Path{}, fmt.Errorf("-seed %d is not the seed of the recording", opt.seed)
		}
		stores[i] = store
	}
	return colate.Path{Up: stores[0], Down: stores[1]}, nil
}

// ask asks the stores about flows.
func ask(opt *queryOptions, flows []programs.FlowRecord, from, to int64) ([]colate.Answer, colate.Coverage, error) {
	path, err := openPath(opt)
	if err != nil {
		return nil, colate.Coverage{}, err
	}
	records := make([]joint.FlowRecord, len(flows))
	for i, f := range flows {
		records[i] = joint.FlowRecord{Flow: f.Tuple.Flow(opt.seed), Packets: float64(f.Packets)}
	}
	answers, coverage, err := path.EstimateAll(context.Background(), records, from, to)
	coverage.Damages = slices.Concat(path.Up.Damages(), path.Down.Damages(), coverage.Damages)
	return answers, coverage, err
}

func query(opt queryOptions, stdout io.Writer) error {
	f, err := opt.known()
	if err != nil {
		return err
	}
	if opt.packets != 0 {
		f.Packets = uint64(opt.packets)
	}
	from, to := opt.window(f.First, f.Last)
	answers, coverage, err := ask(&opt, []programs.FlowRecord{f}, from, to)
	if !opt.json {
		printCoverage(&coverage, stdout)
	}
	if err != nil {
		return err
	}
	if opt.json {
		return json.NewEncoder(stdout).Encode(describe(&f, &answers[0], &coverage))
	}
	fmt.Fprintf(stdout, "%s, %d packets\n", programs.FlowName(&opt.flow), f.Packets)
	if err := answers[0].Err; err != nil {
		return err
	}
	r := &answers[0].Result
	mean, deviation := r.MeanInterval(confidence), r.DeviationInterval(confidence)
	fmt.Fprintf(stdout, "  mean %v, %.0f %% between %v and %v\n", duration(r.Mean), 100*confidence, duration(mean.Low), duration(mean.High))
	if r.StdDev > 0 {
		fmt.Fprintf(stdout, "  deviation %v, between %v and %v\n", duration(r.StdDev), duration(deviation.Low), duration(deviation.High))
	} else {
		fmt.Fprintf(stdout, "  deviation lost in the noise of other flows\n")
	}
	fmt.Fprintf(stdout, "  from %.0f %% of the flow's packets\n", 100*min(float64(r.N)/r.Packets, 1))
	return nil
}

// printCoverage prints which data the answer rests on.
func printCoverage(c *colate.Coverage, stdout io.Writer) {
	for _, d := range c.Damages {
		fmt.Fprintf(stdout, "damaged: %v\n", d)
	}
	for _, m := range c.Missing {
		fmt.Fprintf(stdout, "missing: %s to %s: %v\n", when(m.Start), when(m.End), m.Reason)
	}
	if c.Epochs > 0 {
		fmt.Fprintf(stdout, "%d pairs of epochs, %s to %s, %d bytes read\n", c.Epochs, when(c.Start), when(c.End), c.Bytes)
	}
}

func when(ns int64) string { return time.Unix(0, ns).UTC().Format(time.RFC3339Nano) }

// rank prints the flows of a window, slowest first.
func rank(opt queryOptions, stdout io.Writer) error {
	all, err := programs.ReadFlows(opt.dir)
	if err != nil {
		return err
	}
	from, to := opt.window(math.MinInt64, math.MaxInt64)
	flows := slices.DeleteFunc(all, func(f programs.FlowRecord) bool {
		return f.Packets < uint64(opt.least) || f.First > to || f.Last < from
	})
	if len(flows) == 0 {
		return fmt.Errorf("no flow of %d packets or more in that time", opt.least)
	}
	answers, coverage, err := ask(&opt, flows, from, to)
	if err != nil {
		return err
	}
	order := make([]int, 0, len(flows))
	for i := range answers {
		if answers[i].Err == nil {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(i, j int) int { return -cmp.Compare(answers[i].Mean, answers[j].Mean) })
	answered := len(order)
	if opt.top > 0 {
		order = order[:min(opt.top, len(order))]
	}
	if opt.json {
		list := make([]described, len(order))
		for k, i := range order {
			list[k] = describe(&flows[i], &answers[i], &coverage)
		}
		return json.NewEncoder(stdout).Encode(list)
	}
	printCoverage(&coverage, stdout)
	fmt.Fprintf(stdout, "%d of %d flows of %d packets or more have an answer\n", answered, len(flows), opt.least)
	for _, i := range order {
		mean := answers[i].MeanInterval(confidence)
		fmt.Fprintf(stdout, "%10v  %10v to %-10v  %8d packets  %s\n", duration(answers[i].Mean), duration(mean.Low), duration(mean.High),
			flows[i].Packets, programs.FlowName(&flows[i].Tuple))
	}
	return nil
}

// A described answer is what -json prints, with times in nanoseconds.
type described struct {
	Flow              string            `json:"flow"`
	Packets           uint64            `json:"packets"`
	Mean              float64           `json:"mean"`
	MeanInterval      estimate.Interval `json:"meanInterval"`
	Deviation         *float64          `json:"deviation,omitempty"`
	Start             string            `json:"start"`
	End               string            `json:"end"`
	Epochs            int               `json:"epochs"`
	Missing           int               `json:"missing"`
	Error             string            `json:"error,omitempty"`
	BytesRead         int64             `json:"bytesRead"`
	DamagedPlaces     int               `json:"damagedPlaces"`
	PacketsUsed       uint64            `json:"packetsUsed"`
	DeviationInterval []float64         `json:"deviationInterval,omitempty"`
}

func describe(f *programs.FlowRecord, a *colate.Answer, c *colate.Coverage) described {
	d := described{
		Flow: programs.FlowName(&f.Tuple), Packets: f.Packets, Start: when(c.Start), End: when(c.End),
		Epochs: c.Epochs, Missing: len(c.Missing), BytesRead: c.Bytes, DamagedPlaces: len(c.Damages),
	}
	if a.Err != nil {
		d.Error = a.Err.Error()
		return d
	}
	d.Mean, d.MeanInterval, d.PacketsUsed = a.Mean, a.MeanInterval(confidence), a.N
	if a.StdDev > 0 {
		interval := a.DeviationInterval(confidence)
		d.Deviation, d.DeviationInterval = &a.StdDev, []float64{interval.Low, interval.High}
	}
	return d
}

// duration converts nanoseconds for people to read.
func duration(ns float64) time.Duration {
	if math.Abs(ns) > math.MaxInt64/2 {
		ns = math.Copysign(math.MaxInt64/2, ns)
	}
	d := time.Duration(ns)
	switch {
	case d.Abs() > time.Second:
		return d.Round(time.Millisecond)
	case d.Abs() > time.Millisecond:
		return d.Round(time.Microsecond)
	}
	return d.Round(10 * time.Nanosecond)
}
