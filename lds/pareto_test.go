package lds

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lds/paper"
)

// traffic is the paper's fitted distribution: it is the one with Scale 1 that
// gives its z = 0.0875 for x = 50 at n/C = 2.
var traffic = Pareto{Shape: 0.8, Scale: 1}

// lossless is a base whose rows see every packet.
var lossless = func() Config {
	c := DefaultConfig
	c.Rates = [MaxRows]float64{1, 1, 1, 1}
	return c
}()

func TestPaperExample(t *testing.T) {
	// Section 3.1, to the digits that are printed there.
	load := 2 * traffic.Tail(50)
	for _, c := range []struct {
		name, format string
		got          float64
		want         string
	}{
		{"z", "%.4f", load, "0.0875"},
		{"Q(1)", "%.2f", paper.SmallCollisions(load, 1, 1), "0.91"},
		{"R", "%.2f", paper.OptimalRows(0.0875), "4.20"}, // of the rounded load
		{"q(4, z)", "%.3f", paper.SmallCollisions(load, 4, 1), "0.985"},
		{"survivable at n = C/(2P)", "%.4f", paper.Survivable(1000/(2*traffic.Tail(50)), traffic.Tail(50), 1000), "250.0000"},
		{"gain of rows at ε = 0.015", "%.2f", math.Pow(0.015, 1.0/4) / 4 / 0.015, "5.83"},
	} {
		if got := fmt.Sprintf(c.format, c.got); got != c.want {
			t.Errorf("%s = %s, want %s", c.name, got, c.want)
		}
	}
}

func TestSurvivableIsGreatestAtHalfLoad(t *testing.T) {
	large := traffic.Tail(50)
	best := paper.Survivable(1/(2*large), large, 1)
	for n := 0.1; n < 50; n *= 1.01 {
		if paper.Survivable(n/large/10, large, 1) > best+1e-12 {
			t.Errorf("%v survivable at load %v", paper.Survivable(n/large/10, large, 1), n/10)
		}
	}
	if paper.Survivable(1e6, 1, 10) != 0 {
		t.Error("overloaded, there should be none")
	}
}

func TestOptimalRowsAreBest(t *testing.T) {
	for load := 0.001; load < 2; load *= 1.1 {
		rows := paper.OptimalRows(load)
		best := paper.SmallCollisions(load, max(1, int(math.Floor(rows))), 1)
		best = max(best, paper.SmallCollisions(load, int(math.Ceil(rows)), 1))
		for r := 1; r < 2000; r++ {
			if paper.SmallCollisions(load, r, 1) > best+1e-12 {
				t.Fatalf("load %v: %d rows are better than %v", load, r, rows)
			}
		}
	}
}

// TestSmallSums counts, in sketches filled by the paper's traffic, how many
// flows meet at most 50 packets of others in some row, and holds both models to
// that.
func TestSmallSums(t *testing.T) {
	const flows, cells, limit, probes, sketches = 20000, 10000, 50, 5000, 8
	measured := func(rows int) float64 {
		c := Config{Rows: rows, Columns: cells / rows, Spread: 1, SumBits: 48}
		c.Rates = fitRates(c.Rates, rows)
		s := mustNew(t, c)
		r := rand.New(rand.NewPCG(31, 31))
		small, flow := 0.0, uint64(0)
		next := func() hashing.Flow { flow++; return hashing.Flow(hashing.Word(1, flow)) }
		for range sketches {
			s.Reset()
			for range flows {
				n := min(math.Ceil(math.Pow(1-r.Float64(), -1/traffic.Shape)), 1e6)
				s.UpdateWeighted(next(), 0, 0, uint32(n), 0)
			}
			for range probes { // other flows meet what is there
				if s.Packets(next()) <= limit {
					small++
				}
			}
		}
		return small / (probes * sketches)
	}
	load := flows * traffic.Tail(limit) / cells
	for _, rows := range []int{1, 2, 4} {
		got := measured(rows)
		// 5 binomial deviations over the probes, half as much again because
		// probes of one sketch meet the same cells.
		off := func(model float64) float64 {
			return math.Abs(got-model) / (7.5 * math.Sqrt(got*(1-got)/(probes*sketches)))
		}
		model := SmallSums(flows/float64(cells), traffic, limit, rows, 1)
		if off(model) > 1 {
			t.Errorf("%d rows: %.4f have small collisions, the sums say %.4f", rows, got, model)
		}
		// Negative controls: a fifth more flows, and with several rows the
		// paper's model.
		if more := SmallSums(1.2*flows/cells, traffic, limit, rows, 1); off(more) <= 1 {
			t.Errorf("%d rows: %.4f, the check does not notice a fifth more flows: %.4f", rows, got, more)
		}
		if single := paper.SmallCollisions(load, rows, 1); rows > 1 && off(single) <= 1 {
			t.Errorf("%d rows: %.4f, the paper's model agrees after all: %.4f", rows, got, single)
		}
		t.Logf("%d rows: measured %.4f, sums %.4f, paper's model %.4f", rows, got, model, paper.SmallCollisions(load, rows, 1))
	}
}

