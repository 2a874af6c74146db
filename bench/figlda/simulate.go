package figlda

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/lda/paper"
	"github.com/hoplag/hoplag/queue"
)

// How numbers are written in claims and tables.
var percent, number = experiment.Percent, experiment.Number

const (
	meanDelay = 200       // ns
	interval  = 1e9       // ns
	sumBits   = 40        // as in section V
	alpha     = 0.5       // of the sampling probability, section III-D
	rows      = 1024      // of all banks together
	runs      = 10        // with different hashes, per point
	bound     = 0.98      // confidence of eq. (1) in section IV
	fullSize  = 5_000_000 // packets
	quickSize = fullSize / 10
)

// A Law is a distribution of delays from the paper, in ns, by its quantiles.
type Law struct {
	Name     string
	heavy    bool // Pareto
	quantile func(u float64) float64
}

// Laws are all distributions of the paper, Weibull 0.6 (scale 0.133 µs) first:
// it has the largest deviation, and most of the paper's figures use it.
var Laws = []Law{weibull(0.6), weibull(0.8), pareto(3), pareto(5)}

func weibull(shape float64) Law {
	scale := meanDelay / math.Gamma(1+1/shape)
	return Law{"Weibull " + number(shape), false, func(u float64) float64 { return scale * math.Pow(-math.Log1p(-u), 1/shape) }}
}

func pareto(shape float64) Law {
	scale := meanDelay * (shape - 1) / shape
	return Law{"Pareto " + number(shape), true, func(u float64) float64 { return scale * math.Pow(1-u, -1/shape) }}
}

// losses are the loss rates of Figs. 4 and 5.
var losses = []float64{0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2}

// A Trace is the packets of one interval before any is lost: their delays in
// ns, in the order of sending. A packet's number is its identity.
type Trace struct {
	Law    Law
	Delays []int32
}

// NewTrace draws as many delays as the run's size requires; the same for every experiment with one seed. What
// rounding leaves goes to the next one, so that their sum is exact to 1 ns.
func NewTrace(run *experiment.Run, law Law) *Trace {
	random, part := rand.NewPCG(run.SeedOf("delays "+law.Name), 'd'), 0.0
	t := &Trace{Law: law, Delays: make([]int32, run.Pick(quickSize, fullSize))}
	for i := range t.Delays {
		delay := law.quantile((float64(random.Uint64()>>11)+0.5)/(1<<53)) + part
		whole := math.Floor(delay)
		part = delay - whole
		t.Delays[i] = int32(min(int64(whole), math.MaxInt32))
	}
	return t
}

// A Passage is a trace some of whose packets were lost on the way.
type Passage struct {
	*Trace
	Lost     []bool
	Losses   int
	Truth    estimate.Delay // of the packets that arrived; StdDev is that of these packets, not of the law
	LossRate float64
}

// Lose loses a share of the packets, one by one.
func (t *Trace) Lose(run *experiment.Run, share float64) *Passage {
	loss := experiment.Try(queue.NewLoss(queue.LossConfig{Probability: share}, run.SeedOf("loss "+number(share))))
	p := &Passage{Trace: t, Lost: make([]bool, len(t.Delays))}
	var arrived estimate.Moments
	for i, d := range t.Delays {
		if loss.Drop() {
			p.Lost[i] = true
			p.Losses++
			continue
		}
		arrived.Add(float64(d))
	}
	p.Truth = experiment.Try(arrived.Delay())
	p.Truth.StdDev = math.Sqrt(arrived.PopulationVariance())
	p.LossRate = float64(p.Losses) / float64(len(t.Delays))
	return p
}

// Measure puts an aggregator at each end. Config.Identity distinguishes the runs. The aggregators see only the
// share presampled of all packets: 1, unless the sampling probability is not to be a power of two.
func (p *Passage) Measure(c lda.Config, presampled float64) (up, down *lda.Aggregator) {
	up = experiment.Try(lda.New(c))
	down = experiment.Try(lda.New(c))
	threshold := hashing.Threshold(presampled)
	distance := int64(interval) / int64(len(p.Delays))
	for i, delay := range p.Delays {
		id := hashing.Word(c.Identity, uint64(i))
		if hashing.Sampled(uint64(id), threshold) == 0 {
			continue
		}
		sent := int64(i) * distance
		up.Update(id, sent)
		if !p.Lost[i] {
			down.Update(id, sent+int64(delay))
		}
	}
	return up, down
}

