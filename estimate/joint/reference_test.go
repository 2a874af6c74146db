package joint

import (
	"context"
	"math"
	"testing"
)

// inverted returns the inverse of a symmetric positive definite matrix, by Gauss and Jordan.
func inverted(m [][]float64) [][]float64 {
	n := len(m)
	inverse := make([][]float64, n)
	for i := range inverse {
		inverse[i] = make([]float64, n)
		inverse[i][i] = 1
	}
	for i := range n {
		pivot := m[i][i]
		for k := range n {
			m[i][k] /= pivot
			inverse[i][k] /= pivot
		}
		for j := range n {
			if factor := m[j][i]; j != i && factor != 0 {
				for k := range n {
					m[j][k] -= factor * m[i][k]
					inverse[j][k] -= factor * inverse[i][k]
				}
			}
		}
	}
	return inverse
}

// dense returns h and its variances from (S⁻¹ + AᵀD⁻¹A) h = AᵀD⁻¹ y, written out.
func dense(s *solver) (h, variance []float64) {
	n := len(s.Packets)
	a := make([][]float64, n)
	for f, w := range s.Packets {
		a[f] = make([]float64, len(s.Sum))
		for i, c := range s.Cells[f*s.width : (f+1)*s.width] {
			rate := 1.0
			if s.Rates != nil {
				rate = s.Rates[i/s.CellsPerRow]
			}
			a[f][c] += w * rate / float64(s.CellsPerRow)
		}
	}
	m, b := make([][]float64, n), make([]float64, n)
	for f := range n {
		m[f] = make([]float64, n)
		m[f][f] = 1
		if s.variance[f] == 0 {
			continue
		}
		m[f][f] = 1 / s.variance[f]
		for c, trust := range s.trust {
			b[f] += a[f][c] * trust * s.rest[c]
			for g := range n {
				if s.variance[g] > 0 {
					m[f][g] += a[f][c] * trust * a[g][c]
				}
			}
		}
	}
	inverse := inverted(m)
	h, variance = make([]float64, n), make([]float64, n)
	for f := range n {
		variance[f] = inverse[f][f]
		for g := range n {
			h[f] += inverse[f][g] * b[g]
		}
	}
	return h, variance
}

func TestIsTheDenseSolution(t *testing.T) {
	for name, shape := range shapes {
		shape.flows, shape.columns = 80, 40
		w := simulate(shape, 7)
		w.Packets[5], w.Unusable = 0, make([]bool, len(w.Sum))
		w.Unusable[3], w.Unusable[17] = true, true
		s, err := newSolver(weigh(&w.Problem))
		if err != nil {
			t.Fatal(err)
		}
		want, _ := dense(s)
		got, err := s.solve(context.Background(), Options{tolerance: 1e-14})
		if err != nil {
			t.Fatal(err)
		}
		for f := range want {
			if d := math.Abs(got[f] - want[f]); !(d <= 1e-6*w.prior.Between) {
				t.Errorf("%s: flow %d of %g packets: %g, dense %g", name, f, w.Packets[f], got[f], want[f])
			}
		}
	}
}

// Where no two flows meet in more than one cell, and none form a ring, messages are exact.
func TestMessagesOnATree(t *testing.T) {
	p := Problem{
		Sum: []float64{900, 5000, 800, 700, 3000}, Count: []float64{9, 45, 8, 6, 32}, Rows: 1, CellsPerRow: 2,
		Packets: []float64{20, 60, 10, 10}, Cells: []uint32{0, 1, 1, 2, 1, 3, 3, 4},
	}
	s, _ := newSolver(weigh(&p))
	_, want := dense(s)
	done, cancel := context.WithCancel(t.Context())
	cancel()
	none, _, _ := s.posterior(done, -1)
	got, _, _ := s.posterior(t.Context(), -1)
	for f := range got {
		if math.Abs(got[f]/want[f]-1) > 1e-5 {
			t.Errorf("flow %d: variance %g, dense %g", f, got[f], want[f])
		}
		if none[f] != s.variance[f] || math.Abs(none[f]/want[f]-1) < 1e-5 {
			t.Errorf("flow %d: variance %g before any message", f, none[f])
		}
	}
	s.trust[0] = 0 // then cells tell of 10 packets of flow 0, of 45 in cell 1
	if v := s.mixed(0, []float64{0, 90, 0, 0, 0}); math.Abs(v-2*10/45.*35/45*90/100) > 1e-9 {
		t.Errorf("packets of the wrong flow: variance %g", v)
	}
	// Eight flows have equal parts in the error of the first one's mean.
	q := Problem{Sum: []float64{2e6, 1e5, 4e5}, Count: []float64{1080, 100, 100}, Rows: 1, CellsPerRow: 1,
		Packets: []float64{1000, 10, 10, 10, 10, 10, 10, 10, 10, 100, 100}, Cells: []uint32{9: 1, 2}}
	r, err := q.Solve(t.Context(), Options{})
	if err != nil || r.Degrees[0] != 4+8 || r.Degrees[1] != 4+1 {
		t.Errorf("%v, degrees %d", err, r.Degrees)
	}
	if r.Widen(0, r.StdDev[0]); r.Degrees[0] != 8 { // 4 + 2²/(1²/8 + 1²)
		t.Errorf("%d degrees with an error as large", r.Degrees[0])
	}
}
