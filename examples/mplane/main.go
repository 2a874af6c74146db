// Mplane plans which routers of a network to upgrade so that they measure,
// simulates the network packet by packet, makes one router slow, and shows how
// it is found.
//
//	go run ./examples/mplane                              # a backbone that ships with it
//	go run ./examples/mplane -upgrade 4                   # fewer routers measure
//	go run ./examples/mplane -map as1239.weights -upgrade 45
//
// A map is in Rocketfuel's format: a line for each link, with two routers'
// names and a routing weight. Routers that are not upgraded have a measurement
// server beside them, so that the way between two of them is measured from
// outside.
//
// Packets of many flows take shortest paths and wait in a queue at every
// router. An LDA counts them at both ends of every segment. Each router has
// its own clock, which nobody has set; if packets pass both ways, two monitors
// read each other's clocks from them. Every interval the monitors send reports
// to a station, and one report in a hundred is lost. From half-way on one router
// holds every packet for 300 µs more. The program prints which paths miss their
// target, which segments the station names, and the truth.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	_ "embed"

	"github.com/hoplag/hoplag/internal/programs"
	"github.com/hoplag/hoplag/lda/mplane"
)

//go:embed backbone.weights
var backbone string

func main() { programs.Main("mplane", run) }

// options are the options of the command line.
type options struct {
	file, slow                string
	upgrade, intervals, flows int
	seed                      uint64
	json                      bool
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var o options
	f := programs.NewFlags("mplane", "Mplane simulates a network, makes a router slow, and shows how it is found.", stderr)
	f.StringVar(&o.file, "map", "", "`file` of links and weights (default: the backbone that ships)")
	f.StringVar(&o.slow, "slow", "", "`router` that becomes slow (default: a busy one)")
	programs.Range(f, &o.upgrade, "upgrade", -1, 0, 1_000_000, "how many `routers` to upgrade; -1 means all")
	programs.Range(f, &o.intervals, "intervals", 24, 20, 1000, "how many intervals to simulate")
	programs.Range(f, &o.flows, "flows", 60, 1, 10_000, "how many flows cross the network")
	f.Uint64Var(&o.seed, "seed", 1, "`seed` of the random numbers")
	f.BoolVar(&o.json, "json", false, "print an object for each interval")
	if err := f.Parse(args); err != nil {
		return err
	}
	network, err := readMap(o.file)
	if err != nil {
		return err
	}
	w, err := plan(ctx, network, o)
	if err != nil {
		return err
	}
	rows := &programs.Rows{W: stdout, JSON: o.json}
	w.plans(rows)
	right, wrong := 0, 0
	for interval := 0; interval < o.intervals && ctx.Err() == nil && rows.Err == nil; interval++ {
		found, err := w.interval(uint64(interval))
		if err != nil {
			return err
		}
		if rows.JSON {
			rows.Object(found)
		}
		if interval < learning {
			continue
		}
		switch ok, named := found.judge(); {
		case ok:
			right++
		case named:
			wrong++
		}
		if !rows.JSON {
			rows.Printf("  %8d   %8d of %-6d   %9d   %-50s   %s\n", found.Interval, found.Missed, found.Paths, found.Unknown,
				text(found.Named, true), text(found.Exact, false))
		}
	}
	if !rows.JSON {
		rows.Printf("\nright in %d of %d intervals; a segment named that was as usual in %d\n", right, o.intervals-learning, wrong)
	}
	return errors.Join(rows.Err, ctx.Err())
}

// plan plans the upgrades, and builds the world that has them.
func plan(ctx context.Context, n *mplane.Network, o options) (*world, error) {
	if o.upgrade < 0 {
		o.upgrade = n.Routers()
	}
	if o.upgrade > n.Routers() {
		return nil, programs.Usage("-upgrade is %d, want at most %d, the routers of the map", o.upgrade, n.Routers())
	}
	upgrades, err := n.PlanUpgrades(ctx, mplane.UpgradeDemand{Count: o.upgrade})
	if err != nil {
		return nil, err
	}
	return newWorld(n, upgrades, o)
}

// readMap reads the map from a file, or the map that ships. The latter lists
// each link once.
func readMap(file string) (*mplane.Network, error) {
	if file != "" {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return mplane.ReadWeights(f)
	}
	var both strings.Builder
	for line := range strings.Lines(backbone) {
		both.WriteString(line)
		if f := strings.Fields(line); len(f) == 3 && f[0] != "#" {
			fmt.Fprintln(&both, f[1], f[0], f[2])
		}
	}
	return mplane.ReadWeights(strings.NewReader(both.String()))
}

// plans writes the upgrades and their effect.
func (w *world) plans(rows *programs.Rows) {
	p := w.upgrades
	if rows.JSON {
		return
	}
	rows.Printf("map         %d routers, %d links\n", w.network.Routers(), w.network.LinkCount())
	rows.Printf("upgraded    %d routers\n\n", len(p.Steps))
	rows.Printf("  routers upgraded   probe hop count   mean segment   the latest\n")
	const line = "  %16d   %15d   %7.2f hops   %s\n"
	rows.Printf(line, 0, p.Before.Hops, p.Before.MeanSegment, "")
	for k, step := range p.Steps {
		if k < 3 || k == len(p.Steps)-1 {
			rows.Printf(line, k+1, step.Coverage.Hops, step.Coverage.MeanSegment, w.network.Name(step.Router))
		} else if k == 3 {
			rows.Printf("  %16s\n", "…")
		}
	}
	rows.Printf("\nflows       %d, one LDA of %d bytes at each end of %d segments\n", len(w.flows), synopsis.EncodedSize(), len(w.ids))
	rows.Printf("clocks      up to 50 ms off and drifting by up to 20 ppm; 1 report in 100 is lost\n")
	rows.Printf("slow        %s, by %d µs, from interval %d on\n\n", w.network.Name(w.slow), slowBy/1000, w.slowFrom)
	rows.Printf("  interval   paths over target   not known   segments that the station names                      exact\n")
	rows.Printf("  0 to %d     learning what is usual\n", learning-1)
}

// judge compares what is named with the truth: whether the segment that explains
// the most paths is right, and whether a segment is named that was as usual.
func (f *finding) judge() (right, wrong bool) {
	for _, s := range f.Named {
		wrong = wrong || !slices.ContainsFunc(f.Exact, func(e suspect) bool { return e.Name == s.Name })
	}
	return !wrong && (len(f.Named) > 0) == (len(f.Exact) > 0), wrong
}

// text lists the first segments.
func text(list []suspect, excess bool) string {
	var all []string
	for k, s := range list {
		switch {
		case k == 2:
			return fmt.Sprintf("%s +%d more", strings.Join(all, ", "), len(list)-2)
		case excess:
			all = append(all, fmt.Sprintf("%s +%.0f µs", s.Name, s.Excess/1000))
		default:
			all = append(all, s.Name)
		}
	}
	if len(all) == 0 {
		return "–"
	}
	return strings.Join(all, ", ")
}
