package figcolate

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/perflow"
	"github.com/hoplag/hoplag/colate"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
)

const (
	hourMinutes   = 60
	hourElephant  = 0.3 // of the packets a second
	hourLoad      = 9.0 // packets to a counter and minute
	hourLoss      = 0.001
	hourAsked     = 8000
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
		n := min(20*math.Pow(1-rng.Float64(), -1/1.1), 5*rate)
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
	now, next := pair(colate.New, c)
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
func passHour(run *experiment.Run, dir string, c colate.Config, flows []hourFlow) colate.Path {
	up, down := newHourPoint(filepath.Join(dir, "up"), c), newHourPoint(filepath.Join(dir, "down"), c)
	rng := run.Rand(fmt.Sprint("hour ", hourLoss))
	for minute := range hourMinutes {
		end := int64(minute+1) * c.Period
		for i := range flows {
			f := &flows[i]
			from, to := max(f.start, float64(60*minute)), min(f.end, float64(60*minute+60))
			for range poisson(rng, f.rate*(to-from)) {
				at := from + rng.Float64()*(to-from)
				delay, lost := f.mean*math.Exp(rng.NormFloat64()-0.5), hourLoss/2
				if luck := hashing.Mix(uint64(at), run.Seed); float64(luck>>11)/(1<<53) < burstSeconds { // of this second
					delay, lost = burstSlowness*delay, hourLoss/2+hourLoss/2/burstSeconds
				}
				sent, packet := int64(at*1e9), hashing.Packet(rng.Uint64())
				up.update(f.key, packet, sent, end)
				if rng.Float64() >= lost {
					down.update(f.key, packet, sent+int64(delay), end)
					f.delays.Add(float64(int64(delay)))
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

// An hourRun is an hour that was recorded, to be queried.
type hourRun struct {
	flows []hourFlow
	path  colate.Path
	asked []int
}

// newHour records an hour, and takes flows of each class to ask for, a third of the
// total from each that has enough.
func newHour(run *experiment.Run, dir string, c colate.Config, rate float64) *hourRun {
	h := &hourRun{flows: hourFlows(run, rate)}
	h.path = passHour(run, dir, c, h.flows)
	for k, class := range hourClasses {
		var all []int
		for i := 1; i < len(h.flows); i++ {
			if class.Has(int(h.flows[i].delays.N())) {
				all = append(all, i)
			}
		}
		h.asked = append(h.asked, perflow.Spread(all, (hourAsked-len(h.asked))/(len(hourClasses)-k))...)
	}
	return h
}

// record returns what a collector knows about a flow.
func (h *hourRun) record(i int) joint.FlowRecord {
	return joint.FlowRecord{Flow: h.flows[i].key, Packets: float64(h.flows[i].delays.N())}
}

const hourEnd = 60 * hourMinutes * 1_000_000_000

// hourAnswers are the errors of what stores say of flows, and how many intervals hold, by class.
type hourAnswers struct {
	errors *perflow.Errors
	held   []perflow.Coverage
}

func newHourAnswers() hourAnswers {
	return hourAnswers{perflow.New("", perflow.Infinite), make([]perflow.Coverage, len(hourClasses))}
}

// answer adds what the stores say of the flows that were chosen, one by one or jointly.
func (h *hourRun) answer(to hourAnswers, jointly bool) {
	add := func(i int, mean float64, interval estimate.Interval) {
		delays := &h.flows[i].delays
		to.errors.Add(int(delays.N()), mean, delays.Mean())
		for c, class := range hourClasses {
			if class.Has(int(delays.N())) && !math.IsNaN(mean) {
				to.held[c].Add(interval, delays.Mean())
			}
		}
	}
	var records []joint.FlowRecord
	if jointly {
		for i := range h.flows {
			records = append(records, h.record(i))
		}
		r, _, err := h.path.Decode(context.Background(), records, 0, hourEnd, joint.Options{})
		experiment.Check(err)
		for _, i := range h.asked {
			mean := r.Mean[i]
			if r.Usable[i] == 0 {
				mean = math.NaN()
			}
			add(i, mean, r.MeanInterval(i, 0.95))
		}
		return
	}
	for _, i := range h.asked {
		records = append(records, h.record(i))
	}
	answers, _, err := h.path.EstimateAll(context.Background(), records, 0, hourEnd)
	experiment.Check(err)
	for k, i := range h.asked {
		mean := math.NaN()
		if answers[k].Err == nil {
			mean = answers[k].Mean
		}
		add(i, mean, answers[k].MeanInterval(0.95))
	}
}

// bits returns what a packet takes in a store.
func (h *hourRun) bits() float64 {
	packets := 0.0
	for i := range h.flows {
		packets += float64(h.flows[i].delays.N()) / (1 - hourLoss)
	}
	return 8 * float64(h.path.Up.Summary().Bytes) / packets
}
