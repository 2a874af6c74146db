package figlda

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/lda/lost"
)

// ldaLost names the packets that were lost, and takes them out of the areas.
var ldaLost = experiment.Experiment{
	Name: "ours-lost", Title: "Which packets were lost",
	Claim:  "A sender that remembers names what was lost, from the counters that are there anyway, and loss spoils no mean.",
	Weight: 120, Quick: 12, Measure: measureLost,
}

// A lostCase is traffic, and counters for it.
type lostCase struct {
	law, rate  float64 // mean delay in seconds, or -1: 5 ms, and 3 s for 0.2 %; packets a second
	share      float64
	bursts     bool
	rows, bits int
}

func lostCases(quick bool) (all []lostCase) {
	all = []lostCase{{0.005, 1e4, 0.1, false, 2048, 32}, {0.005, 1e5, 0.01, false, 2048, 32}}
	if quick {
		return all
	}
	for _, share := range []float64{0.001, 0.01, 0.1} {
		for _, bursts := range []bool{false, true} {
			for _, rate := range []float64{1e3, 1e4, 1e5, 3e5} {
				all = append(all, lostCase{0.005, rate, share, bursts, 2048, 32})
			}
		}
	}
	for _, bits := range []int{16, 20, 24, 28} {
		all = append(all, lostCase{0.005, 1e4, 0.01, false, 2048, bits}, lostCase{0.005, 1e5, 0.01, false, 2048, bits})
	}
	return append(all,
		lostCase{0.1, 1e4, 0.01, false, 2048, 32}, lostCase{0.1, 1e5, 0.01, false, 2048, 32}, lostCase{0.1, 1e5, 0.01, false, 16384, 32},
		lostCase{0.3, 1e4, 0.01, false, 2048, 32}, lostCase{-1, 1e4, 0.01, false, 2048, 32}, lostCase{-1, 1e5, 0.01, false, 2048, 32},
		lostCase{0.005, 1e6, 0.001, false, 2048, 32}, lostCase{0.005, 1e6, 0.001, false, 16384, 32}, lostCase{0.005, 1e6, 0.01, false, 16384, 32})
}

// lostScore is how a case fared, with names or without.
type lostScore struct {
	lost, named, wrong int
	late               int     // names of packets that came after they were named
	exact, received    float64 // packets, of these in cells that are exact
	errors             areaScore
	spent, reports     int // of the budget
}

func measureLost(run *experiment.Run) {
	t := run.Table("lost", "Reports of ten cuts of 0.1 s, the banks of DefaultConfig but for the first one's rows",
		"delays", "packets/s", "loss", "rows", "digest", "lost", "named", "wrong", "came later",
		"in exact cells", "error of the mean", "without names", "of the budget")
	wrong, names, share, worst := 0, 0, 1.0, 0.0
	for _, c := range experiment.Each(run, lostCases(run.Pick(1, 0) == 1)) {
		seconds := run.Pick(9, max(6, min(20, int(3e6/c.rate))))
		with, without := c.run(run, seconds, true), c.run(run, seconds, false)
		named, exact := float64(with.named)/float64(max(with.lost, 1)), with.exact/with.received
		off := with.errors.median(with.errors.errors)
		delays, kind := experiment.Duration(1e9*c.law), map[bool]string{false: "even", true: "bursts"}[c.bursts]
		if c.law < 0 {
			delays = "5 ms, and 3 s for 0.2 %"
		}
		t.Row(delays, c.rate, fmt.Sprintf("%s %s", percent(c.share), kind), c.rows, c.bits, with.lost, percent(named), with.wrong, with.late,
			percent(exact), percent(off), percent(without.errors.median(without.errors.errors)),
			percent(float64(with.spent)/float64(max(with.reports, 1))/lost.Budget))
		wrong, names = wrong+with.wrong, names+with.named
		if c.bits == 32 && c.law == 0.005 && !c.bursts && (c.rate == 1e5 && c.share == 0.01 || c.rate == 1e4) {
			share, worst = min(share, named, exact), max(worst, off)
		}
	}
	run.Keeps("names that are false", "none", fmt.Sprintf("%d of %d", wrong, names), wrong == 0).Headline = true
	run.Within("not named, or not in exact cells: 5 ms, 10⁵/s with 1 % and 10⁴/s with up to 10 % of loss", "≤ 5 %", 1-share, 0.05, 0)
	run.Within("error of the mean there", "≤ 0.05 %", worst, 0.0005, 0)
}

// lostTraffic is what passed two points, by cut, and what happened to it.
type lostTraffic struct {
	up, down [][]areaPassing
	truth    []areaTruth           // by report
	missing  map[areaPassing]bool  // true until they are named
	slow     map[areaPassing]int64 // when those came that took more than a second
}

