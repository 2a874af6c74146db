package lds

import (
	"context"
	"fmt"
	"math"
	"math/bits"

	"github.com/hoplag/hoplag/hashing"
)

// decodeRounds is how often DecodePackets shares out the counts: the error for
// large flows falls little after that.
const decodeRounds = 200

// DecodePackets estimates how many packets each of the interval's flows sent,
// from the counts of all cells at once. It begins with what is likely for each
// flow by itself: that it is as large as it would have to be for its rows to
// hold, beside it, what rows usually hold, all rows alike; large sizes being the
// rarer (Pareto with the shape of the paper's traffic, 0.8). Each round then
// shares every cell's count out among its flows in proportion to what they are
// believed to have had (expectation maximisation for Poisson counts). A flow has
// at least one packet, unless the sketch proves that it has none.
//
// doubt[i] is how far packets[i] may be off, as a standard deviation; over many
// flows the root mean square of the errors is below that of the doubts unless
// there are dozens of flows to a cell. The error is the context's, once it is
// done.
func (s *Sketch) DecodePackets(ctx context.Context, flows []hashing.Flow) (packets, doubt []float64, err error) {
	if packets, doubt, err = s.likelyPackets(ctx, flows); err != nil {
		return nil, nil, err
	}
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
	expected := make([]float64, len(s.cells))
	certain := make([]float64, len(s.cells)) // of the one packet that each flow has
	for i := range flows {
		if packets[i] == 0 {
			continue
		}
		// A small part of one is left to be shared out, so that a flow can grow.
		packets[i] = max(packets[i]-1, 1e-3)
		for j, at := range cells[i*perFlow : (i+1)*perFlow] {
			certain[at] += share[j/perRow]
		}
	}
	for range decodeRounds {
		if err := decodingEnds(ctx); err != nil {
			return nil, nil, err
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
	for i, f := range flows {
		if doubt[i] > 0 {
			above := max(0, float64(s.Packets(f))-packets[i]-1)
			doubt[i] = min(doubt[i], math.Sqrt(above*min(above, packets[i])))
			packets[i]++
		}
	}
	return packets, doubt, nil
}

// decodingEnds is the context's error, once it is done.
func decodingEnds(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("lds: decoding packet counts: %w", err)
	}
	return nil
}

// likelyPackets estimates the flows' packets one by one, and how far off that
// is, as a standard deviation: the mean of what a flow may have had, weighted by
// how likely its rows are to hold what is left for others. 0 and 0 for flows
// that the sketch proves to have none.
func (s *Sketch) likelyPackets(ctx context.Context, flows []hashing.Flow) (mean, deviation []float64, err error) {
	const shape = 0.8
	c := &s.config
	// What others bring to a flow's cells is distributed like what any cells
	// hold, because flows fall at random.
	var others [MaxRows][steps]float64
	for r := range c.Rows {
		others[r] = s.density(r)
	}
	var sizes, spread, prior [steps]float64
	for b := 1; b < steps; b++ {
		low, width := step(b)
		sizes[b] = low + (width-1)/2
		spread[b] = (width*width - 1) / 12 // variance of a size in this step
		prior[b] = width * math.Pow(sizes[b], -1-shape)
	}
	mean, deviation = make([]float64, len(flows)), make([]float64, len(flows))
	for i, f := range flows {
		if i%4096 == 0 {
			if err := decodingEnds(ctx); err != nil {
				return nil, nil, err
			}
		}
		if s.absent(f) {
			continue
		}
		var held [MaxRows]float64
		for r := range c.Rows {
			held[r] = float64(s.rowPackets(r, f))
		}
		most := float64(s.Packets(f))
		var total, sum, squares float64
		for b := 1; b < steps && (b == 1 || sizes[b] <= most); b++ {
			weight := prior[b]
			for r := range c.Rows {
				left := max(0, held[r]-sizes[b]*c.Rates[r])
				weight *= others[r][stepOf(uint64(left+0.5))]
			}
			total += weight
			sum += weight * sizes[b]
			squares += weight * (sizes[b]*sizes[b] + spread[b])
		}
		mean[i] = sum / total
		// Never 0, which is for flows that are not there.
		deviation[i] = math.Sqrt(max(squares/total-mean[i]*mean[i], 1e-6))
	}
	return mean, deviation, nil
}

// density is the share of the places for a flow in row r, Spread cells next to
// each other, that hold so many packets, per packet and by steps; smoothed over
// neighbouring steps, and nowhere 0.
func (s *Sketch) density(r int) (d [steps]float64) {
	c := &s.config
	cells := s.cells[r*c.Columns : (r+1)*c.Columns]
	var held uint64
	for _, at := range cells[:c.Spread] {
		held += uint64(at.count())
	}
	var places [steps]float64
	for i := range cells {
		places[stepOf(held)]++
		held += uint64(cells[(i+c.Spread)%c.Columns].count()) - uint64(cells[i].count())
	}
	kernel := [...]float64{0.1, 0.2, 0.4, 0.2, 0.1}
	for b := range d {
		var near, weights float64
		for k, weight := range kernel {
			if at := b + k - len(kernel)/2; at >= 0 && at < steps {
				near += weight * places[at]
				weights += weight
			}
		}
		_, width := step(b)
		d[b] = max(near/weights, 0.01) / float64(len(cells)) / width
	}
	return d
}

// Numbers of packets go in steps: each a step of its own below 16, eight to a
// power of two from there on.
const (
	exact = 16
	steps = exact + 8*(64-4)
)

// stepOf is the step of n.
func stepOf(n uint64) int {
	if n < exact {
		return int(n)
	}
	length := bits.Len64(n)
	return exact + 8*(length-5) + int(n>>(length-4)&7)
}

// step is the least number of a step and how many numbers it has.
func step(b int) (low, width float64) {
	if b < exact {
		return float64(b), 1
	}
	octave, eighth := (b-exact)/8, (b-exact)%8
	width = math.Ldexp(2, octave)
	return float64(8+eighth) * width, width
}
