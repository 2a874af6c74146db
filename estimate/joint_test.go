package estimate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
)

// A jointWorld is simulated traffic: packets really thrown into cells, and the
// mean delay that each flow's packets really had.
type jointWorld struct {
	JointProblem
	truth []float64
	prior JointPrior // the moments that the flows were drawn from
}

// jointShape says what to simulate.
type jointShape struct {
	flows, columns, rows, perRow int
	adjacent, counted            bool      // a run of neighbouring cells, as in LDS; cells that count
	rates                        []float64 // of rows
	normal                       bool      // flow means normal, not two-mode
}

// simulateJoint draws Pareto flow sizes, flow means from two skewed modes (one
// in four flows four times as slow), lognormal packet delays whose deviation is
// half their flow's mean, and throws every packet into a cell of every row.
func simulateJoint(s jointShape, seed uint64) *jointWorld {
	rng := rand.New(rand.NewPCG(seed, 20))
	w := &jointWorld{truth: make([]float64, s.flows)}
	w.Rows, w.CellsPerRow, w.Rates = s.rows, s.perRow, s.rates
	w.Sum = make([]float64, s.rows*s.columns)
	count := make([]float64, len(w.Sum))
	w.Packets = make([]float64, s.flows)
	w.Cells = make([]uint32, s.flows*s.rows*s.perRow)

	const fast, slow, slowPart, flowSpread, packetSpread = 100e3, 400e3, 0.25, 0.3, 0.5
	skew := math.Exp(flowSpread * flowSpread)
	w.prior.Mean = (1-slowPart)*fast + slowPart*slow
	square := ((1-slowPart)*fast*fast + slowPart*slow*slow) * skew
	w.prior.Between = math.Sqrt(square - w.prior.Mean*w.prior.Mean)
	w.prior.Within = math.Sqrt(square * (math.Exp(packetSpread*packetSpread) - 1))

	for f := range s.flows {
		packets := int(min(3*math.Pow(1-rng.Float64(), -1/1.1)-2, 2e4))
		w.Packets[f] = float64(packets)
		for r := range s.rows {
			base := rng.IntN(s.columns)
			for i := range w.run(f, r) {
				column := rng.IntN(s.columns)
				if s.adjacent {
					column = (base + i) % s.columns
				}
				w.run(f, r)[i] = uint32(r*s.columns + column)
			}
		}
		mean := fast
		if rng.Float64() < slowPart {
			mean = slow
		}
		mean *= math.Exp(flowSpread*rng.NormFloat64() - flowSpread*flowSpread/2)
		if s.normal {
			mean = w.prior.Mean + w.prior.Between*rng.NormFloat64()
		}
		for range packets {
			delay := mean * math.Exp(packetSpread*rng.NormFloat64()-packetSpread*packetSpread/2)
			if s.normal {
				delay = mean + w.prior.Within*rng.NormFloat64()
			}
			w.truth[f] += delay / float64(packets)
			for r := range s.rows {
				if s.rates == nil || rng.Float64() < s.rates[r] {
					c := w.run(f, r)[rng.IntN(s.perRow)]
					w.Sum[c] += delay
					count[c]++
				}
			}
		}
	}
	if s.counted {
		w.Count = count
	}
	return w
}

var jointShapes = map[string]jointShape{
	"SDS":             {flows: 4000, columns: 500, rows: 4, perRow: 1, counted: true},
	"LDS":             {flows: 4000, columns: 1500, rows: 3, perRow: 4, adjacent: true, counted: true},
	"LDS, rates":      {flows: 4000, columns: 1500, rows: 3, perRow: 4, adjacent: true, counted: true, rates: []float64{1, 0.5, 0.1}},
	"COLATE":          {flows: 4000, columns: 3000, rows: 1, perRow: 20},
	"COLATE, counted": {flows: 4000, columns: 3000, rows: 1, perRow: 20, counted: true},
}