func TestSmallSumsSpreadAndSteps(t *testing.T) {
	// One flow of one packet at most: the cell is empty, or has one flow of
	// one packet, which a continuous distribution from 1 on rounded up has not.
	if got, want := smallSum(0.7, traffic, 1), math.Exp(-0.7); math.Abs(got-want) > 1e-12 {
		t.Errorf("%v, want %v", got, want)
	}
	// Coarser steps round sizes up, and change little.
	exact := smallSum(2, traffic, latticeSteps)
	if coarse := smallSum(2, traffic, latticeSteps*1.01); coarse < exact-0.01 || coarse > exact+0.01 {
		t.Errorf("in steps of 1.01 packets %v, of 1 %v", coarse, exact)
	}
	// More flows, more failures; a spread of k is k times the places.
	last := 1.0
	for n := 0.01; n < 100; n *= 1.5 {
		q := SmallSums(n, traffic, 50, 4, 1)
		if !(q >= 0 && q <= last) {
			t.Fatalf("%v flows per cell: %v after %v", n, q, last)
		}
		last = q
		if a, b := SmallSums(n, traffic, 50, 2, 2), q; a != b {
			t.Errorf("2 rows with a spread of 2: %v, 4 rows: %v", a, b)
		}
	}
}

func TestFitPareto(t *testing.T) {
	const n = 100000
	r := rand.New(rand.NewPCG(32, 32))
	sizes := make([]uint64, n)
	for i := range sizes {
		sizes[i] = uint64(math.Pow(1-r.Float64(), -1/0.8))
	}
	got, err := FitPareto(sizes, 50)
	if err != nil || got.Scale != 50 {
		t.Fatal(got, err)
	}
	// The estimate's relative deviation is 1/√m for m sizes in the tail; whole
	// packets add 1 % at 50.
	tail := n * traffic.Tail(50)
	if e := math.Abs(got.Shape/0.8 - 1); e > 0.01+5/math.Sqrt(tail) {
		t.Errorf("shape %v, want 0.8", got.Shape)
	}
	for _, sizes := range [][]uint64{nil, {1, 2, 3}, {50, 50}} {
		if got, err := FitPareto(sizes, 50); !errors.Is(err, estimate.ErrNoSamples) {
			t.Errorf("%v: %+v, %v", sizes, got, err)
		}
	}
	if traffic.Tail(0.5) != 1 || traffic.Tail(1) != 1 || math.Abs(traffic.Tail(32)-0.0625) > 1e-15 {
		t.Error("Tail(0.5), Tail(1), Tail(32) =", traffic.Tail(0.5), traffic.Tail(1), traffic.Tail(32))
	}
}

func TestPlanByMemoryHasTheFewestFailures(t *testing.T) {
	for _, spread := range []int{1, 5} {
		for _, cells := range []int{7000, 73000, 700000} {
			base := lossless
			base.Spread = spread
			d := Demand{Flows: 146000, Sizes: traffic, Large: 50, Memory: cells * base.CellBytes(), Base: base}
			forecast, err := Plan(d)
			c := forecast.Config
			if err != nil || forecast.Memory > d.Memory || forecast.Memory < d.Memory*99/100 {
				t.Fatalf("%+v, %+v, %v", c, forecast, err)
			}
			large := 146000 * traffic.Tail(50)
			if math.Abs(forecast.Survivable-large*(1-forecast.Failure)) > 1e-6 || math.Abs(forecast.Load-large/float64(c.Rows*c.Columns)) > 1e-9 {
				t.Errorf("%+v", forecast)
			}
			for rows := 1; rows <= mostPlannedRows; rows++ {
				columns := cells / rows
				if f := 1 - SmallSums(146000/float64(rows*columns), traffic, 50, rows, spread); f < forecast.Failure*(1-1e-6)-1e-15 {
					t.Errorf("%d cells, spread %d: %d rows fail less, %v, than %d, %v", cells, spread, rows, f, c.Rows, forecast.Failure)
				}
			}
		}
	}
}

