package figlds

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lds"
	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/rli"
)

var overPaths = experiment.Experiment{
	Name: "ours-lds-paths", Title: "Flows over several paths, where neighbours in time have nothing in common",
	Claim: "LDS needs no packet to be delayed as its neighbours are; RLI interpolates between references, which take one of the paths " +
		"(sections 1 and 6 of the LDS paper).",
	Weight: 12, Quick: 1, Measure: measureOverPaths,
}

const (
	pathFlows    = 20_000
	pathRate     = 200_000 // packets a second
	pathBytes    = 500
	betweenProbe = 100 // packets between two references of RLI
)

// loads says how much faster each path drains than packets come.
var loads = []float64{8, 4, 2, 1.3}

// A crossroads is flows on their way over the paths, with the observers.
type crossroads struct {
	hop      *queue.Multipath
	receiver *rli.Receiver
	up, down *lds.Sketch
	sums     map[hashing.Flow]float64
	packets  map[hashing.Flow]float64
	total, n float64
}

func newCrossroads(run *experiment.Run, paths int) *crossroads {
	var links []queue.LinkConfig
	for _, load := range loads[len(loads)-paths:] {
		links = append(links, queue.LinkConfig{Rate: int64(load * pathRate * pathBytes * 8 / float64(paths))})
	}
	c := rli.DefaultConfig
	c.Method, c.Buffer = rli.Linear, 8192
	sketch := lds.DefaultConfig
	sketch.Columns = 5000
	return &crossroads{
		hop:      experiment.Try(queue.NewMultipath(queue.ByFlow, run.SeedOf("paths"), links...)),
		receiver: experiment.Try(rli.NewReceiver(c)),
		up:       experiment.Try(lds.New(sketch)), down: experiment.Try(lds.New(sketch)),
		sums: map[hashing.Flow]float64{}, packets: map[hashing.Flow]float64{},
	}
}

// leave takes what has come out by then.
func (c *crossroads) leave(until int64) {
	var p queue.Packet
	for c.hop.Next(until, &p) {
		if p.Tag == 1 {
			c.receiver.Reference(rli.ReferencePacket{Sequence: uint64(p.ID), Sent: p.Sent}, p.Time)
			continue
		}
		c.receiver.Update(p.Flow, int(p.Bytes), p.Time)
		c.down.Update(p.Flow, p.ID, p.Time)
		delay := float64(p.Time - p.Sent)
		c.sums[p.Flow] += delay
		c.packets[p.Flow]++
		c.total += delay
		c.n++
	}
}

// drive sends packets at random times, flows of very different sizes.
func (c *crossroads) drive(run *experiment.Run, packets int) {
	random := rand.New(rand.NewPCG(run.SeedOf("packets"), 1))
	sizes := rand.NewZipf(random, 1.2, 20, pathFlows-1)
	now := 0.0
	for i := range packets {
		if i%65536 == 0 {
			run.Alive()
		}
		now += random.ExpFloat64() * 1e9 / pathRate
		p := queue.Packet{Sent: int64(now), Time: int64(now), Bytes: pathBytes}
		c.leave(p.Time)
		if i%betweenProbe == 0 {
			reference := p
			reference.Tag, reference.Flow, reference.ID = 1, 1, hashing.Packet(i/betweenProbe)
			c.hop.Send(&reference)
		}
		p.Flow, p.ID = hashing.Flow(hashing.Word(5, sizes.Uint64())), hashing.Packet(random.Uint64())
		c.up.Update(p.Flow, p.ID, p.Time)
		c.hop.Send(&p)
	}
	c.leave(math.MaxInt64)
	c.receiver.Flush()
}

// answers returns the errors of RLI, of both readings of LDS, and of the mean
// of all.
func (c *crossroads) answers(run *experiment.Run) []*method {
	list := []*method{newMethod("RLI, linear"), newMethod("LDS, Estimate"), newMethod("LDS, joint"), newMethod("mean of all")}
	var records []joint.FlowRecord
	for f, n := range c.packets {
		records = append(records, joint.FlowRecord{Flow: f, Packets: n})
	}
	// Sort, for an order that is the same each time.
	slices.SortFunc(records, func(a, b joint.FlowRecord) int { return cmp.Compare(a.Flow, b.Flow) })
	decoded := experiment.Try(lds.Decode(run.Context(), c.up, c.down, records, joint.Options{}))
	for i, f := range records {
		truth := c.sums[f.Flow] / f.Packets
		got := []float64{math.NaN(), math.NaN(), decoded.Mean[i], c.total / c.n}
		if r, err := c.receiver.Estimate(f.Flow); err == nil {
			got[0] = r.Mean
		}
		if r, err := lds.Estimate(c.up, c.down, f.Flow); err == nil {
			got[1] = r.Mean
		}
		if decoded.Usable[i] == 0 {
			got[2] = math.NaN()
		}
		for k, m := range list {
			m.Add(int(f.Packets), got[k], truth)
		}
	}
	for _, m := range list {
		m.Next()
	}
	return list
}

func measureOverPaths(run *experiment.Run) {
	packets := run.Pick(200_000, 2_000_000)
	table := run.Table("paths", "Relative error of flows' means: median / 95th percentile",
		"paths", "method", classes[fromHundred].Name, classes[all].Name)
	f := run.Draw("a", "Median error of flows of 100 packets and more, by the number of paths",
		"Flows take a path each by a hash; the more paths, the more differ neighbours in time.",
		plot.Axis{Label: "paths", Min: 1, Max: float64(len(loads))}, offAxis)
	lines := map[string]*plot.Series{}
	var last []*method
	for _, paths := range experiment.Each(run, []int{1, 2, 3, 4}) {
		c := newCrossroads(run, paths)
		c.drive(run, packets)
		last = c.answers(run)
		for _, m := range last {
			table.Row(paths, m.name, m.cell(fromHundred), m.cell(all))
			if lines[m.name] == nil {
				lines[m.name] = &plot.Series{Name: m.name}
			}
			lines[m.name].Add(float64(paths), 100*m.median(fromHundred))
		}
	}
	for _, m := range last {
		f.Add(*lines[m.name])
	}
	rli, read, decoded := last[0].median(fromHundred), last[1].median(fromHundred), last[2].median(fromHundred)
	run.Beats("four paths, median error of flows of 100 packets and more: RLI and LDS by Estimate", read, rli, 0.05).Headline = true
	run.Beats("the same, RLI and LDS by joint decoding", decoded, rli, 0.05)
	run.Config("flows", pathFlows, "packets", packets, "packets a second", pathRate, "loads", loads,
		"packets between references", betweenProbe)
	run.Note("All references are of one flow and take one path. They are as large as packets. " +
		"RLI keeps a record for each flow, LDS cells for a fourth as many.")
}
