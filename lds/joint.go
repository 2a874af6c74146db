package lds

import (
	"context"
	"fmt"
	"math"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// Decode estimates the mean delays of all the interval's flows together, from
// all usable cells at once ([estimate.JointProblem]): what a flow's neighbours
// add to its cells is explained by their other cells instead of being put up
// with. It needs the keys of the flows that were there, each once, as from flow
// records of either point; flows that are left out draw the estimates of their
// neighbours like noise.
//
// packets[i] is how many packets flows[i] sent, times its weight if it has one.
// If packets is nil they are decoded from the counts, by [Sketch.DecodePackets];
// the estimates are then worse, which StdDev includes, and with ten flows to a
// cell or more no better than [Estimate].
//
// The result has a mean and the deviation to be expected of it for each flow, in
// the order of flows. A flow without a usable cell gets the mean of all, and a
// deviation that says so. Where flows have weights and a Spread above 1 or
// Rates below, the deviations of heavy flows' neighbours are too small: to the
// solver a weight is so many packets, each in a cell of its own choice.
//
// Decode allocates about 4·Rows·Spread + 90 bytes a flow and 40 a cell.
//
// It returns [estimate.ErrMismatch] if the Configs differ,
// [estimate.ErrConfig] if packets does not fit flows, [estimate.ErrNoSamples]
// if no cell is usable, and the context's error once it is done.
func Decode(ctx context.Context, up, down *Sketch, flows []hashing.Flow, packets []float64, opts estimate.JointOptions) (estimate.JointResult, error) {
	if err := match(up, down); err != nil {
		return estimate.JointResult{}, err
	}
	var doubt []float64
	if packets == nil {
		var err error
		if packets, doubt, err = up.DecodePackets(ctx, flows); err != nil {
			return estimate.JointResult{}, err
		}
	}
	c := &up.config
	problem := estimate.JointProblem{
		Sum:         make([]float64, len(up.cells)),
		Count:       make([]float64, len(up.cells)),
		Unusable:    make([]bool, len(up.cells)),
		Rows:        c.Rows,
		CellsPerRow: c.Spread,
		Rates:       c.Rates[:c.Rows],
		Packets:     packets,
		Doubt:       doubt,
		Cells:       up.cellsOf(flows),
	}
	for i := range up.cells {
		a, b := &up.cells[i], &down.cells[i]
		problem.Sum[i] = float64(estimate.Difference(a.sum, b.sum, int(c.SumBits)))
		problem.Count[i] = float64(a.count())
		condition := compare(a, b, c.DigestBits)
		problem.Unusable[i] = condition == lossy || condition == reordered
	}
	return problem.Solve(ctx, opts)
}

// cellsOf returns the indices of the flows' cells, Rows × Spread for each.
func (s *Sketch) cellsOf(flows []hashing.Flow) []uint32 {
	cells := make([]uint32, 0, len(flows)*s.config.Rows*s.config.Spread)
	for _, f := range flows {
		for r := range s.config.Rows {
			for offset := range s.config.Spread {
				cells = append(cells, uint32(s.at(r, f, offset)))
			}
		}
	}
	return cells
}

// decodeRounds is how often DecodePackets shares out the counts: the error for
// large flows falls little after that.
const decodeRounds = 200

// DecodePackets estimates how many packets each of the interval's flows sent,
// from the counts of all cells at once. Each round shares every cell's count out
// among its flows in proportion to what they are believed to have had
// (expectation maximisation for Poisson counts), beginning with what
// [Sketch.Packets] says. A flow has at least one packet, unless the sketch
// proves that it has none.
//
// doubt[i] is how far packets[i] may be off, as a standard deviation; over many
// flows the root mean square of the errors is below that of the doubts. The
// error is the context's, once it is done.
func (s *Sketch) DecodePackets(ctx context.Context, flows []hashing.Flow) (packets, doubt []float64, err error) {
	c := &s.config
	cells := s.cellsOf(flows)
	perRow, perFlow := c.Spread, c.Rows*c.Spread
	// share is the part of a flow's packets that a cell of it holds.
	var share [MaxRows]float64
	var shares float64
	for r := range c.Rows {
		share[r] = c.Rates[r] / float64(c.Spread)
		shares += c.Rates[r]
	}
	packets = make([]float64, len(flows))
	expected := make([]float64, len(s.cells))
	certain := make([]float64, len(s.cells)) // of the one packet that each flow has
	for i, f := range flows {
		if s.absent(f) {
			continue
		}
		// A small part of one is left to be shared out, so that a flow can grow.
		packets[i] = max(float64(s.Packets(f))-1, 1e-3)
		for j, at := range cells[i*perFlow : (i+1)*perFlow] {
			certain[at] += share[j/perRow]
		}
	}
	for range decodeRounds {
		if err := ctx.Err(); err != nil {
			return nil, nil, fmt.Errorf("lds: decoding packet counts: %w", err)
		}
		clear(expected)
		for i, n := range packets {
			for j, at := range cells[i*perFlow : (i+1)*perFlow] {
				expected[at] += n * share[j/perRow]
			}
		}
		// From here on expected is how many times what is expected there is.
		for at := range expected {
			if expected[at] > 0 {
				expected[at] = max(0, float64(s.cells[at].count())-certain[at]) / expected[at]
			}
		}
		for i, n := range packets {
			var factor float64
			for j, at := range cells[i*perFlow : (i+1)*perFlow] {
				factor += share[j/perRow] * expected[at]
			}
			packets[i] = n * factor / shares
		}
	}
	// A number between 1 and a bound b with the mean n has at most the variance
	// (n−1)(b−n); and large flows are hardly off by more than b−n, which is
	// what their neighbours were given.
	doubt = make([]float64, len(flows))
	for i, f := range flows {
		if !s.absent(f) {
			above := max(0, float64(s.Packets(f))-packets[i]-1)
			doubt[i] = math.Sqrt(above * min(above, packets[i]))
			packets[i]++
		}
	}
	return packets, doubt, nil
}
