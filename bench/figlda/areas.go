package figlda

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/perflow"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/lda"
)

// Areas compares reports with the truth where packets cross their ends.
var Areas = experiment.Experiment{
	Name: "ours-areas", Title: "Packets that cross the cuts",
	Claim: "Areas are right whatever the delay: without loss exact, with losses inside their intervals, " +
		"whose half-widths are a few times their errors; for all packets by LDA, and for flows by LDS and COLATE.",
	Weight: 600, Quick: 35, Measure: measureAreas,
}

const (
	areaCut    = 100 * time.Millisecond
	areaWindow = 10 // cuts a report
)

// An areaLaw draws delays, in seconds, of packets sent at a time.
type areaLaw struct {
	name  string
	mean  float64
	start func(random *rand.Rand) func(now float64) (delay float64, slow bool)
}

// exponential delays have this mean.
func exponential(mean float64) areaLaw {
	return areaLaw{"exponential", mean, func(random *rand.Rand) func(float64) (float64, bool) {
		return func(float64) (float64, bool) { d := mean * random.ExpFloat64(); return d, d > 2*mean }
	}}
}

// bimodal delays are exponential around 5 ms, except for a share of slow ones.
func bimodal(share, slow float64) areaLaw {
	name := fmt.Sprintf("5 ms, and %g s for %g %%", slow, 100*share)
	return areaLaw{name, 0.005 + share*slow, func(random *rand.Rand) func(float64) (float64, bool) {
		return func(float64) (float64, bool) {
			if random.Float64() < share {
				return slow, true
			}
			return 0.005 * random.ExpFloat64(), false
		}
	}}
}

func areaLaws() []areaLaw {
	return []areaLaw{
		exponential(0.001), exponential(0.005), exponential(0.1), exponential(0.3), exponential(3),
		bimodal(0.02, 0.3), bimodal(0.02, 1), bimodal(0.002, 1), bimodal(0.002, 3),
		{"lognormal, σ 2", 0.005, func(random *rand.Rand) func(float64) (float64, bool) {
			return func(float64) (float64, bool) { d := 0.005 * math.Exp(2*random.NormFloat64()-2); return d, d > 0.01 }
		}},
		{"spells × 10", 0.0275, func(random *rand.Rand) func(float64) (float64, bool) {
			until, busy := 0.0, false
			return func(now float64) (float64, bool) {
				if now > until {
					busy, until = !busy, now+0.3*random.ExpFloat64()
				}
				if busy {
					return 0.05 * random.ExpFloat64(), true
				}
				return 0.005 * random.ExpFloat64(), false
			}
		}},
		{"a step × 20", 0.05, func(random *rand.Rand) func(float64) (float64, bool) {
			return func(now float64) (float64, bool) {
				if now > 15 {
					return 0.1 * random.ExpFloat64(), true
				}
				return 0.005 * random.ExpFloat64(), false
			}
		}},
		{"a queue", 0.01, func(random *rand.Rand) func(float64) (float64, bool) {
			wait, last := 0.0, 0.0 // a random walk that stays positive
			return func(now float64) (float64, bool) {
				wait += 0.1 * math.Sqrt(now-last) * random.NormFloat64()
				wait -= 0.5 * wait * (now - last)
				last, wait = now, math.Abs(wait)
				return 0.001 + wait, wait > 0.1
			}
		}},
	}
}

// An areaLoss says how packets are lost.
type areaLoss struct {
	name  string
	share float64
	start func(random *rand.Rand) func(now float64, slow bool) bool
}

func areaLosses(shares []float64) (all []areaLoss) {
	all = append(all, areaLoss{"none", 0, func(*rand.Rand) func(float64, bool) bool {
		return func(float64, bool) bool { return false }
	}})
	for _, share := range shares {
		all = append(all,
			areaLoss{"even", share, func(random *rand.Rand) func(float64, bool) bool {
				return func(float64, bool) bool { return random.Float64() < share }
			}},
			areaLoss{"bursts", share, func(random *rand.Rand) func(float64, bool) bool {
				until, next := 0.0, 0.0 // half of 20 ms
				return func(now float64, _ bool) bool {
					if now > next {
						until, next = now+0.02, now+0.02+random.ExpFloat64()*0.01/share
					}
					return now < until && random.Float64() < 0.5
				}
			}},
			areaLoss{"of the slow", share, func(random *rand.Rand) func(float64, bool) bool {
				return func(_ float64, slow bool) bool { return slow && random.Float64() < min(1, 4*share) }
			}})
	}
	return all
}

