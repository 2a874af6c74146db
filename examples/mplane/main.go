// Mplane plans which routers of a network to upgrade so that they measure,
// simulates the network packet by packet, makes one router slow, and shows how
// it is found.
//
//	go run ./examples/mplane                              # a backbone that ships with it
//	go run ./examples/mplane -upgrade 4 -svg map.svg      # fewer routers measure; draw the map
//	go run ./examples/mplane -map as1239.weights -upgrade 45
//
// A map is in Rocketfuel's format: a line for each link, with two routers'
// names and a routing weight. Routers that are not upgraded have a measurement
// server beside them, so that the way between two of them is measured from
// outside.
//
// Packets of many flows take shortest paths and wait in a queue at every
// router. An LDA counts them at both ends of every segment. Each router has
// its own clock, which nobody has set. If packets pass both ways, two monitors
// read each other's clocks from them. Every interval the monitors send reports
// to a station, and one report in a hundred is lost. The station knows the
// plan and nothing else. From half-way on one router, or the one that -slow
// names, holds every packet for 300 µs more. The program prints which paths
// miss their target, which segments the station names, and the truth.
//
// With -json it prints an object for each interval, for programs. With -svg it
// draws the map, with every segment coloured by how much longer it takes than
// usual.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	_ "embed"

	"github.com/hoplag/hoplag/lda/mplane"
)

//go:embed backbone.weights
var backbone string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		fmt.Fprintln(os.Stderr, "mplane:", err)
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "mplane:", err)
		os.Exit(1)
	}
}

// errUsage is wrapped by what is wrong with the command line.
var errUsage = errors.New("usage")

// options are the options of the command line.
type options struct {
	file, svg, slow           string
	upgrade, intervals, flows int
	seed                      uint64
	json                      bool
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("mplane", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.file, "map", "", "`file` of links and weights (default: the backbone that ships)")
	flags.StringVar(&o.svg, "svg", "", "`file` to draw the map into")
	flags.StringVar(&o.slow, "slow", "", "`router` that becomes slow (default: a busy upgraded one)")
	flags.IntVar(&o.upgrade, "upgrade", -1, "how many `routers` to upgrade (default: all)")
	flags.IntVar(&o.intervals, "intervals", 24, "how many intervals to simulate, 20 to 1000")
	flags.IntVar(&o.flows, "flows", 60, "how many flows cross the network, 1 to 10000")
	flags.Uint64Var(&o.seed, "seed", 1, "`seed` of the random numbers")
	flags.BoolVar(&o.json, "json", false, "print an object for each interval")
	flags.Usage = func() {
		fmt.Fprintln(stderr, "Mplane simulates a network, makes a router slow, and shows how it is found.")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return o, err
	} else if err != nil {
		return o, fmt.Errorf("%w: %v", errUsage, err)
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("%w: argument %q, want none", errUsage, flags.Arg(0))
	case o.intervals < 20 || o.intervals > 1000:
		return o, fmt.Errorf("%w: -intervals is %d, want 20 to 1000", errUsage, o.intervals)
	case o.flows < 1 || o.flows > 10_000:
		return o, fmt.Errorf("%w: -flows is %d, want 1 to 10000", errUsage, o.flows)
	}
	return o, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	network, err := readMap(o.file)
	if err != nil {
		return err
	}
	if o.upgrade < 0 {
		o.upgrade = network.Routers()
	}
	if o.upgrade > network.Routers() {
		return fmt.Errorf("%w: -upgrade is %d, want at most %d, the routers of the map", errUsage, o.upgrade, network.Routers())
	}
	upgrades, err := network.PlanUpgrades(ctx, mplane.UpgradeDemand{Count: o.upgrade})
	if err != nil {
		return err
	}
	world, err := newWorld(network, upgrades, o)
	if err != nil {
		return err
	}
	out := &output{w: stdout, json: o.json, world: world}
	out.plan(upgrades)
	var last finding
	for interval := 0; interval < o.intervals && ctx.Err() == nil && out.err == nil; interval++ {
		if last, err = world.interval(uint64(interval)); err != nil {
			return err
		}
		out.row(last)
	}
	out.end()
	if out.err == nil && o.svg != "" {
		out.err = os.WriteFile(o.svg, world.picture(last), 0o644)
	}
	return errors.Join(out.err, ctx.Err())
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