func (w *jointWorld) solve(t testing.TB, opts JointOptions) JointResult {
	t.Helper()
	r, err := w.Solve(context.Background(), opts)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Converged {
		t.Fatalf("not converged: residual %g after %d iterations", r.Residual, r.Iterations)
	}
	return r
}

// The equations, written out: a dense covariance of all cells, one flow's
// contribution at a time, its Cholesky factor, and μ + ρ·aᵀK⁻¹y.
func denseJoint(p *JointProblem, prior JointPrior) (mean, deviation []float64) {
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
		cov[i][i] = max(0, noise) + 0.01*n*packet
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

func TestJointIsTheDenseSolution(t *testing.T) {
	for name, shape := range jointShapes {
		t.Run(name, func(t *testing.T) {
			shape.flows, shape.columns = 80, 40
			w := simulateJoint(shape, 7)
			w.Packets[5] = 0
			w.Unusable = make([]bool, len(w.Sum))
			w.Unusable[3], w.Unusable[17] = true, true
			want, deviation := denseJoint(&w.JointProblem, w.prior)
			got := w.solve(t, JointOptions{Prior: &w.prior, Tolerance: 1e-13})
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
			other, _ := denseJoint(&w.JointProblem, wrong)
			if math.Abs(other[0]-want[0]) <= 1e-8*w.prior.Between {
				t.Errorf("a 1 %% larger deviation is not told apart: %g, %g", other[0], want[0])
			}
		})
	}
}

// Where no two flows meet in more than one cell and none in a ring, messages
// are exact, up to how far they settle.
func TestJointMessagesOnATree(t *testing.T) {
	p := JointProblem{
		Sum: []float64{900, 5000, 800, 700, 3000}, Count: []float64{9, 45, 8, 6, 32},
		Rows: 1, CellsPerRow: 2,
		Packets: []float64{20, 60, 10, 10},
		Cells:   []uint32{0, 1, 1, 2, 1, 3, 3, 4},
	}
	prior := JointPrior{Mean: 100, Between: 40, Within: 20}
	_, want := denseJoint(&p, prior)
	s := newJointSystem(&p, prior)
	got, err := s.messages(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	s.finish(make([]float64, len(got)), got)
	for f := range got {
		if math.Abs(got[f]/want[f]-1) > jointSettled {
			t.Errorf("flow %d: deviation %g, dense %g", f, got[f], want[f])
		}
	}
}

// The model of one row is the covariance of packets thrown into cells: here by
// listing every way three packets can fall.
func TestJointCovarianceByEnumeration(t *testing.T) {
	prior := JointPrior{Mean: 7, Between: 3, Within: 2}
	for _, counted := range []bool{false, true} {
		for perRow := 1; perRow <= 3; perRow++ {
			const packets = 3
			p := JointProblem{Sum: make([]float64, perRow), Rows: 1, CellsPerRow: perRow, Packets: []float64{packets}}
			mean := prior.Mean
			if counted {
				p.Count = make([]float64, perRow)
				mean = 0
			}
			for c := range perRow {
				p.Cells = append(p.Cells, uint32(c))
			}
			s := newJointSystem(&p, prior)
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
						got += 1/s.trust[c] - jointSlack*a*p.perPacket(prior)
					}
					// Without counts κ may outweigh ρ; see jointLeast.
					if s.variance[0] > jointLeast*prior.ofMean(packets) && math.Abs(got-want) > 1e-12*math.Abs(want) {
						t.Errorf("counted %v, %d cells: covariance of %d, %d is %g, enumerated %g", counted, perRow, c, d, got, want)
					}
				}
			}
		}
	}
}

// covered is the part of the flows of low to high packets whose truth is in
// the 95 % interval, and how many there are.
func (w *jointWorld) covered(r JointResult, low, high float64) (part float64, n int) {
	for f, packets := range w.Packets {
		if packets >= low && packets <= high {
			n++
			if r.Interval(f, 0.95).Contains(w.truth[f]) {
				part++
			}
		}
	}
	return part / float64(n), n
}

