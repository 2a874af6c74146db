// Package counters feeds packets to COLATE's recorders at two points, the
// paper's and ours, and queries them about flows.
package counters

import (
	"iter"
	"math"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/colate"
	"github.com/hoplag/hoplag/colate/paper"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
)

// A Packet is one packet at the two points.
type Packet struct {
	Flow    hashing.Flow
	ID      hashing.Packet
	In, Out int64 // ns
	Lost    bool  // not seen at the second point
}

// Pair makes two of a kind, for the two points.
func Pair[C, T any](make func(C) (T, error), c C) (up, down T) {
	return experiment.Try(make(c)), experiment.Try(make(c))
}

// feed passes all packets by two recorders of a kind.
func feed(up, down interface {
	Update(f hashing.Flow, p hashing.Packet, t int64)
}, packets iter.Seq[Packet]) {
	for p := range packets {
		up.Update(p.Flow, p.ID, p.In)
		if !p.Lost {
			down.Update(p.Flow, p.ID, p.Out)
		}
	}
}

// Plain holds the paper's recorders of both points.
type Plain struct{ Up, Down *paper.Recorder }

// Record feeds all packets to two of the paper's recorders.
func Record(c paper.Config, packets iter.Seq[Packet]) *Plain {
	up, down := Pair(paper.New, c)
	feed(up, down, packets)
	return &Plain{up, down}
}

// Joint decodes all flows from sums alone.
func (p *Plain) Joint(run *experiment.Run, records []joint.FlowRecord) joint.Result {
	c := p.Up.Config()
	problem := joint.Problem{Sum: make([]float64, c.Counters), Rows: 1, CellsPerRow: c.PerFlow}
	for i := range problem.Sum {
		problem.Sum[i] = float64(int64(p.Down.Counter(i) - p.Up.Counter(i)))
	}
	for _, r := range records {
		problem.Packets = append(problem.Packets, r.Packets)
		problem.Cells = p.Up.Positions(problem.Cells, r.Flow)
	}
	return experiment.Try(problem.Solve(run.Context(), joint.Options{}))
}

// Counted holds our recorders of both points.
type Counted struct{ up, down *colate.Recorder }

// Count feeds all packets to two of our recorders.
func Count(c colate.Config, packets iter.Seq[Packet]) *Counted {
	up, down := Pair(colate.New, c)
	feed(up, down, packets)
	return &Counted{up, down}
}

// Estimate returns our answers for these flows; without samples a mean is NaN.
func (p *Counted) Estimate(records []joint.FlowRecord) []colate.Result {
	answers := make([]colate.Result, len(records))
	for i, record := range records {
		a, err := colate.Estimate(p.up, p.down, record)
		if a.Err = err; err != nil {
			a.Mean = math.NaN()
		}
		answers[i] = a
	}
	return answers
}
