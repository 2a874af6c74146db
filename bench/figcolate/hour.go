package figcolate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/hoplag/hoplag/bench/counters"
	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/perflow"
	"github.com/hoplag/hoplag/colate"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
)

var hour = experiment.Experiment{
	Name: "ours-colate-hour", Title: "COLATE: 1,000 flows over an hour, under loss",
	Claim: "Ours: two stores of an hour in epochs of a minute answer for any flow what its mean delay was, whatever was lost on the way, " +
		"with intervals that hold as often as they say: compared and subtracted epoch by epoch, where sums over the hour have no counter " +
		"left that lost nothing.",
	Weight: 90, Quick: 12, Measure: measureHour,
}

const (
	hourMinutes   = 60
	hourRate      = 10_000.0 // packets a second, including an elephant's
	hourElephant  = 0.3      // of them
	hourOffset    = 2_000_000
	hourLoad      = 9.0 // packets to a counter and minute
	hourSampling  = 0.01
	hourAsked     = 1000
	burstSeconds  = 0.02 // of all seconds, with half of the losses and threefold delays
	burstSlowness = 3.0
)

// An hourFlow is one flow of the hour, and what became of it.
type hourFlow struct {
	key        hashing.Flow
	rate       float64 // packets a second
	start, end float64 // s
	mean       float64 // ns, outside bursts
	delays     estimate.Moments
}

// hourFlows returns an elephant and flows of all sizes, each present for some
// minutes. The larger of them wait longer.
func hourFlows(run *experiment.Run, rate float64) []hourFlow {
	rng := run.Rand("hour flows")
	flows := []hourFlow{{key: hashing.Flow(rng.Uint64()), rate: rate * hourElephant, end: 60 * hourMinutes, mean: 400_000}}
	for packets := 0.0; packets < rate*(1-hourElephant)*60*hourMinutes; {
		n := min(20*math.Pow(1-rng.Float64(), -1/1.1), 50_000*rate/hourRate)
		length := min(10+600*rng.ExpFloat64(), 60*hourMinutes)
		start := rng.Float64() * (60*hourMinutes - length)
		flows = append(flows, hourFlow{
			key: hashing.Flow(rng.Uint64()), rate: n / length, start: start, end: start + length,
			mean: 100_000 * (1 + math.Log10(n)) * math.Exp(0.7*rng.NormFloat64()),
		})
		packets += n
	}
	return flows
}

// An hourPoint is one of the two points: what it records, and its store.
type hourPoint struct {
	recorders [2]*colate.Recorder // of this minute and the next
	store     *colate.Store
	packets   float64
}

func newHourPoint(dir string, c colate.Config) *hourPoint {
	now, next := counters.Pair(colate.New, c)
	return &hourPoint{recorders: [2]*colate.Recorder{now, next}, store: experiment.Try(colate.OpenStore(dir, colate.StoreOptions{}))}
}

// update records a packet in the epoch of the point's clock.
func (p *hourPoint) update(f hashing.Flow, packet hashing.Packet, t, end int64) {
	next := 0
	if t >= end {
		next = 1
	}
	p.recorders[next].Update(f, packet, t)
	p.packets++
}

// cut keeps the epoch that is over.
func (p *hourPoint) cut() {
	experiment.Check(p.store.Append(p.recorders[0]))
	p.recorders[0].Reset()
	p.recorders[0], p.recorders[1] = p.recorders[1], p.recorders[0]
}

// passHour lets both points record an hour. Each packet's delay is drawn
// independently, so that most packets overtake another.
func passHour(run *experiment.Run, dir string, c colate.Config, flows []hourFlow, loss float64, offset int64) colate.Path {
	up, down := newHourPoint(filepath.Join(dir, "up"), c), newHourPoint(filepath.Join(dir, "down"), c)
	rng := run.Rand(fmt.Sprint("hour ", loss))
	for minute := range run.Times(hourMinutes) {
		end := int64(minute+1) * c.Period
		for i := range flows {
			f := &flows[i]
			from, to := max(f.start, float64(60*minute)), min(f.end, float64(60*minute+60))
			for range poisson(rng, f.rate*(to-from)) {
				at := from + rng.Float64()*(to-from)
				delay, lost := f.mean*math.Exp(rng.NormFloat64()-0.5), loss/2
				if luck := hashing.Mix(uint64(at), run.Seed); float64(luck>>11)/(1<<53) < burstSeconds { // of this second
					delay, lost = burstSlowness*delay, loss/2+loss/2/burstSeconds
				}
				sent, packet := int64(at*1e9), hashing.Packet(rng.Uint64())
				up.update(f.key, packet, sent, end)
				if rng.Float64() >= lost {
					down.update(f.key, packet, sent+int64(delay)+offset, end)
					f.delays.Add(float64(int64(delay) + offset))
				}
			}
		}
		up.cut()
		down.cut()
	}
	down.cut()
	experiment.Check(up.store.Close())
	experiment.Check(down.store.Close())
	return colate.Path{Up: up.store, Down: down.store}
}

