package joint

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hoplag/hoplag/estimate"
)

// A world is simulated traffic: packets really thrown into cells, and the mean delay that each flow's packets really had.
type world struct {
	Problem
	truth []float64
	prior prior // the moments that the flows were drawn from
}

// prior is the mean delay of flows, the deviation of their means around it, and that of packets around their flow's.
type prior struct{ Mean, Between, Within float64 }

// run is the cells of flow f in row r.
func (w *world) run(f, r int) []uint32 {
	from := (f*w.Rows + r) * w.CellsPerRow
	return w.Cells[from : from+w.CellsPerRow]
}

// shape says what to simulate.
type shape struct {
	flows, columns, rows, perRow int
	adjacent, counted            bool      // a run of neighbouring cells, as in LDS; cells that count
	rates                        []float64 // of rows
	normal                       bool      // flow means normal, not two-mode
}

// simulate draws Pareto flow sizes, flow means from two skewed modes (one in four flows four times as slow), lognormal packet
// delays whose deviation is half their flow's mean, and throws every packet into a cell of every row.
func simulate(s shape, seed uint64) *world {
	rng := rand.New(rand.NewPCG(seed, 20))
	w := &world{truth: make([]float64, s.flows)}
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

var shapes = map[string]shape{
	"SDS":             {flows: 4000, columns: 500, rows: 4, perRow: 1, counted: true},
	"LDS":             {flows: 4000, columns: 1500, rows: 3, perRow: 4, adjacent: true, counted: true},
	"LDS, rates":      {flows: 4000, columns: 1500, rows: 3, perRow: 4, adjacent: true, counted: true, rates: []float64{1, 0.5, 0.1}},
	"COLATE":          {flows: 4000, columns: 3000, rows: 1, perRow: 20},
	"COLATE, counted": {flows: 4000, columns: 3000, rows: 1, perRow: 20, counted: true},
}

func (w *world) solve(t testing.TB, opts Options) Result {
	t.Helper()
	r, err := w.Solve(context.Background(), opts)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// medianError is the median relative error of flows of at least a given number of packets.
func (w *world) medianError(mean []float64, least float64) float64 {
	var e []float64
	for f, packets := range w.Packets {
		if packets >= least {
			e = append(e, estimate.RelativeError(mean[f], w.truth[f]))
		}
	}
	slices.Sort(e)
	return e[len(e)/2]
}

// heavy begins a test that does a lot in one goroutine: there the race detector, which watches short tests, has nothing to find.
func heavy(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("a lot to do in one goroutine")
	}
}

// finite reports whether x is a number.
func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

func TestClockOffset(t *testing.T) {
	w := simulate(shapes["LDS"], 2)
	before := w.solve(t, Options{tolerance: 1e-12})
	const offset = -3e6
	for c := range w.Sum {
		w.Sum[c] += offset * w.Count[c]
	}
	after := w.solve(t, Options{tolerance: 1e-12})
	for f := range before.Mean {
		if math.Abs(after.Mean[f]-before.Mean[f]-offset) > 1e-6*w.prior.Between ||
			math.Abs(after.StdDev[f]/before.StdDev[f]-1) > 1e-6 {
			t.Fatalf("flow %d: %g ± %g moved to %g ± %g", f, before.Mean[f], before.StdDev[f], after.Mean[f], after.StdDev[f])
		}
	}
}

// What an unusable cell holds changes no bit; neither does running again.
func TestUnusableAndDeterministic(t *testing.T) {
	w := simulate(shapes["LDS"], 2)
	w.Unusable = make([]bool, len(w.Sum))
	for c := range w.Unusable {
		w.Unusable[c] = c%7 == 0
	}
	before := w.solve(t, Options{})
	for c, bad := range w.Unusable {
		if bad {
			w.Sum[c], w.Count[c] = math.NaN(), math.Inf(-1)
		}
	}
	after := w.solve(t, Options{})
	if !slices.Equal(before.Mean, after.Mean) || !slices.Equal(before.StdDev, after.StdDev) {
		t.Error("what an unusable cell holds changes the estimates")
	}
	for c := range w.Unusable {
		w.Unusable[c] = true
	}
	if _, err := w.Solve(context.Background(), Options{}); !errors.Is(err, estimate.ErrNoSamples) {
		t.Errorf("all cells unusable: %v", err)
	}
}

func TestErrors(t *testing.T) {
	good := func() *world {
		return simulate(shape{flows: 4, columns: 5, rows: 2, perRow: 2, counted: true}, 1)
	}
	for name, spoil := range map[string]func(w *world, o *Options){
		"no cells a row": func(w *world, _ *Options) { w.CellsPerRow = -1 },
		"counts":         func(w *world, _ *Options) { w.Count = w.Count[1:] },
		"marks":          func(w *world, _ *Options) { w.Unusable = []bool{true} },
		"indices":        func(w *world, _ *Options) { w.Cells = w.Cells[1:] },
		"index":          func(w *world, _ *Options) { w.Cells[3] = 10 },
		"huge index":     func(w *world, _ *Options) { w.Cells[3] = math.MaxUint32 },
		"packets NaN":    func(w *world, _ *Options) { w.Packets[0] = math.NaN() },
		"packets many":   func(w *world, _ *Options) { w.Packets[0] = 1e19 },
		"packets few":    func(w *world, _ *Options) { w.Packets[0] = 1e-300 },
		"sum large":      func(w *world, _ *Options) { w.Sum[0] = -1e80 },
		"count large":    func(w *world, _ *Options) { w.Count[0] = 1e200 },
		"variances":      func(w *world, _ *Options) { w.Variance = []float64{1} },
		"variance":       func(w *world, _ *Options) { w.Variance = slices.Repeat([]float64{-1}, len(w.Sum)) },
		"count":          func(w *world, _ *Options) { w.Count[0] = -1 },
		"rates":          func(w *world, _ *Options) { w.Rates = []float64{1} },
		"doubt":          func(w *world, _ *Options) { w.Doubt = []float64{1, 1, 1, -1} },
		"doubt infinite": func(w *world, _ *Options) { w.Doubt = []float64{math.Inf(1), 1, 1, 1} },
	} {
		w, opts := good(), Options{}
		spoil(w, &opts)
		if _, err := w.Solve(context.Background(), opts); !errors.Is(err, estimate.ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for say, spoil := range map[string]func(w *world){
		"0 rows of 2 cells per flow, want at least 1 of 1": func(w *world) { w.Rows = 0 },
		"16 cell indices for 4 flows of":                   func(w *world) { w.Rows, w.CellsPerRow = 1<<(bits.UintSize/2), 1<<(bits.UintSize/2) },
		"1 doubts for 4 flows":                             func(w *world) { w.Doubt = []float64{1} },
		"rate of row 1 is 0, want 1e-09 to 1":              func(w *world) { w.Rates = []float64{1, 0} },
	} {
		w := good()
		spoil(w)
		if _, err := w.Solve(context.Background(), Options{}); !errors.Is(err, estimate.ErrConfig) || !strings.Contains(err.Error(), say) {
			t.Errorf("%v, want %q", err, say)
		}
	}
	if _, err := (&Problem{Rows: 1, CellsPerRow: 1}).Solve(context.Background(), Options{}); !errors.Is(err, estimate.ErrNoSamples) {
		t.Errorf("nothing at all: %v", err)
	}
}

// Whatever the cells hold, every estimate is a number and every deviation at
// least 0, or there is an error. Numbers at the ends of what is allowed, in any company, give finite answers.
func TestExtremes(t *testing.T) {
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 5))
		any := func(of ...float64) float64 { return of[rng.IntN(len(of))] }
		p := Problem{Rows: 1 + rng.IntN(3), CellsPerRow: 1 + rng.IntN(3)}
		cells, counted := 1+rng.IntN(6), rng.IntN(2) == 0
		for range cells {
			p.Sum = append(p.Sum, any(0, 1, 1e6, 1e18, 1e30, 1e-300)*(rng.Float64()*2-1))
			if counted {
				p.Count = append(p.Count, any(0, 1, 5, 1e9, 1e18))
			}
		}
		for range p.Rows {
			p.Rates = append(p.Rates, any(1, 0.5, 1e-6, 1e-9))
		}
		for range 1 + rng.IntN(6) {
			p.Packets = append(p.Packets, any(0, 1, 2, 100, 1e9, 1e18, 0.5, 1e-9))
			p.Doubt = append(p.Doubt, any(0, 0, 1, 1e9, 1e18))
			p.Sampled = append(p.Sampled, Sample{any(0, 1, -1e30), any(0, 1, 1e18), any(0, 1, 1e308)})
			for range p.Rows * p.CellsPerRow {
				p.Cells = append(p.Cells, uint32(rng.IntN(cells)))
			}
		}
		opts := Options{}
		if rng.IntN(3) == 0 {
			for range p.Sum {
				p.Variance = append(p.Variance, any(0, 1, 1e30, 1e60))
			}
		}
		r, err := p.Solve(context.Background(), opts)
		if err != nil {
			if !errors.Is(err, estimate.ErrNoSamples) {
				t.Fatalf("seed %d: %v", seed, err)
			}
			continue
		}
		for f := range r.Mean {
			if !finite(r.Mean[f]) || !(r.StdDev[f] >= 0) || !finite(r.StdDev[f]) {
				t.Fatalf("seed %d: flow %d: %g ± %g", seed, f, r.Mean[f], r.StdDev[f])
			}
		}
	}
}

