package plot

import (
	"bytes"
	"flag"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew; then look at them")

// gallery has a figure for everything that the package draws and everything
// that it leaves out.
func gallery() map[string]Figure {
	random := rand.New(rand.NewPCG(1, 2))
	figures := map[string]Figure{}

	lines := Figure{
		Title: "Relative error of the average delay against the loss rate",
		X:     LogAxis("loss rate (%)"), Y: LogAxis("relative error (%)"),
	}
	losses := []float64{0.01, 0.03, 0.1, 0.3, 1, 3, 10}
	for i, name := range []string{"Weibull 0.6", "Weibull 0.8", "Pareto 3", "Pareto 5"} {
		ours, paper := Series{Name: name + ", ours", Pair: i + 1}, Series{Name: name + ", paper", Pair: i + 1, Paper: true}
		for _, x := range losses {
			ours.Add(x, math.Sqrt(x)/float64(i+1))
			paper.Add(x, 3*math.Sqrt(x)/float64(i+1))
		}
		lines.Add(ours, paper)
	}
	figures["lines"] = lines

	cdf := Figure{Title: "Relative errors of flows", X: LogAxis("relative error"), Y: Axis{Label: "fraction of flows", Max: 1}}
	for i, name := range []string{"interpolated", "paper", "trajectory", "exact", "fifth", "sixth <&>", "seventh"} {
		samples := make([]float64, 3000)
		for k := range samples {
			samples[k] = math.Exp(random.NormFloat64() - float64(i))
		}
		s := CDF(name, samples, 0)
		s.Paper = name == "paper"
		cdf.Add(s)
	}
	figures["cdf"] = cdf

	bounds := Series{Name: "98 % bounds", Kind: Band}
	points := Series{Name: "runs", Kind: Markers}
	means := Series{Name: "mean of runs"}
	for _, x := range losses {
		bounds.AddRange(x, 0, 200-10*math.Sqrt(x), 200+10*math.Sqrt(x))
		points.Add(x, 200+5*math.Sqrt(x)*random.NormFloat64())
		means.AddRange(x, 200+math.Sqrt(x), 200-4*math.Sqrt(x), 200+6*math.Sqrt(x))
	}
	level := Series{Name: "truth", Kind: Line, X: []float64{0.01, 10}, Y: []float64{200, 200}}
	figures["band"] = Figure{Title: "Estimates and their 98 % bounds", X: LogAxis("loss rate (%)"), Y: LinearAxis("mean delay (ns)"),
		Series: []*Series{&bounds, &level, &points, &means}}

	figures["slanted"] = Figure{Title: "Long names of categories", Y: LogAxis("ns per packet"), X: Axis{Categories: []string{
		"a direct-mapped lossy table", "a map and a mutex", "sync.Map", "HdrHistogram RecordValue", "Prometheus Observe",
		"lda.Update, two banks", "lds.Update, four rows"}},
		Series: []*Series{{Kind: Markers, X: []float64{0, 1, 2, 3, 4, 5, 6}, Y: []float64{36, 326, 410, 5.4, 85, 1.1, 4}}}}

	wave := Series{Name: "a thousand points"}
	for i := range 1000 {
		wave.Add(float64(i)*40, 1e6*math.Sin(float64(i)/60))
	}
	figures["many"] = Figure{Title: "Many points", X: LinearAxis("time (ms)"), Y: LinearAxis("delay (ns)"), Series: []*Series{&wave}}

	nan, inf := math.NaN(), math.Inf(1)
	figures["gaps"] = Figure{
		Title: "What cannot be drawn is left out", X: LinearAxis("x"), Y: LogAxis("y"),
		Series: []*Series{{Name: "broken", X: []float64{1, 2, 3, 4, 5, 6, 7}, Y: []float64{1, 10, nan, 100, 0, 10, inf},
			Low: []float64{0, 5, nan, 50, nan, nan, nan}, High: []float64{2, 20, nan, inf, nan, nan, nan}}},
	}
	return figures
}

// Each golden file was looked at. A change of one is a change to look at.
func TestGolden(t *testing.T) {
	for name, f := range gallery() {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join("testdata", name+".svg")
			got := SVG(&f, name)
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("%s differs (-want +got); if this is intended, run go test -update, and look at it:\n%s", file, diff)
			}
			if skipped := bytes.Contains(got, []byte("3 points are not shown")); skipped != (name == "gaps") {
				t.Errorf("it says that points are not shown: %v", skipped)
			}
		})
	}
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		axis   Axis
		values []float64
		want   string
	}{
		{Axis{}, []float64{0, 1}, "0 0.2 0.4 0.6 0.8 1.0"},
		{Axis{}, []float64{190, 210}, "190 195 200 205 210"},
		{Axis{}, []float64{-3, 3}, "−3 −2 −1 0 1 2 3"},
		{Axis{}, []float64{0, 50000}, "0 10,000 20,000 30,000 40,000 50,000"},
		{Axis{Scale: Log}, []float64{0.01, 10}, "0.01 0.1 1 10"},
		{Axis{Scale: Log}, []float64{1, 10}, "1 2 5 10"},
		{Axis{Scale: Log}, []float64{3, 4}, "3.0 3.2 3.4 3.6 3.8 4.0"},
		{Axis{Scale: Log}, []float64{1e-9, 1e9}, "10⁻⁹ 10⁻⁶ 10⁻³ 10⁰ 10³ 10⁶ 10⁹"},
		{Axis{Scale: Log, Min: 1, Max: 1e6}, nil, "1 10 100 1000 10,000 100,000 1,000,000"},
		{Axis{Categories: []string{"a", "b"}}, []float64{0}, "a b"},
	} {
		r := lay(&c.axis, c.values)
		var got []string
		for _, tick := range r.ticks {
			got = append(got, tick.label)
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%+v over %v has ticks %s, want %s", c.axis, c.values, s, c.want)
		}
	}
}

