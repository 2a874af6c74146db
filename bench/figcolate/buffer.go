package figcolate

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/perflow"
	"github.com/hoplag/hoplag/colate"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
)

var buffer = experiment.Experiment{
	Name:  "ours-colate-buffer",
	Group: ours,
	Title: "COLATE: what is lost is lost when delays are longest",
	Claim: "Before a full buffer the epochs in which all counters of a flow lost some packet are the slowest. Intervals hold these too, " +
		"and thin counters tell of a flow that loses packets in all others.",
	Weight: 25, Quick: 5,
	Measure: measureBuffer,
}

// A bufferLoad is traffic through a queue that loses what finds its buffer full.
type bufferLoad struct {
	name                  string
	buffer                float64 // s
	load, burst           float64 // of the link, and in bursts
	lasting, apart, epoch float64 // s: bursts, calm between them, and COLATE's epochs
}

var bufferLoads = []bufferLoad{
	{"20 ms of buffer, bursts of 1.3 × the link for 0.1 s", 0.02, 0.7, 1.3, 0.1, 1, 0.1},
	{"20 ms, 2 × for 0.05 s", 0.02, 0.7, 2, 0.05, 0.5, 0.1},
	{"50 ms, 1.5 × for 0.3 s", 0.05, 0.7, 1.5, 0.3, 2, 0.2},
	{"5 ms, 1.5 × for 0.1 s", 0.005, 0.9, 1.5, 0.1, 0.2, 0.1},
}

const (
	bufferRate  = 10_000 // packets a second where there is no burst
	bufferBig   = 10     // flows of a twentieth
	bufferSmall = 300    // flows of the rest
)

// bufferFlow draws a packet's flow: the first has four packets in ten.
func bufferFlow(rng *rand.Rand) int {
	switch x := rng.Float64(); {
	case x < 0.4:
		return 0
	case x < 0.8:
		return 1 + rng.IntN(bufferBig)
	}
	return 1 + bufferBig + int(bufferSmall*rng.Float64()*rng.Float64())
}

// pass lets two points record the traffic, and accumulates it.
func (l *bufferLoad) pass(run *experiment.Run, rng *rand.Rand, c colate.Config, seconds float64) (flows []hourFlow, all *differs) {
	flows = make([]hourFlow, 1+bufferBig+bufferSmall)
	for i := range flows {
		flows[i].key = hashing.Flow(rng.Uint64())
	}
	all = newDiffers(c)
	now, queue, next, until := 0.0, 0.0, l.apart*rng.ExpFloat64(), 0.0
	for bursting := false; now < seconds; {
		rate := float64(bufferRate)
		if bursting {
			rate *= l.burst / l.load
		}
		gap := rng.ExpFloat64() / rate
		now += gap
		queue = max(queue-gap, 0)
		switch {
		case !bursting && now > next:
			bursting, until = true, now+l.lasting*(0.5+rng.Float64())
		case bursting && now > until:
			bursting, next = false, now+l.apart*rng.ExpFloat64()
		}
		f, packet, sent := &flows[bufferFlow(rng)], hashing.Packet(rng.Uint64()), int64(now*1e9)
		all.at(0, sent).Update(f.key, packet, sent)
		if queue <= l.buffer {
			queue += l.load / bufferRate
			at := sent + int64(queue*1e9)
			all.at(1, at).Update(f.key, packet, at)
			f.delays.Add(float64(at - sent))
		} else {
			all.lost++
		}
		all.sent++
	}
	run.Alive()
	return flows, all
}

// A differs keeps the epochs of both points.
type differs struct {
	config     colate.Config
	epochs     [][2]*colate.Recorder
	sent, lost float64
}

func newDiffers(c colate.Config) *differs { return &differs{config: c} }

// at is the epoch of a time at a point.
func (d *differs) at(point int, t int64) *colate.Recorder {
	for n := int(t / d.config.Period); n >= len(d.epochs); {
		d.epochs = append(d.epochs, [2]*colate.Recorder{experiment.Try(colate.New(d.config)), experiment.Try(colate.New(d.config))})
	}
	return d.epochs[t/d.config.Period][point]
}

