package figlds

import (
	"context"
	"fmt"
	"math"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/flowsim"
	"github.com/hoplag/hoplag/bench/perflow"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lds"
)

// How numbers are written in claims and tables.
var percent, number = experiment.Percent, experiment.Number

// part is the fraction of the paper's scale in a quick run.
const part = 0.1

// An interval is one interval's traffic, with its flows as package lds takes them.
type interval struct {
	*flowsim.Traffic
	keys    []hashing.Flow
	packets []float64
	seed    uint64 // for what else is random in this interval
}

// newInterval makes the interval of a number: the same for every experiment with one seed.
func newInterval(run *experiment.Run, number int) *interval {
	c := experiment.Choose(run, flowsim.Paper.Scaled(part), flowsim.Paper)
	c.Seed = run.SeedOf(fmt.Sprintf("traffic %d", number))
	t := flowsim.New(c)
	iv := &interval{Traffic: t, seed: run.SeedOf(fmt.Sprintf("interval %d", number))}
	for i := range t.Flows {
		iv.keys = append(iv.keys, t.Flows[i].Key)
		iv.packets = append(iv.packets, float64(t.Flows[i].Size))
	}
	return iv
}

// shape returns a sketch of four rows that see all packets, with a number of columns at the paper's scale.
func shape(run *experiment.Run, columns int) lds.Config {
	c := lds.DefaultConfig
	c.Columns, c.Rows, c.Rates = run.Pick(int(part*float64(columns)), columns), 4, [lds.MaxRows]float64{1, 1, 1, 1}
	return c
}

// points are the sketches at the two ends.
type points struct{ up, down *lds.Sketch }

// observe passes the interval's packets to all sketches. The fraction lost does not arrive, each packet
// independently.
func (iv *interval) observe(lost float64, configs ...lds.Config) []points {
	sketches := make([]points, len(configs))
	for i, c := range configs {
		sketches[i].up = experiment.Try(lds.New(c))
		sketches[i].down = experiment.Try(lds.New(c))
	}
	for i := range iv.Flows {
		f := &iv.Flows[i]
		for p := range f.Packets() {
			arrives := !iv.loses(p, lost)
			for _, s := range sketches {
				s.up.Update(f.Key, p.ID, p.Sent)
				if arrives {
					s.down.Update(f.Key, p.ID, p.Sent+p.Delay)
				}
			}
		}
	}
	return sketches
}

// loses reports whether a packet is among the lost.
func (iv *interval) loses(p flowsim.Packet, share float64) bool {
	return hashing.Sampled(uint64(hashing.Word(iv.seed, uint64(p.ID))), hashing.Threshold(share)) == 1
}

// Classes of Fig. 9, and then those of Fig. 10.
const (
	all = iota
	fromHundred
	fromThousand
	firstBin
)

var classes = perflow.Classes("all flows", 1, perflow.Unlimited, "≥ 100 packets", 100, perflow.Unlimited, "≥ 1,000 packets", 1000,
	perflow.Unlimited, "1", 1, 1, "2–9", 2, 9, "10–49", 10, 49, "50–99", 50, 99, "100–499", 100, 499, "500–999", 500, 999,
	"1,000–9,999", 1000,
	9999, "≥ 10,000", 10000, perflow.Unlimited)

// An answer returns a method's mean delay of flow i of an interval, NaN if it has none.
type answer func(i int) float64

// A method is a way to estimate, with the relative errors that it had.
type method struct{ *perflow.Errors }

func newMethod(name string) *method { return &method{perflow.New(name, perflow.Whole)} }

// add takes the answers about one interval, for the flows that only accepts, or for all if it is nil.
func (m *method) add(iv *interval, a answer, only func(i int) bool) {
	m.addOf(iv, a, func(i int) float64 { return iv.Flows[i].Mean }, only)
}

// addOf is add for another truth.
func (m *method) addOf(iv *interval, a, truth answer, only func(i int) bool) {
	for i := range iv.Flows {
		if only == nil || only(i) {
			m.Add(iv.Flows[i].Size, a(i), truth(i))
		}
	}
}

func (m *method) median(c int) float64 { return m.Median(classes[c]) }
func (m *method) cell(c int) string    { return m.Cell(classes[c], 0.5, 0.95) }

// estimated answers as Estimate does.
func (iv *interval) estimated(s points) answer {
	return func(i int) float64 {
		if r, err := lds.Estimate(s.up, s.down, iv.keys[i]); err == nil {
			return r.Mean
		}
		return math.NaN()
	}
}

// records returns what a collector knows: the flows' packets, unless nil.
func (iv *interval) records(packets []float64) []joint.FlowRecord {
	records := make([]joint.FlowRecord, len(iv.keys))
	for i, key := range iv.keys {
		records[i].Flow = key
		if packets != nil {
			records[i].Packets = packets[i]
		}
	}
	return records
}

// usable answers with the means of flows that have a usable cell.
func usable(r *joint.Result) answer {
	return func(i int) float64 {
		if r.Usable[i] == 0 {
			return math.NaN()
		}
		return r.Mean[i]
	}
}

// decode is joint decoding, with packets of each flow or nil.
func (iv *interval) decode(s points, packets []float64) *joint.Result {
	r := experiment.Try(lds.Decode(context.Background(), s.up, s.down, iv.records(packets), joint.Options{}))
	return &r
}

// answers returns the fraction of a class's flows that have an answer.
func (m *method) answers(c int) float64 {
	return 1 - float64(m.Missing(classes[c]))/float64(len(m.Of(classes[c])))
}

// same answers with one mean for all flows.
func same(mean float64) answer { return func(int) float64 { return mean } }
