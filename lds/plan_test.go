package lds

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

const paperShape = 0.8 // of the paper's traffic

// lossless is a base whose rows see every packet.
var lossless = func() Config {
	c := DefaultConfig
	c.Rates = [MaxRows]float64{1, 1, 1, 1}
	return c
}()

func paretoSize(r *rand.Rand) float64 { return sizeOf(r, paperShape) }

func sizeOf(r *rand.Rand, shape float64) float64 {
	return min(math.Floor(math.Pow(1-r.Float64(), -1/shape)), 1e6)
}

// A plan keeps its promise: of the large flows, which have all sizes from Large on, no more are measured badly
// than it says, by a table, a sketch or both, and more than half as many are.
func TestPlanKeepsItsPromise(t *testing.T) {
	skipShort(t)
	for _, d := range []Demand{
		{Flows: 14_600, Shape: paperShape, Large: 100, EncodedSize: 91_000, Base: lossless},
		{Flows: 14_600, Shape: paperShape, Large: 100, EncodedSize: 91_000, Base: lossless, Loss: 0.01},
		{Flows: 14_600, Shape: paperShape, Large: 300, Failure: 0.05, Base: lossless, Loss: 0.001},
		{Flows: 14_600, Shape: paperShape, Large: 100, EncodedSize: 91_000, Base: lossless, Loss: 0.2},
	} {
		best, err := Plan(d)
		if err != nil || len(best.Others) != 2 {
			t.Fatalf("%+v: %+v, %v", d, best, err)
		}
		for _, f := range append([]Forecast{best}, best.Others...) {
			failed, flows := failures(t, rand.New(rand.NewPCG(83, 1)), &d, &f)
			if chance := 4*math.Sqrt(f.Failure/flows) + 1/flows; failed/flows > f.Failure+chance {
				t.Errorf("%.4f of %.0f large flows are measured badly, planned %.4f", failed/flows, flows, f.Failure)
			} else if d.Loss == 0 && failed/flows < f.Failure/2-chance {
				t.Errorf("%.4f of %.0f large flows are measured badly, half of what was planned, %.4f", failed/flows, flows, f.Failure)
			}
			if f.Config.Rows > 0 && f.Table.Flows == 0 && len(encode(t, mustNew(t, f.Config))) != f.EncodedSize {
				t.Errorf("an encoding is not of %d bytes", f.EncodedSize)
			}
		}
	}
}

// That holds for random demands, too: for each by itself, and for all of a kind together, where six tenths of
// what it promises would be too little. The eight flows that share a bucket may all fail at once.
func TestPlansOfAnyDemand(t *testing.T) {
	var failed, planned, variance [6]float64 // by table, sketch and both, without loss and with
	r, refused := rand.New(rand.NewPCG(84, 1)), 0
	const demands = 40
	for range demands {
		d := Demand{
			Flows: 100 + r.IntN(300), Shape: 0.6 + 1.4*r.Float64(), Large: math.Floor(math.Exp(4 * r.Float64())),
			Loss: []float64{0, 0, 0.01, 0.1, 0.3}[r.IntN(5)], Base: lossless,
		}
		if d.Failure = 0.99 * math.Exp(-5*r.Float64()); r.IntN(2) == 0 {
			d.EncodedSize, d.Failure = int(float64(d.Flows)*math.Exp(1+4*r.Float64())), 0
		}
		d.Base.Spread = 1 + 4*(r.IntN(8)/7)
		best, err := Plan(d)
		if refused++; err != nil {
			continue
		}
		refused--
		for _, f := range append([]Forecast{best}, best.Others...) {
			bad, flows := failures(t, r, &d, &f)
			kind, deviation := min(f.Table.Flows, 1)+2*min(f.Config.Rows, 1)-1, 8*flows*f.Failure*(1-f.Failure)
			if kind == 1 {
				deviation /= bucketFlows
			}
			if d.Loss > 0 {
				kind += 3
			}
			wrong := d.Failure > 0 && f.Failure > d.Failure || d.EncodedSize > 0 && f.EncodedSize > d.EncodedSize
			if bad > flows*f.Failure+4*math.Sqrt(deviation)+8 || wrong {
				t.Errorf("%.0f of %.0f large flows are measured badly, planned %.4f: %+v for %+v", bad, flows, f.Failure, f, d)
			}
			if d.Base.Spread > 1 { // others are taken for more than they are
				continue
			}
			failed[kind] += bad
			planned[kind] += flows * f.Failure
			variance[kind] += deviation
		}
	}
	for kind, what := range []string{"table", "sketch", "both", "table, loss", "sketch, loss", "both, loss"} {
		t.Logf("%s: %.0f flows are measured badly, planned %.1f", what, failed[kind], planned[kind])
		if deviation := math.Sqrt(variance[kind]); failed[kind] > planned[kind]+4*deviation {
			t.Errorf("%s: %.0f flows are measured badly, planned %.1f", what, failed[kind], planned[kind])
		} else if failed[kind] < 0.6*planned[kind]+4*deviation && kind < 3 {
			t.Errorf("%s: six tenths of %.1f pass for %.0f", what, planned[kind], failed[kind])
		}
	}
	if refused > demands/2 {
		t.Errorf("%d of %d demands are refused", refused, demands)
	}
}

