// Mplane plans which routers of a network to upgrade so that they can measure, sends packets through the
// network, makes one router slow, and shows how it is found.
//
//	go run ./examples/mplane                              # a backbone that ships with it
//	go run ./examples/mplane -upgrade 4                   # fewer routers measure
//	go run ./examples/mplane -map as1239.weights -upgrade 45
//
// A map is in Rocketfuel's format: a line for each link, with two routers' names and a routing weight. Routers
// that are not upgraded have a measurement server beside them, so that the way between two of them is measured
// from outside.
//
// Packets of many flows take shortest paths, and an LDA counts them at both ends of every segment, by clocks
// that agree. Every interval the monitors send reports to a station, and one report in a hundred is lost. From
// half-way on, one router holds every packet for 300 µs longer. The program prints how many paths miss their
// target, which segments the station names, and the truth.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	_ "embed"

	"github.com/hoplag/hoplag/internal/programs"
	"github.com/hoplag/hoplag/lda/mplane"
)

//go:embed backbone.weights
var backbone string

func main() { programs.Main("mplane", run) }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var file string
	var upgrade, flows int
	rows := &programs.Rows{W: stdout}
	f := programs.NewFlags("mplane", "Mplane makes a router of a network slow, and shows how it is found.", stderr)
	f.StringVar(&file, "map", "", "`file` of links and weights (default: the backbone that ships)")
	programs.Range(f, &upgrade, "upgrade", 1_000_000, 0, 1_000_000, "number of `routers` to upgrade, or all if there are fewer")
	programs.Range(f, &flows, "flows", 60, 1, 10_000, "number of `flows` that cross the network")
	f.BoolVar(&rows.JSON, "json", false, "print an object for each interval")
	if err := f.Parse(args); err != nil {
		return err
	}
	n, err := readMap(file)
	if err != nil {
		return err
	}
	upgrades, err := n.PlanUpgrades(ctx, mplane.UpgradeDemand{Count: min(upgrade, n.Routers())})
	if err != nil {
		return err
	}
	w, err := newWorld(n, upgrades, flows)
	if err != nil {
		return err
	}
	if !rows.JSON {
		w.describe(rows, upgrades)
	}
	for i := 0; i < intervals && ctx.Err() == nil && rows.Err == nil; i++ {
		found, err := w.interval(ctx, uint64(i), i >= intervals/2)
		if err != nil || ctx.Err() != nil {
			return err
		}
		if rows.JSON {
			rows.Object(found)
		} else if i >= learning {
			rows.Printf("%8d   %5d of %-6d   %-70s   %s\n", i, found.Missed, found.Paths, text(found.Named), text(found.Exact))
		}
	}
	return rows.Err
}

// readMap reads the map from a file, or the map that ships.
func readMap(file string) (*mplane.Network, error) {
	if file == "" {
		return mplane.ReadWeights(strings.NewReader(backbone))
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return mplane.ReadWeights(f)
}

// describe writes the upgrades, their effect, and a heading.
func (w *world) describe(rows *programs.Rows, p mplane.UpgradePlan) {
	rows.Printf("map         %d routers\n", w.network.Routers())
	rows.Printf("upgraded    none: probes of %d hops, segments of %.2f\n", p.Before.Hops, float64(p.Before.Hops)/float64(p.Before.Probes))
	for k, s := range p.Steps {
		if k < 3 || k == len(p.Steps)-1 {
			rows.Printf("            %d, with %s: %d hops, %.2f\n", k+1, w.network.Name(s.Router), s.Hops, float64(s.Hops)/float64(s.Probes))
		}
	}
	rows.Printf("flows       %d, one LDA of %d bytes at each end of %d segments\n", len(w.flows), synopsis.EncodedSize(), len(w.ids))
	rows.Printf("slow        %s, by %.0f µs, from interval %d on\n\n", w.network.Name(w.slow), slowBy/1e3, intervals/2)
	rows.Printf("interval   over target   %-70s   exact\n", "segments that the station names")
}

// A finding is what the station says about an interval, and the truth.
type finding struct {
	Interval      uint64
	Paths, Missed int       // with a target, and over it
	Named, Exact  []suspect // segments
}

// A suspect is a segment, with the number of paths whose verdicts name it.
type suspect struct {
	Name     string
	Excess   float64 // ns
	BothWays bool    `json:",omitempty"` // Excess is that of the round trip
	Paths    int
}

// interval sends packets and reports, and asks the station about every flow's path: first what is usual, then
// whether the path keeps its target and, if not, what explains that.
func (w *world) interval(ctx context.Context, interval uint64, slow bool) (found finding, err error) {
	for _, f := range w.flows {
		if ctx.Err() != nil {
			return found, nil
		}
		for range packets {
			w.pass(f, (float64(interval)+w.random.Float64()/10)*float64(second), slow)
		}
	}
	if err := w.report(interval); err != nil {
		return found, err
	}
	named := map[mplane.SegmentID]suspect{}
	for _, f := range w.flows {
		path, err := w.station.Path(f.path, interval)
		if interval < learning {
			if err == nil { // no segment is missing
				f.usual.Add(path.Mean)
				f.target = f.usual.Mean() + above
			}
			continue
		}
		if found.Paths++; path.Mean > f.target {
			v, err := w.station.Localise(f.path, interval)
			if err != nil {
				return found, err
			}
			found.Missed++
			for _, s := range v.Suspects {
				named[s.Segment] = suspect{w.name(s.Segment), s.Excess, s.BothWays, named[s.Segment].Paths + 1}
			}
		}
	}
	found.Interval, found.Named = interval, ranked(named)
	if slow {
		found.Exact = w.truth()
	}
	return found, nil
}

// text lists the first segments.
func text(list []suspect) string {
	if len(list) == 0 {
		return "–"
	}
	var all []string
	for _, s := range list[:min(2, len(list))] {
		way := ""
		if s.BothWays {
			way = " both ways"
		}
		all = append(all, fmt.Sprintf("%s +%.0f µs%s", s.Name, s.Excess/1e3, way))
	}
	return fmt.Sprintf("%d: %s", len(list), strings.Join(all, ", "))
}
