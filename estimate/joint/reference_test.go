package joint

import (
	"context"
	"math"
	"slices"
	"testing"
)

// The equations, written out: a dense covariance of all cells, one flow's
// contribution at a time, its Cholesky factor, and μ + ρ·aᵀK⁻¹y.
func dense(p *Problem, prior Prior) (mean, deviation []float64) {
	var index []int // usable cells that hold something
	total := make([]float64, len(p.Sum))
	a := make([][]float64, len(p.Packets))
	for f, w := range p.Packets {
		a[f] = make([]float64, len(p.Sum))
		for i, c := range p.Cells[f*p.Rows*p.CellsPerRow : (f+1)*p.Rows*p.CellsPerRow] {
			rate := 1.0
			if p.Rates != nil {
				rate = p.Rates[i/p.CellsPerRow]
			}
			a[f][c] += w * rate / float64(p.CellsPerRow)
			total[c] += w * rate / float64(p.CellsPerRow)
		}
	}
	for c, n := range total {
		if n > 0 && (p.Unusable == nil || !p.Unusable[c]) {
			index = append(index, c)
		}
	}
	between2, within2 := prior.Between*prior.Between, prior.Within*prior.Within
	packet := between2 + within2
	if p.Count == nil {
		packet += prior.Mean * prior.Mean
	}
	k := float64(p.CellsPerRow)
	theta := 1 - 1/k
	if p.Rows == 1 && k > 1 {
		theta = 1
	}
	cov := make([][]float64, len(index))
	y := make([]float64, len(index))
	for i, c := range index {
		cov[i] = make([]float64, len(index))
		n := total[c]
		y[i] = p.Sum[c] - prior.Mean*n
		if p.Count != nil {
			y[i] = p.Sum[c] - prior.Mean*p.Count[c]
			n = max(n, p.Count[c])
		}
		noise := n * packet
		for f, w := range p.Packets {
			for j, d := range p.Cells[f*p.Rows*p.CellsPerRow : (f+1)*p.Rows*p.CellsPerRow] {
				if int(d) == c && w > 0 {
					rate := 1.0
					if p.Rates != nil {
						rate = p.Rates[j/p.CellsPerRow]
					}
					part := w * rate / k
					noise -= (1 - theta) * packet / w * part * part
				}
			}
		}
		cov[i][i] = max(0, noise) + weigh(p).slack*n*packet
	}
	rho := make([]float64, len(a))
	for f, w := range p.Packets {
		if w == 0 {
			rho[f] = packet
			continue
		}
		rho[f] = between2 + within2/w
		s := max(1e-3*rho[f], rho[f]-theta*packet/w/float64(p.Rows))
		for i, c := range index {
			for j, d := range index {
				cov[i][j] += s * a[f][c] * a[f][d]
			}
		}
	}
	for i := range cov { // Cholesky, in place
		for j := 0; j <= i; j++ {
			for m := 0; m < j; m++ {
				cov[i][j] -= cov[i][m] * cov[j][m]
			}
			if i == j {
				cov[i][i] = math.Sqrt(cov[i][i])
			} else {
				cov[i][j] /= cov[j][j]
			}
		}
	}
	solve := func(b []float64) []float64 { // L⁻¹b
		x := slices.Clone(b)
		for i := range x {
			for j := range i {
				x[i] -= cov[i][j] * x[j]
			}
			x[i] /= cov[i][i]
		}
		return x
	}
	v := solve(y)
	mean, deviation = make([]float64, len(a)), make([]float64, len(a))
	for f := range a {
		b := make([]float64, len(index))
		for i, c := range index {
			b[i] = a[f][c]
		}
		u := solve(b)
		var uv, uu float64
		for i := range u {
			uv += u[i] * v[i]
			uu += u[i] * u[i]
		}
		mean[f] = prior.Mean + rho[f]*uv
		deviation[f] = math.Sqrt(rho[f] - rho[f]*rho[f]*uu)
	}
	return mean, deviation
}