// config returns one bank for a number of packets lost, and the fraction of all packets that it is to see, so
// that p is exactly αm/(L+1).
func config(lost int) (c lda.Config, presampled float64) {
	c.SumBits = sumBits
	c.Banks[0].Rows = rows
	return c, min(1, alpha*rows/float64(lost+1))
}

// A point is the result of some runs at one loss rate.
type point struct {
	config     lda.Config // except for its seed
	presampled float64    // share of the packets shown to it
	truth      estimate.Delay
	received   int
	results    []lda.Result
	means      estimate.Moments // relative error of the mean
	errors     []float64        // the same, by run
	sample     estimate.Moments // effective sample size
	paper      estimate.Moments // relative error of the deviation by eq. (5)
	ours       estimate.Moments // the same, count-conditioned
	expected   float64          // effective sample size
}

// measure runs one bank with a number of different hashes. A deviation
// whose square came out negative counts as 0.
func (p *Passage) measure(run *experiment.Run) *point {
	c, presampled := config(p.Losses)
	pt := &point{config: c, presampled: presampled, truth: p.Truth, received: len(p.Delays) - p.Losses}
	pt.expected, _ = c.Expect(presampled*float64(len(p.Delays)), p.LossRate)
	for r := range runs {
		c.Identity = run.SeedOf("hash " + number(float64(r)))
		up, down := p.Measure(c, presampled)
		result := experiment.Try(lda.Estimate(up, down))
		collapsed := experiment.Try(paper.CollapsedVariance(up, down))
		pt.results = append(pt.results, result)
		pt.add(result.Delay, p)
		pt.paper.Add(estimate.RelativeError(math.Sqrt(max(0, collapsed)), p.Truth.StdDev))
		pt.ours.Add(estimate.RelativeError(result.StdDev, p.Truth.StdDev))
	}
	return pt
}

// add adds the mean of a run and the number of its packets.
func (pt *point) add(d estimate.Delay, p *Passage) {
	off := estimate.RelativeError(d.Mean, p.Truth.Mean)
	pt.means.Add(off)
	pt.errors = append(pt.errors, off)
	pt.sample.Add(float64(d.N))
}

// chance returns how far the mean of the absolute errors of a number of runs may be, by chance, from that of
// very many runs, as a fraction: two standard errors, for normal errors.
func chance(runs int) float64 { return 2 * math.Sqrt((math.Pi/2-1)/float64(runs)) }

// narrow is a law that is not in the paper: a path on which delays vary little
// around what light and switches take.
var narrow = Law{Name: "200 ± 10 ns", quantile: func(u float64) float64 { return meanDelay + 10*(2*u-1) }}

// pareto3 is the law without a fourth moment, by its index among all.
const pareto3 = 2

// allLaws returns the paper's four and the narrow one.
func allLaws() []Law { return append(slices.Clone(Laws), narrow) }

// A sweep holds what was measured at every loss rate, by law.
type sweep struct {
	names []string
	found [][]*point // by name, then by loss rate
}

// table shows a value by loss rate, for each law.
func (s *sweep) table(run *experiment.Run, title string, format func(float64) string, value func(*point) float64) {
	t := run.Table(title, "by loss rate")
	for _, loss := range losses {
		t.Columns = append(t.Columns, percent(loss))
	}
	for k, points := range s.found {
		row := []string{s.names[k]}
		for _, pt := range points {
			row = append(row, format(value(pt)))
		}
		t.Row(row)
	}
}

// Errors, on average over runs: of the mean, and of the deviation by eq. (5) and by ours.
func ofMean(pt *point) float64  { return pt.means.Mean() }
func ofPaper(pt *point) float64 { return pt.paper.Mean() }
func ofOurs(pt *point) float64  { return pt.ours.Mean() }

// worst returns the greatest value of one law at the loss rates that count.
func (s *sweep) worst(k int, counts func(loss float64) bool, value func(*point) float64) float64 {
	worst := 0.0
	for i, loss := range losses {
		if counts(loss) {
			worst = max(worst, value(s.found[k][i]))
		}
	}
	return worst
}