func ExampleProblem_Solve() {
	// Two rows of three cells. Flow 0 sent 100 packets of 50 µs, flow 1 sent 10 of 90 µs, flow 2 sent 50 of 20
	// µs. Flows 0 and 1 share a cell in the first row, flows 1 and 2 in the second.
	p := Problem{
		Sum:   []float64{5.9e6, 1e6, 0, 5e6, 1.9e6, 0},
		Count: []float64{110, 50, 0, 100, 60, 0},
		Rows:  2, CellsPerRow: 1,
		Packets: []float64{100, 10, 50},
		Cells:   []uint32{0, 3, 0, 4, 1, 4},
	}
	r, err := p.Solve(context.Background(), Options{})
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

// offBy returns how far means are from others, in deviations: the median and the greatest.
func offBy(got, want Result) (median, most float64) {
	off := make([]float64, len(got.Mean))
	for f, mean := range got.Mean {
		off[f] = math.Abs(mean-want.Mean[f]) / want.StdDev[f]
	}
	slices.Sort(off)
	return off[len(off)/2], off[len(off)-1]
}

// The iteration ends when it adds little to the error of means that are known to a millionth, or hardly at all.
func TestIterationEndsInTheNoise(t *testing.T) {
	worlds := map[string]*world{"determined": determinedWorld(3200, 11, 3), "crowded": determinedWorld(9000, 12, 30)}
	for name := range shapes {
		worlds[name] = simulate(shapes[name], 13)
	}
	for name, w := range worlds {
		got, want := w.solve(t, Options{}), w.solve(t, Options{tolerance: 1e-9})
		median, most := offBy(got, want)
		if median > 0.2 || most > 6 {
			t.Errorf("%s: off by %.3f of the deviations, at most %.2f", name, median, most)
		}
	}
	// Negative control: a few iterations are not enough.
	w := worlds["determined"]
	few := w.solve(t, Options{tolerance: math.Inf(1)})
	if median, _ := offBy(few, w.solve(t, Options{tolerance: 1e-9})); median < 0.3 {
		t.Errorf("off by %.3f of the deviations after 16 iterations", median)
	}
}