// poisson draws a number of packets.
func poisson(rng *rand.Rand, mean float64) int {
	if !(mean > 0) {
		return 0
	}
	if mean > 500 {
		return int(max(mean+math.Sqrt(mean)*rng.NormFloat64()+0.5, 0))
	}
	n, product := 0, rng.Float64()
	for limit := math.Exp(-mean); product > limit; n++ {
		product *= rng.Float64()
	}
	return n
}

// hourClasses divides the queried flows.
var hourClasses = perflow.Classes("100–999", 100, 999, "1,000–9,999", 1000, 9999, "≥ 10,000", 10_000, perflow.Unlimited)

func measureHour(run *experiment.Run) {
	rate := experiment.Choose(run, hourRate/10, hourRate)
	c := colate.DefaultConfig
	c.Identity, c.Counters = run.SeedOf("hour"), int(rate*60/hourLoad)
	table := run.Table("", "Flows of an hour, and their 95 % intervals",
		"loss", "flow records", "method", "packets of the flow", "flows", "no answer", "median error", "intervals that hold", "median half width")
	costs := run.Table("costs", "What it takes", "loss", "packets", "bits a packet",
		"read for one flow (kB)", "for 1,000 flows (MB)", "the elephant")
	dir := experiment.Try(os.MkdirTemp("", "hour"))
	defer os.RemoveAll(dir)
	for _, loss := range experiment.Each(run, []float64{0, 0.001, 0.01}) {
		h := &hourRun{run: run, loss: loss, flows: hourFlows(run, rate), table: table}
		h.path = passHour(run, filepath.Join(dir, fmt.Sprint(loss)), c, h.flows, loss, hourOffset)
		h.choose()
		for _, w := range ways {
			h.ask(w)
		}
		costs.Row(h.costs())
	}
	run.Config("packets a second", rate, "elephant", hourElephant, "recorder", c, "clock offset, ns", hourOffset,
		"seconds of bursts", burstSeconds)
	run.Note("The truth is the mean over the packets that arrived. Half of the losses are even and half in bursts, of 2 % of all seconds, "+
		"in which delays are threefold; larger flows wait longer. Records have the packets that arrived, or one in 100 of them, with the "+
		"doubt that comes of it; a record of none is left out.",
		"The elephant has 11,000 packets in each of its counters and minute. Where one in a thousand is lost, each of them loses "+
			"some in each minute, and its samples answer for it.",
		"A query of one flow takes 10 MB of memory and of 1,000 flows 80 MB, whatever the window; joint decoding holds 160 bytes a counter "+
			"and what solving takes. Times are those of go test ./colate -bench Query.")
}

// An hourRun is an hour with some loss, to be queried.
type hourRun struct {
	run   *experiment.Run
	loss  float64
	flows []hourFlow
	path  colate.Path
	asked []int
	table *experiment.Table
	read  int64
}

// choose takes flows of each class, a third of the total from each that has
// enough.
func (h *hourRun) choose() {
	for k, class := range hourClasses {
		var all []int
		for i := 1; i < len(h.flows); i++ {
			if class.Has(int(h.flows[i].delays.N())) {
				all = append(all, i)
			}
		}
		h.asked = append(h.asked, perflow.Spread(all, (hourAsked-len(h.asked))/(len(hourClasses)-k))...)
	}
}

// record returns what a collector that sees part of a flow's packets knows
// about it.
func (h *hourRun) record(i int, rng *rand.Rand, sampling float64) (joint.FlowRecord, bool) {
	f := &h.flows[i]
	r := joint.FlowRecord{Flow: f.key, Packets: float64(f.delays.N())}
	if sampling < 1 {
		r.Packets = float64(poisson(rng, r.Packets*sampling)) / sampling
		r.Doubt = math.Sqrt(r.Packets / sampling)
	}
	return r, r.Packets > 0
}