func TestIsTheDenseSolution(t *testing.T) {
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			shape.flows, shape.columns = 80, 40
			w := simulate(shape, 7)
			w.Packets[5] = 0
			w.Unusable = make([]bool, len(w.Sum))
			w.Unusable[3], w.Unusable[17] = true, true
			want, deviation := dense(&w.Problem, w.prior)
			got := w.solve(t, Options{Prior: &w.prior, Tolerance: 1e-13})
			var ratio float64
			for f := range want {
				if d := math.Abs(got.Mean[f] - want[f]); !(d <= 1e-8*w.prior.Between) {
					t.Errorf("flow %d of %g packets: mean %g, dense %g", f, w.Packets[f], got.Mean[f], want[f])
				}
				ratio += got.StdDev[f] / deviation[f] / float64(len(want))
			}
			t.Logf("deviations are %.3f of the dense ones on average", ratio)
			// The control: a dense solution of another prior is far off.
			wrong := w.prior
			wrong.Within *= 1.01
			other, _ := dense(&w.Problem, wrong)
			if math.Abs(other[0]-want[0]) <= 1e-8*w.prior.Between {
				t.Errorf("a 1 %% larger deviation is not told apart: %g, %g", other[0], want[0])
			}
		})
	}
}

// Where no two flows meet in more than one cell and none in a ring, messages
// are exact, up to how far they settle.
func TestMessagesOnATree(t *testing.T) {
	p := Problem{
		Sum: []float64{900, 5000, 800, 700, 3000}, Count: []float64{9, 45, 8, 6, 32},
		Rows: 1, CellsPerRow: 2,
		Packets: []float64{20, 60, 10, 10},
		Cells:   []uint32{0, 1, 1, 2, 1, 3, 3, 4},
	}
	prior := Prior{Mean: 100, Between: 40, Within: 20}
	_, want := dense(&p, prior)
	s := newSystem(weigh(&p), prior)
	got, _, err := s.messages(context.Background(), 100, &progress{})
	if err != nil {
		t.Fatal(err)
	}
	s.finish(make([]float64, len(got)), got)
	for f := range got {
		if math.Abs(got[f]/want[f]-1) > settledChange {
			t.Errorf("flow %d: deviation %g, dense %g", f, got[f], want[f])
		}
	}
}

// The model of one row is the covariance of packets thrown into cells: here by
// listing every way three packets can fall.
func TestCovarianceByEnumeration(t *testing.T) {
	prior := Prior{Mean: 7, Between: 3, Within: 2}
	for _, counted := range []bool{false, true} {
		for perRow := 1; perRow <= 3; perRow++ {
			const packets = 3
			p := Problem{Sum: make([]float64, perRow), Rows: 1, CellsPerRow: perRow, Packets: []float64{packets}}
			mean := prior.Mean
			if counted {
				p.Count = make([]float64, perRow)
				mean = 0
			}
			for c := range perRow {
				p.Cells = append(p.Cells, uint32(c))
			}
			s := newSystem(weigh(&p), prior)
			ways := int(math.Pow(float64(perRow), packets))
			for c := range perRow {
				for d := range perRow {
					want := -mean * mean * packets * packets / float64(perRow*perRow)
					for way := range ways {
						var at [packets]int
						for i, rest := 0, way; i < packets; i, rest = i+1, rest/perRow {
							at[i] = rest % perRow
						}
						for i, x := range at {
							for j, y := range at {
								if x == c && y == d {
									product := mean*mean + prior.Between*prior.Between
									if i == j {
										product += prior.Within * prior.Within
									}
									want += product / float64(ways)
								}
							}
						}
					}
					a := packets / float64(perRow)
					got := s.variance[0] * a * a
					if c == d {
						got += 1/s.trust[c] - s.slack*a*p.perPacket(prior)
					}
					// Without counts κ may outweigh ρ; see leastPart.
					if s.variance[0] > leastPart*prior.ofMean(packets) && math.Abs(got-want) > 1e-12*math.Abs(want) {
						t.Errorf("counted %v, %d cells: covariance of %d, %d is %g, enumerated %g", counted, perRow, c, d, got, want)
					}
				}
			}
		}
	}
}
