package figrli

import (
	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/queue/trace"
)

var (
	whole = queue.LinkConfig{Rate: rate}
	marks = queue.QueueConfig{RED: queue.REDConfig{Min: 100, Max: 500, Weight: 0.02, Probability: 0.1, Typical: 1500, Mark: true}}
)

// hops are what packets pass instead of a link.
var hops = map[string]func(*experiment.Run) queue.Hop{
	"link, then jitter of 1 µs":              jittery(queue.JitterConfig{Mean: 1000}),
	"link, then jitter of 1 µs, overtaking":  jittery(queue.JitterConfig{Mean: 1000, Reorder: true}),
	"two links, cross traffic at the second": twoLinks,
}

func jittery(c queue.JitterConfig) func(*experiment.Run) queue.Hop {
	return func(run *experiment.Run) queue.Hop {
		c.Seed = run.SeedOf("jitter")
		return experiment.Try(queue.NewChain(experiment.Try(queue.NewFIFO(whole)), experiment.Try(queue.NewJitter(c))))
	}
}

func twoLinks(run *experiment.Run) queue.Hop {
	chain := experiment.Try(queue.NewChain(experiment.Try(queue.NewFIFO(whole)), experiment.Try(queue.NewFIFO(whole))))
	experiment.Check(chain.Join(1, poisson.source(run, 0.3, 0)))
	return chain
}

// closedLoop is senders whose transfers of 50 packets, of about five round
// trips, produce a given load if nothing holds them up.
var closedLoop = kind{name: "senders that heed loss", slug: "closed", make: func(load trace.Load, seed uint64) (queue.Source, error) {
	c := queue.ClosedConfig{Senders: 100, Bytes: 1500, Return: 200_000, Gap: 1200, Window: 64, Transfer: 50, Seed: seed}
	each := c.Transfer * float64(c.Bytes) * 8e9 / (load.Utilisation * float64(load.Rate)) // ns, with a single sender
	c.Pause = max(float64(c.Senders)*each-5*float64(c.Return), 0)
	return queue.NewClosed(c)
}}
