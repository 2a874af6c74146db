package figlda

import (
	"fmt"
	"math"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/perflow"
	"github.com/hoplag/hoplag/estimate/areas"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/lda/lost"
)

// Lost names lost packets, and takes them out of the areas.
var Lost = experiment.Experiment{
	Name: "ours-lost", Title: "Which packets were lost",
	Claim:  "A sender that remembers names what was lost, from the counters that are there anyway, and loss spoils no mean.",
	Weight: 120, Quick: 12, Measure: measureLost,
}

// A lostCase is traffic, and counters for it.
type lostCase struct {
	law, rate  float64 // mean delay in seconds, or -1: 5 ms, and 3 s for 0.2 %; packets a second
	share      float64 // that is lost
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
	errors             []float64
	spent, reports     int // of the budget

	missing map[areaPassing]bool  // what was lost: true until it is named
	slow    map[areaPassing]int64 // when those came that took more than a second
}

func measureLost(run *experiment.Run) {
	t := run.Table("Reports of ten cuts of 0.1 s, the banks of DefaultConfig but for the first one's rows",
		"delays", "packets/s", "loss", "rows", "digest", "lost", "named", "wrong", "came later",
		"in exact cells", "error of the mean", "without names", "of the budget")
	wrong, names, share, worst := 0, 0, 1.0, 0.0
	for _, c := range lostCases(run.Pick(1, 0) == 1) {
		seconds := run.Pick(9, max(6, min(20, int(3e6/c.rate))))
		with, without := c.run(run, seconds, true), c.run(run, seconds, false)
		named, exact := float64(with.named)/float64(max(with.lost, 1)), with.exact/with.received
		off := perflow.Quantile(with.errors, 0.5)
		delays, kind := experiment.Duration(1e9*c.law), map[bool]string{false: "even", true: "bursts"}[c.bursts]
		if c.law < 0 {
			delays = "5 ms, and 3 s for 0.2 %"
		}
		t.Row(delays, c.rate, fmt.Sprintf("%s %s", percent(c.share), kind), c.rows, c.bits, with.lost, percent(named), with.wrong, with.late,
			percent(exact), percent(off), percent(perflow.Quantile(without.errors, 0.5)),
			percent(float64(with.spent)/float64(max(with.reports, 1))/lost.Budget))
		wrong, names = wrong+with.wrong, names+with.named
		if c.bits == 32 && c.law == 0.005 && !c.bursts && (c.rate == 1e5 && c.share == 0.01 || c.rate == 1e4) {
			share, worst = min(share, named, exact), max(worst, off)
		}
	}
	run.Meets("names that are false", "none", fmt.Sprintf("%d of %d", wrong, names), wrong == 0)
	run.Within("not named, or not in exact cells: 5 ms, 10⁵/s with 1 % and 10⁴/s with up to 10 % of loss", "≤ 5 %", 1-share, 0.05, 0)
	run.Within("error of the mean there", "≤ 0.05 %", worst, 0.0005, 0)
}

// run passes traffic, names what was lost if name is set, and judges all reports but the first two.
func (c *lostCase) run(run *experiment.Run, seconds int, name bool) *lostScore {
	config, s := lda.DefaultConfig, new(lostScore)
	config.Banks[0].Rows, config.DigestBits = c.rows, uint8(c.bits)
	law := exponential(c.law)
	if c.law < 0 {
		law = bimodal(0.002, 3)
	}
	s.missing, s.slow = map[areaPassing]bool{}, map[areaPassing]int64{}
	loss := areaLosses([]float64{c.share})[map[bool]int{false: 1, true: 2}[c.bursts]]
	t := newAreaTraffic(run.Rand(fmt.Sprint(*c)), law, loss, c.rate, seconds, func(x areaPassing, came int64, lost bool) {
		if lost {
			s.missing[x] = true
		} else if came-x.t > 1e9 {
			s.slow[x] = came
		}
	})
	reports := 0
	t.pass(config, true, func(total *lda.Accumulator, report, cuts int) {
		if reports++; name {
			s.name(config, total, t.up[:cuts], report >= 2)
		}
		if report < 2 {
			return
		}
		if r, err := total.Estimate(); err == nil {
			way := t.truth[report].way / t.truth[report].received
			s.errors = append(s.errors, math.Abs(r.Mean/1e9-way)/way)
			s.exact += float64(r.N)
			s.received += float64(r.Received)
		}
	})
	for x := range s.missing {
		if w := x.t / 1e9; w >= 2 && w < int64(reports) {
			s.lost++
		}
	}
	return s
}

// name names what was lost in a report, and takes it out.
func (s *lostScore) name(config lda.Config, total *lda.Accumulator, sent [][]areaPassing, counts bool) {
	var trails []areas.Trail
	total.Trails(func(one areas.Trail) { trails = append(trails, one) })
	f := experiment.Try(lost.NewFinder(config, trails))
	for _, cut := range sent {
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
		lost, ok := s.missing[x]
		switch {
		case s.slow[x] > int64(len(sent))*int64(areaCut):
			s.late++
		case !ok:
			s.wrong++
		case lost:
			s.missing[x] = false // but once
			if n.Sent >= 2e9 {
				s.named++
			}
		}
	}
	total.TakeOut(names.Lost(config, trails))
}