// failures counts the large flows that are measured badly: the table does not hold them, and each of their cells
// lost a packet or has more than Large from others.
func failures(t *testing.T, r *rand.Rand, d *Demand, f *Forecast) (failed, flows float64) {
	var tables [2]*Table
	var sketches [2]*Sketch
	for i := range 2 {
		if f.Table.Flows > 0 {
			tables[i] = newTable(t, f.Table)
		}
		if f.Config.Rows > 0 {
			sketches[i] = mustNew(t, f.Config)
		}
	}
	sizes, keys := map[hashing.Flow]float64{}, []hashing.Flow{}
	var order []hashing.Flow
	for range d.Flows {
		flow := hashing.Flow(r.Uint64())
		keys = append(keys, flow)
		sizes[flow] = min(sizeOf(r, d.Shape), 20_000)
		for range int(sizes[flow]) {
			order = append(order, flow)
		}
	}
	r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	for _, flow := range order {
		p, lost := hashing.Packet(r.Uint64()), r.Float64() < d.Loss
		for i := range 2 {
			if i == 1 && lost {
				continue
			}
			if tables[i] != nil {
				tables[i].Update(flow, p, 0)
			}
			if sketches[i] != nil {
				sketches[i].Update(flow, p, 0)
			}
		}
	}
	for _, flow := range keys {
		n := sizes[flow]
		if n < d.Large {
			continue
		}
		flows++
		good := false
		if tables[0] != nil {
			_, err := EstimateTable(tables[0], tables[1], flow)
			good = err == nil
		}
		for k := range f.Config.Rows * f.Config.Spread {
			at := f.Config.at(k/f.Config.Spread, flow, k%f.Config.Spread)
			a, b := &sketches[0].cells[at], &sketches[1].cells[at]
			rate := f.Config.Rates[k/f.Config.Spread] / float64(f.Config.Spread)
			good = good || a.count() > 0 && same(a, b, 16) && float64(a.count()) <= rate*(n+d.Large)+5*math.Sqrt(rate*(1-rate)*n)
		}
		if !good {
			failed++
		}
	}
	return failed, flows
}

// A table is better where the flows that matter fit. A sketch alone is among the choices.
func TestPlanChooses(t *testing.T) {
	few, err := Plan(Demand{Flows: 10_000, Shape: paperShape, Large: 10, EncodedSize: 910_000, Base: lossless})
	if err != nil || few.Table.Flows == 0 || few.Config.Rows != 0 || few.Failure > 0.01 || few.Held < 0.97 {
		t.Errorf("%+v, %v", few, err)
	}
	many, err := Plan(Demand{Flows: 1_000_000, Shape: paperShape, Large: 10, EncodedSize: 910_000, Base: lossless})
	alone := func(f Forecast) bool { return f.Table.Flows == 0 }
	if err != nil || !slices.ContainsFunc(append(many.Others, many), alone) {
		t.Errorf("%+v, %v", many, err)
	}
	small := must(Plan(Demand{Flows: 146_000, Shape: paperShape, Large: 50, Failure: 0.01, Base: lossless}))
	for _, other := range small.Others {
		if other.EncodedSize < small.EncodedSize || other.Failure > 0.01 {
			t.Errorf("%+v is smaller than %+v", other, small)
		}
	}
	d := Demand{Flows: 146_000, Shape: paperShape, Large: 50, Failure: 0.01, EncodedSize: small.EncodedSize - 64, Base: lossless}
	if _, err := Plan(d); err == nil {
		t.Error("less memory than the smallest")
	}
}

func TestPlanRefuses(t *testing.T) {
	good := Demand{Flows: 1000, Shape: paperShape, Large: 50, Failure: 0.1, Base: lossless}
	for want, change := range map[string]func(*Demand){
		"Flows is 0":        func(d *Demand) { d.Flows = 0 },
		"Shape is NaN":      func(d *Demand) { d.Shape = math.NaN() },
		"Large is 0":        func(d *Demand) { d.Large = 0 },
		"Loss is 0.6":       func(d *Demand) { d.Loss = 0.6 },
		"Loss is NaN":       func(d *Demand) { d.Loss = math.NaN() },
		"Failure is 1":      func(d *Demand) { d.Failure = 1 },
		"Failure is NaN":    func(d *Demand) { d.Failure = math.NaN() },
		"EncodedSize is 0":  func(d *Demand) { d.Failure = 0 },
		"EncodedSize is -1": func(d *Demand) { d.EncodedSize = -1 },
		"EncodedSize is 11": func(d *Demand) { d.EncodedSize, d.Failure = 11, 0 },
		"losses":            func(d *Demand) { d.Loss, d.Large, d.Failure = 0.5, 1, 1e-6 },
		"Spread is 0":       func(d *Demand) { d.Base = Config{} },
		"SumBits is 77":     func(d *Demand) { d.Base.SumBits = 77 },
		"Tolerance is -1":   func(d *Demand) { d.Base.Tolerance = -1 },
	} {
		d := good
		change(&d)
		if _, err := Plan(d); !errors.Is(err, estimate.ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}