// jointClassesOfSize are the sizes of flows that intervals must cover alike.
var jointClassesOfSize = [][2]float64{{1, math.Inf(1)}, {1, 9}, {10, 99}, {100, math.Inf(1)}}

// lowestCoverage is what n flows that are covered with 95 % fall below with a
// probability of 1e-6.
func lowestCoverage(n int) float64 {
	return 0.95 + NormalQuantile(1e-6)*math.Sqrt(0.95*0.05/float64(n))
}

// The intervals cover, over all flows and in each class of size, though flow
// means have two modes, sizes are Pareto, and no prior is given.
func TestJointCoverage(t *testing.T) {
	heavy(t)
	for name, shape := range jointShapes {
		t.Run(name, func(t *testing.T) {
			w := simulateJoint(shape, 11)
			r := w.solve(t, JointOptions{})
			for _, class := range jointClassesOfSize {
				part, n := w.covered(r, class[0], class[1])
				t.Logf("%g to %g packets: %.4f of %d flows", class[0], class[1], part, n)
				if part < lowestCoverage(n) {
					t.Errorf("95 %% intervals of flows of %g to %g packets cover %.4f of %d", class[0], class[1], part, n)
				}
			}
			// Controls: a prior that believes all flows alike, and one that
			// believes packets exact, must be caught by the same check.
			for _, wrong := range []JointPrior{
				{Mean: w.prior.Mean, Between: w.prior.Between / 10, Within: w.prior.Within},
				{Mean: w.prior.Mean, Between: w.prior.Between / 10, Within: w.prior.Within / 10},
			} {
				r := w.solve(t, JointOptions{Prior: &wrong})
				if part, n := w.covered(r, 1, math.Inf(1)); part >= lowestCoverage(n) {
					t.Errorf("with prior %+v the intervals still cover %.4f of %d", wrong, part, n)
				}
			}
		})
	}
}

// The deviations are the size of the errors: where everything is normal, the
// mean square of error over deviation is 1 for the model's exact case.
func TestJointDeviationIsTheError(t *testing.T) {
	shape := jointShapes["COLATE, counted"]
	shape.normal = true
	w := simulateJoint(shape, 5)
	r := w.solve(t, JointOptions{Prior: &w.prior})
	check := func(scale float64) (float64, float64) {
		var m Moments
		for f, truth := range w.truth {
			z := (r.Mean[f] - truth) / (scale * r.StdDev[f])
			m.Add(z * z)
		}
		return m.Mean(), math.Sqrt(2 / float64(m.N())) // variance of a normal's square is 2
	}
	// Errors of flows that share cells are not independent; twice the deviation
	// of independent ones allows for it.
	alarm := -2 * NormalQuantile(1e-6)
	if mean, wrong := check(1); math.Abs(mean-1) > alarm*wrong {
		t.Errorf("mean square of error over deviation is %g, want 1 ± %g", mean, alarm*wrong)
	}
	for _, scale := range []float64{0.8, 1.25} {
		if mean, wrong := check(scale); math.Abs(mean-1) <= alarm*wrong {
			t.Errorf("deviations × %g pass: %g", scale, mean)
		}
	}
}

// medianError is the median relative error of flows of at least so many packets.
func (w *jointWorld) medianError(mean []float64, least float64) float64 {
	var e []float64
	for f, packets := range w.Packets {
		if packets >= least {
			e = append(e, RelativeError(mean[f], w.truth[f]))
		}
	}
	slices.Sort(e)
	return e[len(e)/2]
}

// leastLoaded is what LDS does without flow records: the mean of a flow's cell
// that has the fewest packets.
func (w *jointWorld) leastLoaded() []float64 {
	mean := make([]float64, len(w.Packets))
	width := w.Rows * w.CellsPerRow
	for f := range mean {
		cells := w.Cells[f*width : (f+1)*width]
		best := slices.MinFunc(cells, func(a, b uint32) int { return int(w.Count[a] - w.Count[b]) })
		mean[f] = w.Sum[best] / w.Count[best]
	}
	return mean
}