// Whatever the values, the ruler covers them, and there are not too many ticks.
func FuzzRuler(f *testing.F) {
	f.Add(1.0, 2.0, false)
	f.Add(-1e300, 1e300, false)
	f.Add(5e-324, 1.7e308, true)
	f.Add(0.0, 0.0, false)
	f.Add(1.0, 1.0000000000000002, false)
	f.Fuzz(func(t *testing.T, a, b float64, log bool) {
		axis := Axis{}
		if log {
			axis.Scale = Log
		}
		if !drawable(a, axis.Scale) || !drawable(b, axis.Scale) || math.IsInf(1.1*(a-b), 0) || math.IsInf(1.2*a, 0) || math.IsInf(1.2*b, 0) {
			t.Skip("not drawable")
		}
		r := lay(&axis, []float64{a, b})
		r.from, r.to = 0, 600
		if len(r.ticks) > 40 || len(r.minor) > 60 {
			t.Fatalf("%d ticks, %d lines between", len(r.ticks), len(r.minor))
		}
		for _, v := range []float64{a, b} {
			if at := r.at(v); !r.inside(v) || math.IsNaN(at) || at < -0.1 || at > 600.1 {
				t.Fatalf("%v is at %v from %v to %v", v, at, r.min, r.max)
			}
		}
		for _, tick := range r.ticks {
			if at := r.at(tick.at); math.IsNaN(at) || at < -1 || at > 601 {
				t.Fatalf("tick %q is at %v", tick.label, at)
			}
		}
	})
}

func TestCDF(t *testing.T) {
	s := CDF("x", []float64{3, 1, math.NaN(), 2, 2}, 0)
	if diff := cmp.Diff([][]float64{{1, 1, 2, 2, 3}, {0, 0.25, 0.5, 0.75, 1}}, [][]float64{s.X, s.Y}); diff != "" {
		t.Error(diff)
	}
	many := make([]float64, 100_000)
	for i := range many {
		many[i] = float64(i)
	}
	s = CDF("x", many, 50)
	if len(s.X) != 51 || s.Y[50] != 1 || s.X[50] != 99_999 || s.X[25] != 49_999 || s.Y[25] != 0.5 {
		t.Errorf("%d points, the last %v, the middle %v, %v", len(s.X), s.X[50], s.X[25], s.Y[25])
	}
	if s = CDF("x", nil, 0); len(s.X) != 0 {
		t.Errorf("%d points of nothing", len(s.X))
	}
}