// areaScore is how the reports of one kind of traffic fared.
type areaScore struct {
	reports, refused, outside95, outside999 int
	errors, halves, exact                   []float64
	ofErrors, ofHalves                      []float64 // of the mean of those received
	ofOutside                               int
}

// runAreas passes some seconds of traffic, several times, and judges each report.
func runAreas(run *experiment.Run, law areaLaw, loss areaLoss, rate float64, seconds, times int) *areaScore {
	s := new(areaScore)
	for k := range times {
		t := newAreaTraffic(run.Rand(fmt.Sprint(law.name, law.mean, rate, loss.name, loss.share, k)), law, loss, rate, seconds, nil)
		t.pass(lda.DefaultConfig, false, func(total *lda.Accumulator, report, _ int) { s.judge(total, &t.truth[report]) })
	}
	return s
}

// judge compares a report with the truth.
func (s *areaScore) judge(total *lda.Accumulator, truth *areaTruth) {
	if truth.received == 0 {
		return
	}
	s.reports++
	r, err := total.Estimate()
	if err != nil {
		s.refused++
		return
	}
	way, delays := 1e9*truth.way/truth.received, 1e9*truth.delays/truth.received
	i, j := r.MeanInterval(0.95), r.MeanInterval(0.999)
	for _, i := range []*estimate.Interval{&i, &j} { // stamps are whole nanoseconds
		i.Low -= 2e-6 * delays
		i.High += 2e-6 * delays
	}
	if !i.Contains(delays) || !i.Contains(way) && math.Abs(r.Mean-way) > 1e-5*way {
		s.outside95++
	}
	if !j.Contains(delays) {
		s.outside999++
	}
	s.errors = append(s.errors, math.Abs(r.Mean-delays)/delays)
	s.exact = append(s.exact, estimate.RelativeError(r.Mean, way))
	s.halves = append(s.halves, (i.High-i.Low)/2/delays)
	mean, of := r.OfReceived(0.95)
	if delays < of.Low-2e-6*delays || delays > of.High+2e-6*delays {
		s.ofOutside++
	}
	s.ofErrors = append(s.ofErrors, math.Abs(mean-delays)/delays)
	s.ofHalves = append(s.ofHalves, (of.High-of.Low)/2/delays)
}

// counted reports whether intervals should be narrow: at 10⁵ packets a second and losses up to 1 %.
func counted(rate float64, loss areaLoss) bool { return rate == 1e5 && loss.share <= 0.01 }

// areaSeconds returns how long traffic passes, and how often, and areaLossesAt what is lost of it: the highest
// rate takes longest. The median of n normal errors varies by 1.17/√n: 140 determine it to 10 %.
func areaSeconds(run *experiment.Run, rate float64, loss areaLoss) (seconds, times int) {
	if rate == 1e6 {
		return 10, 1
	} else if counted(rate, loss) && !run.Quick {
		return 60, 3
	}
	return run.Pick(12, 20), 1
}

func areaLossesAt(rate float64, shares []float64) []areaLoss {
	return slices.DeleteFunc(areaLosses(shares), func(l areaLoss) bool {
		return rate == 1e6 && l.share > 0 && (l.share != 0.01 || l.name != "even")
	})
}

// An areaTally adds up who was outside, and rows of a table with more outside than chance explains.
type areaTally struct{ outside, answered, over, rows int }

func (t *areaTally) add(s *areaScore) {
	n := s.reports - s.refused
	t.outside, t.answered, t.rows = t.outside+s.outside95, t.answered+n, t.rows+1
	if experiment.Covers(uint64(n-s.outside95), uint64(n), 0.95, 0.998) == experiment.Loss { // 0.001 at either side
		t.over++
	}
}

// An areaTable is what LDA says: how many of either mean are outside, and how narrow their intervals are at 10⁵
// packets a second and losses up to 1 %.
type areaTable struct {
	table                  *experiment.Table
	all, received          areaTally
	worst, wide            float64   // error to the time on the way without loss, and half-width over error
	rows, narrow, narrowOf int       // those with at most four times the error, by either mean
	can, canOf             int       // those in which 95 % of the errors are within that
	over, overOf           []float64 // half-widths over that which 95 % of the errors are within
}