// A quarter of the error of the least contaminated cell is promised for flows
// of 100 packets and more.
func TestJointBeatsTheLeastLoadedCell(t *testing.T) {
	heavy(t)
	w := simulateJoint(jointShapes["SDS"], 3)
	joint, least := w.medianError(w.solve(t, JointOptions{}).Mean, 100), w.medianError(w.leastLoaded(), 100)
	t.Logf("median error of flows of 100 packets: %.4f, least loaded cell %.4f", joint, least)
	if joint > least/4 {
		t.Errorf("median error %.4f is more than a quarter of the least loaded cell's %.4f", joint, least)
	}
}

// The estimated prior is the one flows were drawn from: the mean of variances
// estimated from independent worlds is within what their spread allows.
func TestJointPriorIsFound(t *testing.T) {
	heavy(t)
	for name, shape := range jointShapes {
		t.Run(name, func(t *testing.T) {
			shape.normal = true
			var between, within Moments
			var prior JointPrior
			for seed := range uint64(24) {
				w := simulateJoint(shape, 100+seed)
				prior = w.prior
				got, err := w.EstimatePrior()
				if err != nil {
					t.Fatal(err)
				}
				between.Add(got.Between * got.Between)
				within.Add(got.Within * got.Within)
			}
			alarm := -StudentQuantile(0.5e-6, 23)
			check := func(what string, m *Moments, want float64) bool {
				wrong := alarm * math.Sqrt(m.Variance()/24)
				t.Logf("%s variance %.4g ± %.2g, want %.4g", what, m.Mean(), wrong, want)
				return math.Abs(m.Mean()-want) <= wrong
			}
			if !check("between", &between, prior.Between*prior.Between) || check("wrong", &between, 3*prior.Between*prior.Between) {
				t.Error("between is not what flows were drawn from, or not told apart")
			}
			if !check("within", &within, prior.Within*prior.Within) {
				t.Error("within is not what flows were drawn from")
			}
		})
	}
}

func TestJointClockOffset(t *testing.T) {
	w := simulateJoint(jointShapes["LDS"], 2)
	before := w.solve(t, JointOptions{Tolerance: 1e-12})
	const offset = -3e6
	for c := range w.Sum {
		w.Sum[c] += offset * w.Count[c]
	}
	after := w.solve(t, JointOptions{Tolerance: 1e-12})
	for f := range before.Mean {
		if math.Abs(after.Mean[f]-before.Mean[f]-offset) > 1e-6*w.prior.Between ||
			math.Abs(after.StdDev[f]/before.StdDev[f]-1) > 1e-6 {
			t.Fatalf("flow %d: %g ± %g moved to %g ± %g", f, before.Mean[f], before.StdDev[f], after.Mean[f], after.StdDev[f])
		}
	}
}

// What an unusable cell holds changes no bit; neither does running again.
func TestJointUnusableAndDeterministic(t *testing.T) {
	w := simulateJoint(jointShapes["LDS"], 2)
	w.Unusable = make([]bool, len(w.Sum))
	for c := range w.Unusable {
		w.Unusable[c] = c%7 == 0
	}
	before := w.solve(t, JointOptions{})
	for c, bad := range w.Unusable {
		if bad {
			w.Sum[c], w.Count[c] = math.NaN(), math.Inf(-1)
		}
	}
	after := w.solve(t, JointOptions{})
	if !slices.Equal(before.Mean, after.Mean) || !slices.Equal(before.StdDev, after.StdDev) {
		t.Error("what an unusable cell holds changes the estimates")
	}
	for c := range w.Unusable {
		w.Unusable[c] = true
	}
	if _, err := w.Solve(context.Background(), JointOptions{}); !errors.Is(err, ErrNoSamples) {
		t.Errorf("all cells unusable: %v", err)
	}
	if _, err := w.Solve(context.Background(), JointOptions{Prior: &w.prior}); !errors.Is(err, ErrNoSamples) {
		t.Errorf("all cells unusable, prior given: %v", err)
	}
}

