package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/hoplag/hoplag/colate"
	"github.com/hoplag/hoplag/hashing"
)

// queryOptions are what the command line says.
type queryOptions struct {
	dir      string
	flow     hashing.Tuple
	from, to time.Time // zero: the flow's lifetime
	packets  uint64    // 0: as recorded
	seed     uint64
}

func parseQuery(args []string, stderr io.Writer) (queryOptions, error) {
	var opt queryOptions
	f := flags("query", "Prints the delay of one flow.", stderr)
	f.StringVar(&opt.dir, "dir", "", "`directory` that record wrote")
	flow := f.String("flow", "", "`5-tuple` as list prints it: \"tcp 10.0.0.1:80 10.0.0.2:1234\"")
	from := f.String("from", "", "beginning of the `time` window, RFC 3339 (default: the flow's first packet)")
	to := f.String("to", "", "end of the `time` window (default: the flow's last packet)")
	f.Uint64Var(&opt.packets, "packets", 0, "`number` of the flow's packets in that window (default: as in flows.csv)")
	f.Uint64Var(&opt.seed, "seed", 1, "`seed` that record was given")
	if err := parse(f, args, &opt.dir); err != nil {
		return opt, err
	}
	if *flow == "" {
		return opt, errors.New("-flow is missing: a 5-tuple as list prints it, \"tcp 10.0.0.1:80 10.0.0.2:1234\"")
	}
	var errs [3]error
	opt.flow, errs[0] = parseName(*flow)
	opt.from, errs[1] = parseTime("-from", *from)
	opt.to, errs[2] = parseTime("-to", *to)
	return opt, errors.Join(errs[:]...)
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

// known completes a query from what the flow collector knows.
func (opt *queryOptions) known() error {
	flows, err := readFlows(opt.dir)
	if err != nil {
		return err
	}
	for _, f := range flows {
		if f.tuple != opt.flow {
			continue
		}
		if opt.packets == 0 {
			opt.packets = f.packets
		}
		if opt.from.IsZero() {
			opt.from = time.Unix(0, f.first)
		}
		if opt.to.IsZero() {
			opt.to = time.Unix(0, f.last)
		}
		return nil
	}
	if opt.packets == 0 || opt.from.IsZero() || opt.to.IsZero() {
		return fmt.Errorf("%s is not in flows.csv (colate list prints what is); for a flow that is not, give -packets, -from and -to", name(&opt.flow))
	}
	return nil
}

func query(opt queryOptions, stdout io.Writer) error {
	if err := opt.known(); err != nil {
		return err
	}
	var found [2]*colate.Subvector
	var read [2]colate.Reading
	for i := range found {
		store, err := openStore(opt.dir, i, colate.StoreOptions{ReadOnly: true})
		if err != nil {
			return err
		}
		if found[i], err = gather(store, opt, &read[i]); err != nil {
			return fmt.Errorf("%s: %w", points[i], err)
		}
		for _, d := range read[i].Damages {
			fmt.Fprintf(stdout, "damaged: %v\n", d)
		}
	}
	fmt.Fprintf(stdout, "%s, %d packets\n", name(&opt.flow), opt.packets)
	fmt.Fprintf(stdout, "  read %d + %d epochs, %d bytes\n", read[0].Epochs, read[1].Epochs, read[0].Bytes+read[1].Bytes)
	r, err := colate.Estimate(found[0], found[1], opt.packets)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "  mean %v, %.0f %% between %v and %v\n", duration(r.Mean),
		100*r.Interval.Confidence, duration(r.Interval.Low), duration(r.Interval.High))
	if r.DeviationKnown {
		fmt.Fprintf(stdout, "  deviation %v\n", duration(r.StdDev))
	} else {
		fmt.Fprintf(stdout, "  deviation lost in the noise of other flows\n")
	}
	fmt.Fprintf(stdout, "  from %d of the flow's %d counters\n", r.Counters, found[0].Config().PerFlow)
	return nil
}

// gather reads what a store has about the flow, under the Config of its
// latest epoch.
func gather(store *colate.Store, opt queryOptions, read *colate.Reading) (*colate.Subvector, error) {
	var config colate.Config
	known := false
	for e, err := range store.Epochs(opt.from.UnixNano(), opt.to.UnixNano()) {
		if err == nil {
			config, known = e.Config(), true
			break
		}
	}
	if !known {
		return nil, errors.New("no epoch overlaps that time")
	}
	v, err := colate.NewSubvector(config)
	if err != nil {
		return nil, err
	}
	if config.Identity != hashing.Fingerprint(opt.seed) {
		return nil, fmt.Errorf("-seed %d is not the one that was recorded with", opt.seed)
	}
	v.Reset(opt.flow.Flow(opt.seed))
	*read, err = store.Gather(v, opt.from.UnixNano(), opt.to.UnixNano())
	return v, err
}

// duration is a number of nanoseconds to be read by people.
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
