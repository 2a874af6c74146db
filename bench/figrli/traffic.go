package figrli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/queue/trace"
)

// rate is that of the link, in bits per second.
const rate = 10e9

// utilisations are those that the paper reports, and injected is the fraction
// of the packets that its adaptive injector adds there (section V-A).
var (
	utilisations = []float64{0.20, 0.55, 0.70, 0.88}
	injected     = []float64{0.10, 0.09, 0.048, 0.006}
)

// loadAxis is for figures by utilisation.
var loadAxis = plot.Axis{Label: "utilisation (%)", Min: 10, Max: 100}

// A kind of traffic.
type kind struct {
	name string // in sentences
	slug string // in names of files
	make func(load trace.Load, seed uint64) (queue.Source, error)
	all  int // number of packets there are, if limited
}

// enough returns the given number of packets of the kind or, for a recording,
// all: its beginning is not like the rest.
func (k *kind) enough(packets int) int { return max(packets, k.all) }

var (
	poisson = kind{name: "Poisson arrivals", slug: "poisson", make: func(load trace.Load, seed uint64) (queue.Source, error) {
		return trace.NewPoisson(trace.PoissonConfig{Load: load, Sizes: trace.IMIX, Flows: 1000, Seed: seed})
	}}
	onOff = kind{name: "on–off senders", slug: "onoff", make: func(load trace.Load, seed uint64) (queue.Source, error) {
		return trace.NewOnOff(trace.OnOffConfig{Load: load, Sizes: trace.IMIX, Senders: 2000, Peak: 1e9, On: 20e3, OnShape: 1.4, OffShape: 1.2,
			Seed: seed})
	}}
	heavyTailed = kind{name: "heavy-tailed flows", slug: "flows", make: func(load trace.Load, seed uint64) (queue.Source, error) {
		c := trace.DefaultFlows
		c.Load, c.Seed = load, seed
		return trace.NewFlows(c)
	}}
	drawn = []kind{poisson, onOff, heavyTailed}
)

// recordings is the place of the capture whose packets are replayed.
var recordings = filepath.Join("..", "shared", "data", "twopoint", "tbf400m_512k", "ingress.pcap.gz")

// recorded returns the traffic of a capture, or nil with a note if it is
// missing.
func recorded(run *experiment.Run) *kind {
	file, err := os.Open(recordings)
	if errors.Is(err, fs.ErrNotExist) {
		run.Note("Without recorded packets, which are not part of the project.")
		return nil
	}
	run.Try(err)
	defer file.Close()
	run.Outside(recordings)
	source := trace.NewRecorded(experiment.Try(trace.NewReader(file)), 1)
	var packets []queue.Packet
	var p queue.Packet
	for source.Next(&p) {
		packets = append(packets, p)
	}
	if err := source.Err(); err != nil {
		run.Try(fmt.Errorf("%s: %w", recordings, err))
	}
	slices.SortStableFunc(packets, func(a, b queue.Packet) int { return cmp.Compare(a.Time, b.Time) })
	bits := 0.0
	for i := range packets {
		bits += 8 * float64(packets[i].Bytes)
	}
	offered := bits * 1e9 / float64(packets[len(packets)-1].Time-packets[0].Time)
	return &kind{name: "recorded packets", slug: "recorded", all: len(packets), make: func(load trace.Load, _ uint64) (queue.Source, error) {
		return trace.Scale(trace.Replay(packets), offered/(load.Utilisation*float64(load.Rate)))
	}}
}

// everyKind returns the drawn kinds and, if it exists, the recorded one.
func everyKind(run *experiment.Run) []kind {
	if r := recorded(run); r != nil {
		return append(slices.Clone(drawn), *r)
	}
	return drawn
}

// source returns a kind's packets at a utilisation: the same for every
// experiment with one seed.
func (k *kind) source(run *experiment.Run, utilisation float64) queue.Source {
	return k.again(run, utilisation, 0)
}

// again returns another run's packets.
func (k *kind) again(run *experiment.Run, utilisation float64, again int) queue.Source {
	purpose := "traffic " + k.slug
	if again > 0 {
		purpose += fmt.Sprintf(", again %d", again)
	}
	return experiment.Try(k.make(trace.Load{Rate: rate, Utilisation: utilisation}, run.SeedOf(purpose)))
}

// identity returns a packet's digest, by its number.
func identity(number int32) hashing.Packet { return hashing.Word(1, uint64(number)) }
