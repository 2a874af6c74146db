package figrli

import (
	"fmt"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/perflow"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/rli"
)

var quantiles = experiment.Experiment{
	Name: "ours-rli-quantiles", Title: "A flow's median and 99th percentile",
	Claim: "The paper keeps count, sum and sum of squares, and no distribution. A histogram of each flow, 8 buckets to a doubling, gives " +
		"quantiles of its delays within a sixteenth; what they are off by beyond that is the estimates' error.",
	Weight: 12, Quick: 1, Measure: measureQuantiles,
}

// fewest is the smallest number of packets of a flow whose 99th percentile is
// used.
const fewest = 100

// quantileShares are the quantiles that are measured for a flow.
var quantileShares = [2]float64{0.5, 0.99}

func measureQuantiles(run *experiment.Run) {
	packets := run.Pick(150_000, 1_500_000)
	run.Config("packets", packets, "injector", adaptive, "fewest", fewest, "buckets", buckets, "floor", bucketFloor)
	run.Notef("Flows of at least %d packets that arrived. Each receiver has %d buckets a flow from %d ns on, which is %d bytes.", fewest,
		buckets, bucketFloor, 4*buckets)
	run.Note("The histogram's own error is that of a receiver that is told each packet's true delay, by a reference of the packet's size " +
		"at each: at most 1/16 by design.")
	table := run.Table("", "Relative error of quantiles over flows: median / 75th percentile", "traffic", "utilisation", "flows",
		"median: histogram alone", "RLI", "busy-aware", "99th: histogram alone", "RLI", "busy-aware", "in their intervals: medians / 99th")
	worst := 0.0
	for _, kind := range experiment.Each(run, drawn) {
		for _, u := range experiment.Each(run, utilisations) {
			p := simulate(run, setting{kind: kind, utilisation: u, packets: packets, injector: adaptive})
			truth, born, flows := p.quantiles()
			exact, _ := p.quantilesOff(p.exact(born), truth)
			lists := [3][2][]float64{exact}
			var held [2]perflow.Coverage // by the last method
			for i, m := range []method{byLine, byPeriod} {
				c := p.config(m)
				c.Buckets, c.Floor, c.Flows = buckets, bucketFloor, flows
				lists[1+i], held = p.quantilesOff(p.receive(c, born), truth)
			}
			row := []string{kind.name, percent(u), fmt.Sprint(flows)}
			for k := range quantileShares {
				for i := range lists {
					row = append(row, spread(lists[i][k]))
				}
				worst = max(worst, quantile(lists[0][k], 1))
			}
			table.Row(append(row, percent(held[0].Share())+" / "+percent(held[1].Share())))
			for k, name := range []string{"medians", "99th percentiles"} {
				run.Keeps(fmt.Sprintf("%s, %s: flows' %s that are in busy-aware's interval at 95 %%", kind.name, percent(u), name), "at least 94 %",
					percent(held[k].Share()), held[k].Share() >= 0.94)
			}
			line, ours := median(lists[1][1]), median(lists[2][1])
			run.Within(fmt.Sprintf("%s, %s: median error of flows' 99th percentile, RLI's delays against busy-aware's", kind.name, percent(u)),
				percent(line)+" (RLI here)", ours, line, 0.1)
		}
	}
	run.Meets("largest error of the histogram alone, of all flows", "1/16, 6.25 % (as documented)", percent(worst), worst <= 1.0/16+1e-9)
}

// quantiles returns the true quantiles of the flows with enough packets; which
// flows are measured, from the beginning; and how many.
func (p *passage) quantiles() (truth [][]float64, born []int32, flows int) {
	delays := make([][]float64, len(p.flows))
	for i := range p.events {
		if d := &p.events[i]; d.regular() && p.flows[d.flow].delays.N() >= fewest {
			delays[d.flow] = append(delays[d.flow], float64(d.delay))
		}
	}
	truth, born = make([][]float64, len(p.flows)), make([]int32, len(p.flows))
	for i, list := range delays {
		if list == nil {
			born[i] = -1
			continue
		}
		flows++
		for _, q := range quantileShares {
			truth[i] = append(truth[i], quantile(list, q))
		}
	}
	return truth, born, flows
}

// quantilesOff returns the relative errors of a receiver's quantiles, by flow.
func (p *passage) quantilesOff(r *rli.Receiver, truth [][]float64) (off [2][]float64, held [2]perflow.Coverage) {
	for k, q := range quantileShares {
		off[k] = perflow.Unanswered(len(p.flows))
		for i := range truth {
			if truth[i] != nil {
				if x, in, err := r.Quantile(p.flows[i].key, q, 0.95); err == nil {
					off[k][i] = estimate.RelativeError(x, truth[i][k])
					held[k].Count(in.Contains(truth[i][k]))
				}
			}
		}
	}
	return off, held
}

const (
	buckets     = 160
	bucketFloor = 16 // ns; the shortest packet takes 32
)

// exact returns a receiver whose every delay is the true one: RLI-L without a
// rate, given each packet's delay before the packet. It measures the flows
// that were born.
func (p *passage) exact(born []int32) *rli.Receiver {
	c := p.config(byLeft)
	c.Rate = 0
	c.Buckets, c.Floor, c.Flows = buckets, bucketFloor, 0
	for _, number := range born {
		if number >= 0 {
			c.Flows++
		}
	}
	r := experiment.Try(rli.NewReceiver(c))
	number := uint64(0)
	for i := range p.events {
		if d := &p.events[i]; d.regular() && born[d.flow] >= 0 {
			r.Reference(rli.ReferencePacket{Sequence: number, Sent: d.out - d.delay}, d.out)
			r.Update(p.flows[d.flow].key, int(d.bytes), d.out)
			number++
		}
	}
	return r
}