// traffic simulates a number of seconds.
func (c *lostCase) traffic(random *rand.Rand, seconds int) *lostTraffic {
	lostNow := areaLosses([]float64{c.share})[map[bool]int{false: 1, true: 2}[c.bursts]].make(random)
	delay := func() float64 {
		switch {
		case c.law > 0:
			return c.law * random.ExpFloat64()
		case random.Float64() < 0.002:
			return 3
		}
		return 0.005 * random.ExpFloat64()
	}
	cuts := 10 * seconds
	t := &lostTraffic{truth: make([]areaTruth, seconds), missing: map[areaPassing]bool{}, slow: map[areaPassing]int64{}}
	t.up, t.down = make([][]areaPassing, cuts), make([][]areaPassing, cuts)
	for now := random.ExpFloat64() / c.rate; now < float64(seconds); now += random.ExpFloat64() / c.rate {
		x := areaPassing{hashing.Packet(random.Uint64()), int64(now * 1e9)}
		k := x.t / int64(areaCut)
		t.up[k] = append(t.up[k], x)
		came := x.t + int64(1e9*delay())
		if lostNow(now, false) {
			t.missing[x] = true
			continue
		}
		if came-x.t > 1e9 {
			t.slow[x] = came
		}
		for w := x.t / 1e9; w < int64(seconds) && w*1e9 < came; w++ {
			t.truth[w].way += float64(min(came, (w+1)*1e9) - max(x.t, w*1e9))
		}
		if k := came / int64(areaCut); k < int64(cuts) {
			t.truth[came/1e9].received++
			t.down[k] = append(t.down[k], areaPassing{x.p, came})
		}
	}
	return t
}

// run passes traffic, names what was lost if name is set, and judges all reports
// but the first two.
func (c *lostCase) run(run *experiment.Run, seconds int, name bool) *lostScore {
	config, s := lda.DefaultConfig, new(lostScore)
	config.Banks[0].Rows, config.DigestBits = c.rows, uint8(c.bits)
	t := c.traffic(run.Rand(fmt.Sprint(*c)), seconds)
	total := experiment.Try(lda.NewAccumulator(config))
	a, b := experiment.Try(lda.New(config)), experiment.Try(lda.New(config))
	report := 0
	for k := range t.up {
		a.Reset()
		b.Reset()
		for _, x := range t.up[k] {
			a.Update(x.p, x.t)
		}
		for _, x := range t.down[k] {
			b.Update(x.p, x.t)
		}
		experiment.Check(total.Add(int64(k)*int64(areaCut), int64(k+1)*int64(areaCut), a, b))
		if (k+1)%areaWindow == 0 {
			total.End()
			total.Estimate() // tells it how long packets take
		}
		for total.Settled() {
			if name {
				s.name(config, total, t, k+1, report >= 2)
			}
			s.judge(total, &t.truth[report], report)
			total.Reset()
			report++
		}
	}
	for x := range t.missing {
		if w := x.t / 1e9; w >= 2 && w < int64(report) {
			s.lost++
		}
	}
	run.Alive()
	return s
}

// name names what was lost in a report, and takes it out.
func (s *lostScore) name(config lda.Config, total *lda.Accumulator, t *lostTraffic, cuts int, counts bool) {
	var trails []estimate.Trail
	total.Trails(func(one estimate.Trail) { trails = append(trails, one.Clone()) })
	f := experiment.Try(lost.NewFinder(config, trails))
	for _, cut := range t.up[:cuts] {
		if len(cut) == 0 || !f.Wants(cut[0].t) && !f.Wants(cut[len(cut)-1].t) {
			continue
		}
		for _, x := range cut {
			f.Offer(x.p, uint64(x.p), x.t)
		}
	}
	names := f.Names(lost.Budget)
	if counts {
		s.spent += names.Spent
		s.reports++
	}
	for _, n := range names.Names {
		x := areaPassing{n.Packet, n.Sent}
		lost, ok := t.missing[x]
		switch {
		case n.OnWay:
		case t.slow[x] > int64(cuts)*int64(areaCut):
			s.late++
		case !ok:
			s.wrong++
		case lost:
			t.missing[x] = false // but once
			if n.Sent >= 2e9 {
				s.named++
			}
		}
	}
	total.TakeOut(names.Lost(config, trails))
}

// judge compares a report with the truth.
func (s *lostScore) judge(total *lda.Accumulator, truth *areaTruth, number int) {
	r, err := total.Estimate()
	if number < 2 || err != nil {
		return
	}
	way := truth.way / truth.received
	s.errors.errors = append(s.errors.errors, math.Abs(r.Mean-way)/way)
	s.exact += float64(r.N)
	s.received += float64(r.Received)
}