func measureBuffer(run *experiment.Run) {
	table := run.Table("", "Flows before a full buffer, and their 95 % intervals", "buffer", "lost", "thin counters", "flows", "number",
		"no answer", "median error", "intervals that hold", "median half width")
	seconds, runs := float64(run.Pick(5, 20)), run.Pick(1, 5)
	for _, l := range experiment.Each(run, bufferLoads) {
		for _, thin := range []uint8{0, 5} {
			b := newBufferScores()
			for range runs {
				c := colate.DefaultConfig
				c.Identity, c.Counters, c.Thin, c.Shift, c.Period = run.SeedOf("buffer"), 1000, thin, 0, int64(l.epoch*1e9)
				flows, all := l.pass(run, run.Rand(fmt.Sprint(l.name, b.runs)), c, seconds)
				b.ask(run, flows, all)
			}
			b.tell(run, table, l.name, thin)
		}
	}
	run.Config("packets a second", bufferRate, "seconds", seconds, "runs", runs, "loads", bufferLoads)
	run.Note("One flow has 40 % of the packets, ten 4 % each, the others the rest. Delays are those of a queue with a buffer of so many "+
		"milliseconds, which loses what finds it full. 1,000 counters; the epochs are of 100 ms, or 200.",
		"What is not answered is refused: half of the packets and more were in epochs that none of the flow's counters tells of.")
}

// bufferScores are how the flows of each class fared.
type bufferScores struct {
	runs       int
	sent, lost float64
	errors     [3]*perflow.Errors
	hits, of   [3]int
	widths     [3][]float64
}

var bufferClasses = []string{"of 40 %", "of 4 %", "others"}

func newBufferScores() *bufferScores {
	b := new(bufferScores)
	for k := range b.errors {
		b.errors[k] = perflow.New("", perflow.LeftOut)
	}
	return b
}

// ask asks for all flows of 20 packets and more.
func (b *bufferScores) ask(run *experiment.Run, flows []hourFlow, all *differs) {
	b.runs++
	b.sent += all.sent
	b.lost += all.lost
	var records []joint.FlowRecord
	var asked []int
	for i := range flows {
		if n := flows[i].delays.N(); n >= 20 {
			records, asked = append(records, joint.FlowRecord{Flow: flows[i].key, Packets: float64(n)}), append(asked, i)
		}
	}
	a := experiment.Try(colate.NewAccumulator(all.config, records))
	for _, pair := range all.epochs {
		experiment.Check(a.Add(pair[0], pair[1]))
		run.Alive()
	}
	for k, i := range asked {
		class := 2
		if i <= bufferBig {
			class = min(i, 1)
		}
		mean := flows[i].delays.Mean()
		r, err := a.Estimate(k)
		if errors.Is(err, estimate.ErrNoSamples) {
			b.errors[class].Add(1, math.NaN(), mean)
			continue
		}
		experiment.Check(err)
		b.errors[class].Add(1, r.Mean, mean)
		interval := r.MeanInterval(confidence)
		b.widths[class] = append(b.widths[class], (interval.High-interval.Low)/2/mean)
		if b.of[class]++; interval.Contains(mean) {
			b.hits[class]++
		}
	}
}

// tell adds the rows.
func (b *bufferScores) tell(run *experiment.Run, table *experiment.Table, name string, thin uint8) {
	any := perflow.Class{Least: 1, Most: perflow.Unlimited}
	answers, hits := 0, 0
	for k, class := range bufferClasses {
		e := b.errors[k]
		answers += b.of[k]
		hits += b.hits[k]
		held, width := "-", "-"
		if b.of[k] > 0 {
			held = experiment.Percent(float64(b.hits[k]) / float64(b.of[k]))
			width = experiment.Percent(perflow.Quantile(b.widths[k], 0.5))
		}
		table.Add(name, experiment.Percent(b.lost/b.sent), fmt.Sprint(thin), class, fmt.Sprint(b.of[k]+e.Missing(any)),
			fmt.Sprint(e.Missing(any)), experiment.Percent(e.Median(any)), held, width)
	}
	share := float64(hits) / float64(max(answers, 1))
	run.Keeps(fmt.Sprintf("%s, %d thin counters: 95 %% intervals of %d flows that hold", name, thin, answers), "≥ 95 %",
		fmt.Sprintf("%.1f %%", 100*share), share >= confidence)
}