func TestJointProgressAndCancel(t *testing.T) {
	w := simulateJoint(jointShapes["LDS"], 2)
	var steps []float64
	w.solve(t, JointOptions{Progress: func(done float64) { steps = append(steps, done) }})
	if !slices.IsSorted(steps) || steps[0] < 0 || steps[len(steps)-1] != 1 {
		t.Errorf("progress %v", steps)
	}
	for _, at := range []int{0, 5, len(steps) / 2, len(steps) - 3} {
		ctx, cancel := context.WithCancel(context.Background())
		step := 0
		_, err := w.Solve(ctx, JointOptions{Progress: func(float64) {
			if step == at {
				cancel()
			}
			step++
		}})
		if !errors.Is(err, context.Canceled) || step != at+1 {
			t.Errorf("cancelled at step %d of %d: %v after %d", at, len(steps), err, step)
		}
		cancel()
	}
	r, err := w.Solve(context.Background(), JointOptions{MaxIterations: 1})
	if err != nil || r.Converged || r.Iterations != 1 {
		t.Errorf("one iteration: %v, converged %v after %d", err, r.Converged, r.Iterations)
	}
}

// Memory is in proportion to flows, cells and entries, with the constants that
// Solve's comment gives (what is dropped on the way counted too).
func TestJointMemory(t *testing.T) {
	for _, size := range []int{1, 4} {
		shape := jointShapes["COLATE"]
		shape.flows, shape.columns = shape.flows*size, shape.columns*size
		w := simulateJoint(shape, 2)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		w.solve(t, JointOptions{})
		runtime.ReadMemStats(&after)
		got, bound := after.TotalAlloc-before.TotalAlloc, uint64(8*(37*len(w.Packets)+20*len(w.Sum))+4*len(w.Cells)+1<<16)
		if got > bound {
			t.Errorf("%d flows: %d bytes allocated, want up to %d", len(w.Packets), got, bound)
		}
	}
}

