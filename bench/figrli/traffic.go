package figrli

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/queue/trace"
)

// rate is that of the link, in bits per second.
const rate = 10e9

// A kind of traffic.
type kind struct {
	name string // in sentences
	slug string // in names of files
	open func(load trace.Load, seed uint64) (queue.Source, error)
}

var (
	poisson = kind{name: "Poisson arrivals", slug: "poisson", open: func(load trace.Load, seed uint64) (queue.Source, error) {
		return trace.NewPoisson(trace.PoissonConfig{Load: load, Sizes: trace.IMIX, Flows: 1000, Seed: seed})
	}}
	onOff = kind{name: "on–off senders", slug: "onoff", open: func(load trace.Load, seed uint64) (queue.Source, error) {
		return trace.NewOnOff(trace.OnOffConfig{Load: load, Sizes: trace.IMIX, Senders: 2000, Peak: 1e9, On: 20e3, OnShape: 1.4, OffShape: 1.2,
			Seed: seed})
	}}
	heavyTailed = kind{name: "heavy-tailed flows", slug: "flows", open: func(load trace.Load, seed uint64) (queue.Source, error) {
		c := trace.DefaultFlows
		c.Load, c.Seed = load, seed
		return trace.NewFlows(c)
	}}
	drawn = []kind{poisson, onOff, heavyTailed}
	// eager senders send faster than the link.
	eager = kind{name: "eager senders", slug: "eager", open: func(load trace.Load, seed uint64) (queue.Source, error) {
		c := trace.DefaultFlows
		c.Load, c.Seed, c.Access = load, seed, 4*rate
		return trace.NewFlows(c)
	}}
)

// paced are a hundred senders, each as regular as a clock.
var paced = kind{name: "paced senders", slug: "paced", open: func(load trace.Load, seed uint64) (queue.Source, error) {
	const bytes = 1000
	p := &pacing{next: make([]int64, 100), period: int64(100 * bytes * 8e9 / (load.Utilisation * float64(load.Rate))), bytes: bytes}
	random := rand.New(rand.NewPCG(seed, 'p'))
	for i := range p.next {
		p.next[i] = random.Int64N(p.period)
	}
	slices.Sort(p.next)
	return p, nil
}}

// A pacing has the times at which the senders send next, in order from turn on.
type pacing struct {
	next   []int64
	period int64
	turn   int
	bytes  int32
}

// Next returns the next packet.
func (p *pacing) Next(packet *queue.Packet) bool {
	now := p.next[p.turn]
	*packet = queue.Packet{Flow: hashing.Flow(hashing.Mix(uint64(p.turn), 1)), Sent: now, Time: now, Bytes: p.bytes}
	p.next[p.turn] += p.period
	p.turn = (p.turn + 1) % len(p.next)
	return true
}

// source returns a kind's packets at a utilisation, of one of several runs: the
// same for every experiment with one seed.
func (k *kind) source(run *experiment.Run, utilisation float64, again int) queue.Source {
	seed := run.SeedOf(fmt.Sprintf("traffic %s, again %d", k.slug, again))
	return experiment.Try(k.open(trace.Load{Rate: rate, Utilisation: utilisation}, seed))
}
