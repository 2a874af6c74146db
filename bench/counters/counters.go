// Package counters feeds packets to COLATE's recorders at two points, the
// paper's and ours, and queries them about flows.
package counters

import (
	"errors"
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

// Plain holds the paper's epochs of both points, and what a query needs.
type Plain struct {
	up, down         *paper.Epoch
	sender, receiver *paper.Subvector
}

// Record feeds all packets to two of the paper's recorders. They must fit an
// epoch.
func Record(c paper.Config, packets iter.Seq[Packet]) *Plain {
	up, down := Pair(paper.New, c)
	for p := range packets {
		if up.Update(p.Flow, p.ID, p.In) != nil || !p.Lost && down.Update(p.Flow, p.ID, p.Out) != nil {
			experiment.Check(errors.New("the traffic did not fit one epoch"))
		}
	}
	return Read(up, down)
}

// Read prepares the recorders' current epochs for queries.
func Read(up, down *paper.Recorder) *Plain {
	p := &Plain{up: up.Current(), down: down.Current()}
	p.sender, p.receiver = Pair(paper.NewSubvector, up.Config())
	return p
}

// Gather reads a flow's counters at both points.
func (p *Plain) Gather(f hashing.Flow) (up, down *paper.Subvector) {
	p.sender.Reset(f)
	p.receiver.Reset(f)
	experiment.Check(errors.Join(p.sender.Add(p.up), p.receiver.Add(p.down)))
	return p.sender, p.receiver
}

// Theorem2 returns the paper's mean of a flow with this many packets, NaN if
// there is none.
func (p *Plain) Theorem2(f hashing.Flow, packets uint64) float64 {
	up, down := p.Gather(f)
	return OrNone(paper.Theorem2(up, down, packets))
}

// Joint decodes all flows from sums alone.
func (p *Plain) Joint(run *experiment.Run, records []joint.FlowRecord) joint.Result {
	c := p.sender.Config()
	problem := joint.Problem{Sum: make([]float64, c.Counters), Rows: 1, CellsPerRow: c.PerFlow}
	for i := range problem.Sum {
		problem.Sum[i] = float64(int64(p.down.Counter(0, i)-p.up.Counter(0, i))) * c.Unit()
	}
	for _, r := range records {
		problem.Packets = append(problem.Packets, r.Packets)
		p.sender.Reset(r.Flow)
		problem.Cells = append(problem.Cells, p.sender.Positions()...)
	}
	return experiment.Try(problem.Solve(run.Context(), joint.Options{}))
}

// OrNone turns an answer without samples into NaN.
func OrNone(x float64, err error) float64 {
	if x, ok := experiment.Answer(x, err); ok {
		return x
	}
	return math.NaN()
}

// Counted holds our recorders of both points.
type Counted struct{ up, down *colate.Recorder }

// Count feeds all packets to two of our recorders.
func Count(c colate.Config, packets iter.Seq[Packet]) *Counted {
	p := new(Counted)
	p.up, p.down = Pair(colate.New, c)
	for packet := range packets {
		p.up.Update(packet.Flow, packet.ID, packet.In)
		if !packet.Lost {
			p.down.Update(packet.Flow, packet.ID, packet.Out)
		}
	}
	return p
}

// Estimate returns our answers for these flows; without samples a mean is NaN.
func (p *Counted) Estimate(records []joint.FlowRecord) []colate.Answer {
	answers := make([]colate.Answer, len(records))
	for i, record := range records {
		a := &answers[i]
		if a.Result, a.Err = colate.Estimate(p.up, p.down, record); a.Err != nil {
			a.Mean = math.NaN()
		}
	}
	return answers
}

// Joint decodes all flows.
func (p *Counted) Joint(run *experiment.Run, records []joint.FlowRecord) joint.Result {
	return experiment.Try(colate.Decode(run.Context(), p.up, p.down, records, joint.Options{}))
}