func TestJointErrors(t *testing.T) {
	good := func() *jointWorld {
		return simulateJoint(jointShape{flows: 4, columns: 5, rows: 2, perRow: 2, counted: true}, 1)
	}
	for name, spoil := range map[string]func(w *jointWorld, o *JointOptions){
		"no rows":        func(w *jointWorld, _ *JointOptions) { w.Rows = 0 },
		"no cells a row": func(w *jointWorld, _ *JointOptions) { w.CellsPerRow = -1 },
		"counts":         func(w *jointWorld, _ *JointOptions) { w.Count = w.Count[1:] },
		"marks":          func(w *jointWorld, _ *JointOptions) { w.Unusable = []bool{true} },
		"indices":        func(w *jointWorld, _ *JointOptions) { w.Cells = w.Cells[1:] },
		"index":          func(w *jointWorld, _ *JointOptions) { w.Cells[3] = 10 },
		"huge index":     func(w *jointWorld, _ *JointOptions) { w.Cells[3] = math.MaxUint32 },
		"packets":        func(w *jointWorld, _ *JointOptions) { w.Packets[0] = -1 },
		"packets NaN":    func(w *jointWorld, _ *JointOptions) { w.Packets[0] = math.NaN() },
		"sum":            func(w *jointWorld, _ *JointOptions) { w.Sum[0] = math.Inf(1) },
		"count":          func(w *jointWorld, _ *JointOptions) { w.Count[0] = -1 },
		"rates":          func(w *jointWorld, _ *JointOptions) { w.Rates = []float64{1} },
		"rate":           func(w *jointWorld, _ *JointOptions) { w.Rates = []float64{1, 0} },
		"tolerance":      func(_ *jointWorld, o *JointOptions) { o.Tolerance = 1 },
		"iterations":     func(_ *jointWorld, o *JointOptions) { o.MaxIterations = -1 },
		"prior":          func(_ *jointWorld, o *JointOptions) { o.Prior = &JointPrior{Mean: 1, Within: 1} },
		"prior NaN":      func(_ *jointWorld, o *JointOptions) { o.Prior = &JointPrior{Mean: math.NaN(), Between: 1} },
	} {
		w, opts := good(), JointOptions{}
		spoil(w, &opts)
		if _, err := w.Solve(context.Background(), opts); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := (&JointProblem{Rows: 1, CellsPerRow: 1}).Solve(context.Background(), JointOptions{}); !errors.Is(err, ErrNoSamples) {
		t.Errorf("nothing at all: %v", err)
	}
}

// Whatever the cells hold, every estimate is a number and every deviation at
// least 0, or there is an error.
func FuzzJoint(f *testing.F) {
	f.Add(uint8(2), uint8(2), true, []byte("\x00\x01\x02\x03\x01\x02\x03\x04\xff\xfe\x01"))
	f.Add(uint8(1), uint8(1), true, []byte{0, 0, 0, 0, 0, 0})
	f.Add(uint8(1), uint8(3), false, []byte{200, 7, 7, 7, 1, 7, 7, 7})
	f.Add(uint8(0), uint8(3), false, []byte("00000"))
	f.Add(uint8(4), uint8(1), true, []byte{1, 2, 3, 4, 5, 9, 8, 7, 6, 5})
	f.Fuzz(func(t *testing.T, rows, perRow uint8, counted bool, data []byte) {
		p := JointProblem{Rows: int(rows%4) + 1, CellsPerRow: int(perRow%4) + 1}
		const cells = 9
		width := p.Rows * p.CellsPerRow
		for len(data) > width && len(p.Packets) < 40 {
			p.Packets = append(p.Packets, float64(data[0])*float64(data[0])/4)
			for _, b := range data[1 : width+1] {
				p.Cells = append(p.Cells, uint32(b%cells))
			}
			data = data[width+1:]
		}
		p.Sum = make([]float64, cells)
		count := make([]float64, cells)
		for i, b := range data {
			p.Sum[i%cells] += (float64(b) - 100) * 1e6
			count[i%cells] += float64(b % 5)
		}
		if counted {
			p.Count = count
		}
		r, err := p.Solve(context.Background(), JointOptions{MaxIterations: 200})
		if err != nil {
			return
		}
		for i := range r.Mean {
			if !finite(r.Mean[i]) || !(r.StdDev[i] >= 0) || !finite(r.StdDev[i]) {
				t.Fatalf("flow %d: %g ± %g, prior %+v", i, r.Mean[i], r.StdDev[i], r.Prior)
			}
		}
	})
}

func ExampleJointProblem_Solve() {
	// Two rows of three cells. Flow 0 sent 100 packets of 50 µs, flow 1 sent 10
	// of 90 µs, flow 2 sent 50 of 20 µs. Flows 0 and 1 share a cell in the first row,
	// flows 1 and 2 in the second.
	p := JointProblem{
		Sum:   []float64{5.9e6, 1e6, 0, 5e6, 1.9e6, 0},
		Count: []float64{110, 50, 0, 100, 60, 0},
		Rows:  2, CellsPerRow: 1,
		Packets: []float64{100, 10, 50},
		Cells:   []uint32{0, 3, 0, 4, 1, 4},
	}
	r, err := p.Solve(context.Background(), JointOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for f, mean := range r.Mean {
		fmt.Printf("flow %d: %.0f µs\n", f, mean/1e3)
	}
	// Output:
	// flow 0: 50 µs
	// flow 1: 90 µs
	// flow 2: 20 µs
}

// BenchmarkJoint decodes 300,000 flows over 20 cells each.
func BenchmarkJoint(b *testing.B) {
	for _, columns := range []int{45_500, 455_000} {
		b.Run(fmt.Sprint(columns), func(b *testing.B) {
			w := simulateJoint(jointShape{flows: 300_000, columns: columns, rows: 1, perRow: 20}, 1)
			b.ReportAllocs()
			for b.Loop() {
				r := w.solve(b, JointOptions{})
				b.ReportMetric(float64(r.Iterations), "iterations")
			}
		})
	}
}