func TestPlanByTargetIsTheSmallest(t *testing.T) {
	for _, spread := range []int{1, 2, 5} {
		for _, failure := range []float64{0.3, 0.1, 0.015, 1e-3} {
			base := lossless
			base.Spread = spread
			d := Demand{Flows: 100000, Sizes: traffic, Large: 100, Failure: failure, Base: base}
			forecast, err := Plan(d)
			c := forecast.Config
			if err != nil || forecast.Failure > failure {
				t.Fatalf("%+v, %+v, %v", c, forecast, err)
			}
			if less := 1 - SmallSums(100000/float64(c.Rows*(c.Columns-1)), traffic, 100, c.Rows, spread); less <= failure {
				t.Errorf("ε = %v, k = %d: a column less would do", failure, spread)
			}
			// With just that memory it is the same sketch, with a byte less
			// there is none.
			d.Memory = forecast.Memory
			if again, err := Plan(d); err != nil || again.Config != c {
				t.Errorf("with its own memory: %+v, %v", again, err)
			}
			d.Memory--
			if _, err := Plan(d); !errors.Is(err, estimate.ErrConfig) {
				t.Errorf("with a byte less: %v", err)
			}
		}
	}
}

func TestTargetRows(t *testing.T) {
	for _, c := range []struct {
		failure float64
		spread  int
		want    float64
	}{{0.015, 1, 4.1997}, {0.015, 2, 2.0999}, {0.015, 5, 1}, {0.5, 1, 1}, {1e-3, 1, 6.9078}} {
		if got := paper.TargetRows(c.failure, c.spread); math.Abs(got-c.want) > 1e-4 {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestPlanKeepsRatesThatFit(t *testing.T) {
	d := Demand{Flows: 146000, Sizes: traffic, Large: 50, Memory: 1 << 20, Base: lossless}
	for rows := 1; rows <= MaxRows; rows++ {
		rates := [MaxRows]float64{}
		for r := range rows {
			rates[r] = 0.5
		}
		d.Base.Rates = rates
		forecast, err := Plan(d)
		c := forecast.Config
		if err != nil || (c.Rates == rates) != (c.Rows == rows) || c.Rates[c.Rows-1] == 0 {
			t.Errorf("%d rates for %d rows: %v, %v", rows, c.Rows, c.Rates, err)
		}
	}
}

func TestPlanRefuses(t *testing.T) {
	good := Demand{Flows: 1000, Sizes: traffic, Large: 50, Failure: 0.1, Base: lossless}
	with := func(change func(*Demand)) Demand { d := good; change(&d); return d }
	for want, d := range map[string]Demand{
		"Flows is 0":        with(func(d *Demand) { d.Flows = 0 }),
		"Sizes is":          with(func(d *Demand) { d.Sizes.Shape = math.NaN() }),
		"Large is 0":        with(func(d *Demand) { d.Large = 0 }),
		"Loss is 0.6":       with(func(d *Demand) { d.Loss = 0.6 }),
		"Loss is NaN":       with(func(d *Demand) { d.Loss = math.NaN() }),
		"Comparisons is -1": with(func(d *Demand) { d.Comparisons = -1 }),
		"Failure is 1":      with(func(d *Demand) { d.Failure = 1 }),
		"Failure is NaN":    with(func(d *Demand) { d.Failure = math.NaN() }),
		"Memory is 0":       with(func(d *Demand) { d.Failure = 0 }),
		"Memory is -1":      with(func(d *Demand) { d.Memory = -1 }),
		"Memory is 11":      with(func(d *Demand) { d.Memory, d.Failure = 11, 0 }),
		"Base.Spread is 0":  with(func(d *Demand) { d.Base = Config{} }),
		"SumBits is 77":     with(func(d *Demand) { d.Base.SumBits = 77 }),
		"Failure is 1e-300": with(func(d *Demand) { d.Flows, d.Failure = math.MaxInt32, 1e-300 }),
		"Tolerance is -1":   with(func(d *Demand) { d.Base.Tolerance = -1 }),
	} {
		if _, err := Plan(d); !errors.Is(err, estimate.ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// Where packets are lost, a plan has rows that sample or compares more often,
// and keeps what it promises: of flows of the planned size as many as it says
// have a cell that lost nothing and holds few of others.
// Where cells are never empty and packets are lost, Plan counts on rows that
// sample, and with none that are thin enough it refuses: what it plans answers
// flows that another sketch of the same memory does not.
func TestPlanKnowsWhatIsOnItsWay(t *testing.T) {
	c := newCrossing(14_600, 1e8, 0.01, 19)
	d := Demand{
		Flows: 14_600, Sizes: Pareto{Shape: 1.1, Scale: 2}, Large: 300, Loss: 0.01, Memory: 42_000,
		Comparisons: 128, Base: accumulatedConfig(),
	}
	blind, err := Plan(d)
	if err != nil {
		t.Fatal(err)
	}
	d.Rate, d.Delay = float64(len(c.passage))/10, 4e8 // of the slowest flows
	aware, err := Plan(d)
	if err != nil {
		t.Fatal(err)
	}
	answered := func(f Forecast) float64 {
		errs, flows, _ := c.answers(c.accumulate(t, f.Config, 8e7), 300, 1)
		return float64(len(errs)) / float64(flows)
	}
	a, b := answered(blind), answered(aware)
	t.Logf("%g packets a second: %.2f on their way in a cell of %+v, answers %.2f; blind %.2f of %+v, %.2f",
		d.Rate, aware.Outstanding, aware.Config.Rates, b, blind.Outstanding, blind.Config.Rates, a)
	if b <= a || aware.Outstanding > mostOutstanding {
		t.Errorf("answers %.2f, planned blindly %.2f; %.2f on their way", b, a, aware.Outstanding)
	}
	d.Delay = 1e12
	if _, err := Plan(d); !errors.Is(err, estimate.ErrConfig) || !strings.Contains(err.Error(), "Delay is 1e+12") {
		t.Errorf("cells that are never empty: %v", err)
	}
	d.Loss = 0 // all packets are counted in the end
	if _, err := Plan(d); err != nil {
		t.Errorf("without loss: %v", err)
	}
}

func TestPlanKnowsLoss(t *testing.T) {
	d := Demand{Flows: 14_600, Sizes: traffic, Large: 300, Memory: 84_000, Base: lossless}
	without, err := Plan(d)
	if err != nil {
		t.Fatal(err)
	}
	d.Loss = 0.01
	with, err := Plan(d)
	if err != nil || with.Config.Rates == without.Config.Rates || with.Failure < without.Failure {
		t.Errorf("at a loss of 1 %%: %+v, %v; without %+v", with, err, without)
	}
	unaware := without.Config
	measured := func(c Config) (failed, flows float64) {
		up, down := mustNew(t, c), mustNew(t, c)
		v := newInterval(83, up, down, d.Loss)
		for i, f := range v.flows {
			if v.packets[i] < 150 || v.packets[i] > 600 {
				continue
			}
			flows++
			if _, err := Estimate(up, down, f); err != nil {
				failed++
			}
		}
		return failed / flows, flows
	}
	aware, n := measured(with.Config)
	blind, _ := measured(unaware)
	t.Logf("%.3f of %.0f flows without an answer, planned blindly %.3f; %.3f planned to fail", aware, n, blind, with.Failure)
	if aware >= blind {
		t.Errorf("%.3f of %.0f flows without an answer, planned without loss %.3f", aware, n, blind)
	}
	if chance := 4 * math.Sqrt(with.Failure/n); aware > with.Failure+chance {
		t.Errorf("%.3f of %.0f flows without an answer, planned %.3f", aware, n, with.Failure)
	}
	d.Failure, d.Memory = 0.1, 0
	once, err := Plan(d)
	if err != nil || once.Failure > 0.1 {
		t.Errorf("a Failure of 0.1: %+v, %v", once, err)
	}
	d.Comparisons = 100
	often, err := Plan(d)
	if err != nil || often.Comparisons != 100 || often.Failure > 0.1 || often.Memory > once.Memory {
		t.Errorf("a Failure of 0.1 with 100 comparisons: %+v, %v; with one %+v", often, err, once)
	}
}