func (t *areaTable) add(law areaLaw, rate float64, loss areaLoss, s *areaScore) {
	median := func(x []float64) float64 { return perflow.Quantile(x, 0.5) }
	most := func(x []float64) float64 { return perflow.Quantile(x, 0.95) }
	e, exact, half, ofE, ofHalf := median(s.errors), median(s.exact), median(s.halves), median(s.ofErrors), median(s.ofHalves)
	t.table.Row(law.name, experiment.Duration(1e9*law.mean), rate, fmt.Sprintf("%s %s", percent(loss.share), loss.name), s.reports, s.refused,
		s.outside95, s.outside999, percent(exact), percent(e), percent(half), experiment.Number(half/e), experiment.Number(most(s.errors)/e),
		s.ofOutside, percent(ofE), percent(ofHalf), experiment.Number(ofHalf/ofE), experiment.Number(most(s.ofErrors)/ofE))
	t.all.add(s)
	t.received.add(&areaScore{reports: s.reports, refused: s.refused, outside95: s.ofOutside})
	if loss.share == 0 && law.mean < 1 {
		t.worst = max(t.worst, exact)
	}
	if !counted(rate, loss) {
		return
	}
	t.wide = max(t.wide, half/e)
	t.rows++
	t.over, t.overOf = append(t.over, half/most(s.errors)), append(t.overOf, ofHalf/most(s.ofErrors))
	for n, x := range map[*int][2]float64{
		&t.narrow: {half, e}, &t.narrowOf: {ofHalf, ofE}, &t.can: {most(s.errors), e}, &t.canOf: {most(s.ofErrors), ofE},
	} {
		if x[0] <= 4*x[1] {
			*n++
		}
	}
}

func measureAreas(run *experiment.Run) {
	t := areaTable{table: run.Table("LDA: reports of ten cuts of 0.1 s, DefaultConfig",
		"delays", "mean", "packets/s", "loss", "reports", "refused", "outside 95 %", "99.9 %",
		"error to the time on the way", "error", "half-width", "over error", "95 % of errors over error",
		"of those received: outside", "error", "half-width", "over error", "95 % of errors over error")}
	each := run.Table(fmt.Sprintf("%d flows of ten seconds, %g packets a second together", areaFlows, areaRate),
		"delays", "mean", "loss", "LDS: refused", "outside 95 %", "99.9 %", "error", "half-width",
		"COLATE: refused", "outside 95 %", "99.9 %", "error", "half-width")
	var flows [2]areaTally // of LDS and COLATE
	rates := []float64{1e5, 1e3, 10, 1e6}[:run.Pick(1, 4)]
	shares := [][]float64{{0.01}, {0.001, 0.01, 0.05, 0.2}}[run.Pick(0, 1)]
	laws := perflow.Spread(areaLaws(), run.Pick(4, 13))
	for _, law := range laws {
		for _, rate := range rates {
			for _, loss := range areaLossesAt(rate, shares) {
				seconds, times := areaSeconds(run, rate, loss)
				t.add(law, rate, loss, runAreas(run, law, loss, rate, seconds, times))
			}
		}
		for _, loss := range areaLosses(shares) {
			cells := []any{law.name, experiment.Duration(1e9 * law.mean), fmt.Sprintf("%s %s", percent(loss.share), loss.name)}
			byLDS, byCOLATE := flowAreas(run, law, loss, 10, fmt.Sprint(law.name, law.mean, loss.name, loss.share))
			for k, s := range []*areaScore{byLDS, byCOLATE} {
				e, half := perflow.Quantile(s.errors, 0.5), perflow.Quantile(s.halves, 0.5)
				cells = append(cells, s.refused, s.outside95, s.outside999, percent(e), percent(half))
				flows[k].add(s)
			}
			each.Row(cells...)
		}
	}
	for k, n := range []areaTally{t.all, t.received, flows[0], flows[1]} {
		what := []string{"reports", "means of those received", "flows by LDS", "flows by COLATE"}[k] + " outside their 95 % interval"
		run.Meets(what, "at most 5 %", fmt.Sprintf("%d of %d", n.outside, n.answered), 20*n.outside <= n.answered)
		run.Meets("rows of these with more outside than chance makes of 5 % once in a thousand rows", "none",
			fmt.Sprintf("%d of %d", n.over, n.rows), n.over == 0)
	}
	run.Within("without loss: error to the time on the way", "≤ 0.1 %", t.worst, 0.001, 0)
	run.Meets("losses up to 1 %, 10⁵ packets/s: half-width over error, in the worst row", "≤ 4", experiment.Number(t.wide), t.wide <= 4)
	run.Meets("rows of these with at most 4 times the error", "all", fmt.Sprintf("%d of %d, by the mean of those received %d; "+
		"95 %% of errors are within that in %d and %d", t.narrow, t.rows, t.narrowOf, t.can, t.canOf), t.narrow == t.rows)
	over := max(perflow.Quantile(t.over, 0.5), perflow.Quantile(t.overOf, 0.5))
	run.Meets("half-width over that which 95 % of the errors are within, in the median row, by the wider mean", "≤ 1.5",
		experiment.Number(over), over <= 1.5)
}