// A way to ask: one by one, with records of all packets or of some, or jointly.
type way struct {
	method   string
	sampling float64
}

var ways = []way{{"Estimate", 1}, {"Estimate", hourSampling}, {"joint", 1}}

// String says what the records are of.
func (w way) String() string {
	if w.sampling < 1 {
		return fmt.Sprintf("one in %.0f", 1/w.sampling)
	}
	return "all packets"
}

const hourEnd = 60 * hourMinutes * 1_000_000_000

// answers returns the errors of what the stores say of the flows that were
// chosen, and how many intervals hold, by class.
func (h *hourRun) answers(w way) (errors *perflow.Errors, held map[string]*perflow.Coverage) {
	rng := h.run.Rand(fmt.Sprint("records ", h.loss, w))
	errors, held = perflow.New(w.method, perflow.LeftOut), map[string]*perflow.Coverage{}
	add := func(i int, mean float64, interval estimate.Interval) {
		delays := &h.flows[i].delays
		errors.Add(int(delays.N()), mean, delays.Mean())
		for _, class := range hourClasses {
			if held[class.Name] == nil {
				held[class.Name] = new(perflow.Coverage)
			}
			if class.Has(int(delays.N())) && !math.IsNaN(mean) {
				held[class.Name].Add(interval, delays.Mean())
			}
		}
	}
	if w.method == "joint" {
		all := make([]joint.FlowRecord, len(h.flows))
		for i := range h.flows {
			all[i], _ = h.record(i, rng, 1)
		}
		r, _ := experiment.Try2(h.path.Decode(h.run.Context(), all, 0, hourEnd, joint.Options{}))
		for _, i := range h.asked {
			add(i, r.Mean[i], r.MeanInterval(i, 0.95))
		}
		return errors, held
	}
	var records []joint.FlowRecord
	var asked []int
	for _, i := range h.asked {
		if r, ok := h.record(i, rng, w.sampling); ok {
			records, asked = append(records, r), append(asked, i)
		}
	}
	answers, coverage := experiment.Try2(h.path.EstimateAll(h.run.Context(), records, 0, hourEnd))
	h.read = coverage.Bytes
	for k, i := range asked {
		mean := math.NaN()
		if answers[k].Err == nil {
			mean = answers[k].Mean
		}
		add(i, mean, answers[k].MeanInterval(0.95))
	}
	return errors, held
}

// ask adds the rows of one way.
func (h *hourRun) ask(w way) {
	e, all := h.answers(w)
	for _, class := range hourClasses {
		held := all[class.Name]
		share := float64(held.Held) / float64(max(held.All, 1))
		h.table.Row(percent(h.loss), w.String(), w.method, class.Name, int(held.All)+e.Missing(class), e.Missing(class),
			percent(e.Median(class)), fmt.Sprintf("%.1f %%", 100*share), percent(held.HalfWidth()))
		if held.All >= 100 {
			h.run.Keeps(fmt.Sprintf("%s lost, %s, records of %s: 95 %% intervals of %d flows of %s packets that hold",
				percent(h.loss), w.method, w, held.All, class.Name), "≥ 95 %", fmt.Sprintf("%.1f %%", 100*share), share >= 0.95)
		}
	}
}

// bits returns what a packet takes in a store.
func (h *hourRun) bits() (bits, packets float64) {
	for i := range h.flows {
		packets += float64(h.flows[i].delays.N()) / (1 - h.loss)
	}
	return 8 * float64(h.path.Up.Summary().Bytes) / packets, packets
}

// costs returns a row with the costs of the stores and of a query.
func (h *hourRun) costs() []string {
	bits, packets := h.bits()
	elephant, _ := h.record(0, nil, 1)
	answer := "no answer"
	r, coverage, err := h.path.Estimate(h.run.Context(), elephant, 0, hourEnd)
	if err == nil {
		i := r.MeanInterval(0.95)
		answer = fmt.Sprintf("%.4g ms, %.4g to %.4g; is %.4g", r.Mean/1e6, i.Low/1e6, i.High/1e6, h.flows[0].delays.Mean()/1e6)
	}
	return []string{percent(h.loss), number(packets), number(bits), number(float64(coverage.Bytes) / 1e3),
		number(float64(h.read) / 1e6), answer}
}
