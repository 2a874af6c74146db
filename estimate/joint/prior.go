package joint

import (
	"fmt"
	"math"

	"github.com/hoplag/hoplag/estimate"
)

// EstimatePrior estimates the three moments of the prior from the cells alone.
// Mean (μ) is the mean delay of all packets. The method of moments finds the
// two deviations, τ between flows and σ within. A cell has the share s = rate
// ÷ CellsPerRow of a flow, and a = s × packets are expected in it. Subtract μ
// times the count from the cell's sum (or, without counts, μ times Σa). The
// square of the rest has the mean
//
//	σ²·Σa + τ²·Σ(a² + a(1−s)),   without counts also + μ²·Σa(1−s)
//
// summed over flows. These squares are fitted by least squares, weighted by
// the inverse of their variance (twice their mean squared), until the weights
// settle. Large flows tell τ apart from σ. If the cells do not tell them
// apart, the doubtful one is set to one standard error above 0, or to
// everything there is if that is less: too small a deviation would make the
// estimates look surer than they are.
//
// The errors are those of [Problem.Solve].
func (p *Problem) EstimatePrior() (Prior, error) {
	if err := p.validate(); err != nil {
		return Prior{}, err
	}
	return weigh(p).estimatePrior()
}

func (p *weighted) estimatePrior() (Prior, error) {
	expected := p.expected()
	var sum, packets float64
	for c, n := range expected {
		if n > 0 && p.usable(c) {
			if p.Count != nil {
				n = p.Count[c]
			}
			sum += p.Sum[c]
			packets += n
		}
	}
	if packets == 0 {
		return Prior{}, fmt.Errorf("%w: no flow has a packet in a usable cell", estimate.ErrNoSamples)
	}
	mean := sum / packets

	between, fallen := p.coefficients()
	square := make([]float64, len(expected))
	p.centred(square, mean, expected)
	var total, perUnit float64
	for c, n := range expected {
		if n > 0 && p.usable(c) {
			square[c] = square[c]*square[c] - mean*mean*fallen[c]
			total += square[c]
			perUnit += n + between[c]
		} else {
			expected[c], between[c] = 0, 0
		}
	}
	// Even if no delay ever varies, rounding does; and no clock resolves a
	// thousandth of a nanosecond.
	floor := 1e-18*mean*mean + 1e-6
	within2 := max(total/perUnit, floor)
	between2 := within2
	for range 50 {
		w, b := fitTwo(square, expected, between, fallen, mean*mean, within2, between2)
		w, b = max(w, floor), max(b, floor)
		settled := math.Abs(w-within2) <= 1e-6*within2 && math.Abs(b-between2) <= 1e-6*between2
		within2, between2 = w, b
		if settled {
			break
		}
	}
	return Prior{Mean: mean, Between: math.Sqrt(between2), Within: math.Sqrt(within2)}, nil
}

// coefficients returns, for each cell, the coefficient of τ². Those of σ² are
// the expected packets. What μ² adds is known, and has the coefficient fallen.
func (p *weighted) coefficients() (between, fallen []float64) {
	between, fallen = make([]float64, len(p.Sum)), make([]float64, len(p.Sum))
	for f, w := range p.Packets {
		for i, c := range p.run(f) {
			share := p.of(f*p.width + i)
			a := w * share
			between[c] += a*a + a*(1-share)
			fallen[c] += a * (1 - share)
		}
	}
	for c, v := range p.doubts() {
		between[c] += v
		fallen[c] += v
	}
	if p.Count != nil {
		clear(fallen)
	}
	return between, fallen
}

// fitTwo does one weighted least-squares fit of y = σ²·p + τ²·q, with weights
// from the previous values. A coefficient below one standard error is set to
// that, and the other is fitted to the rest; but to no more than explains all
// the squares alone. A standard error grows with the previous values, and with
// few cells it can exceed them: without the limit there would be no end over
// the rounds.
func fitTwo(y, p, q, known []float64, knownScale, within2, between2 float64) (float64, float64) {
	var pp, pq, qq, py, qy float64
	for c := range y {
		if p[c] == 0 {
			continue
		}
		mean := within2*p[c] + between2*q[c] + knownScale*known[c]
		w := 1 / (2 * mean * mean)
		pp += w * p[c] * p[c]
		pq += w * p[c] * q[c]
		qq += w * q[c] * q[c]
		py += w * p[c] * y[c]
		qy += w * q[c] * y[c]
	}
	det := pp*qq - pq*pq
	if !(det > 1e-12*pp*qq) {
		// Every cell mixes the two alike: share the variance evenly.
		v := (py + qy) / (pp + 2*pq + qq)
		return v, v
	}
	within, between := (qq*py-pq*qy)/det, (pp*qy-pq*py)/det
	leastWithin := min(math.Sqrt(qq/det), max(py/pp, 0))
	leastBetween := min(math.Sqrt(pp/det), max(qy/qq, 0))
	if within < leastWithin {
		within = leastWithin
		between = max((qy-pq*within)/qq, leastBetween)
	} else if between < leastBetween {
		between = leastBetween
		within = max((py-pq*between)/pp, leastWithin)
	}
	return within, between
}
