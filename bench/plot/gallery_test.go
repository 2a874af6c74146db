package plot

import (
	"math"
	"math/rand/v2"
)

// gallery has a figure for everything that the package draws and everything
// that it is told not to.
func gallery() map[string]Figure {
	random := rand.New(rand.NewPCG(1, 2))
	curve := func(name string, f func(x float64) float64, xs ...float64) Series {
		s := Series{Name: name}
		for _, x := range xs {
			s.Add(x, f(x))
		}
		return s
	}
	losses := []float64{0.01, 0.03, 0.1, 0.3, 1, 3, 10}
	figures := map[string]Figure{}

	lines := Figure{
		Title: "Relative error of the average delay against the loss rate",
		X:     Axis{Label: "loss rate (%)", Scale: Log}, Y: Axis{Label: "relative error (%)", Scale: Log},
	}
	for i, name := range []string{"Weibull 0.6", "Weibull 0.8", "Pareto 3", "Pareto 5"} {
		f := func(x float64) float64 { return math.Sqrt(x) / float64(i+1) }
		ours := curve(name+", ours", f, losses...)
		paper := curve(name+", paper", func(x float64) float64 { return 3 * f(x) }, losses...)
		ours.Pair, paper.Pair, paper.Paper = i+1, i+1, true
		lines.Series = append(lines.Series, ours, paper)
	}
	figures["lines"] = lines

	cdf := Figure{Title: "Relative errors of flows", X: Axis{Label: "relative error", Scale: Log}, Y: Axis{Label: "fraction of flows", Max: 1}}
	for i, name := range []string{"interpolated", "paper", "trajectory", "exact", "fifth", "sixth <&>", "seventh"} {
		samples := make([]float64, 3000)
		for k := range samples {
			samples[k] = math.Exp(random.NormFloat64() - float64(i))
		}
		s := CDF(name, samples, 0)
		s.Paper = name == "paper"
		cdf.Series = append(cdf.Series, s)
	}
	figures["cdf"] = cdf

	figures["bars"] = Figure{
		Title: "Memory and error by method, with a range for each",
		X:     Axis{Categories: []string{"empirical", "gamma", "log-normal", "none"}}, Y: Axis{Label: "error (%)"},
		Series: []Series{
			{Name: "paper", Kind: Bars, Paper: true, Y: []float64{12.8, 7, 3.2, math.NaN()}},
			{Name: "ours", Kind: Bars, Y: []float64{2.6, 1.2, 0.9, -1}, Low: []float64{2, 1, 0.7, -2}, High: []float64{3.5, 1.5, 1.2, -0.5}},
		},
	}
	figures["slanted"] = Figure{
		Title: "Long names of categories", X: Axis{Categories: []string{
			"a direct-mapped lossy table", "a map and a mutex", "sync.Map", "HdrHistogram RecordValue", "Prometheus Observe",
			"lda.Update, two banks", "lds.Update, four rows"}},
		Y:      Axis{Label: "ns per packet", Scale: Log},
		Series: []Series{{Kind: Bars, Y: []float64{36, 326, 410, 5.4, 85, 1.1, 4}}},
	}

	band := Figure{Title: "Estimates and their 98 % bounds", X: Axis{Label: "loss rate (%)", Scale: Log}, Y: Axis{Label: "mean delay (ns)"}}
	bounds := Series{Name: "98 % bounds", Kind: Band}
	points := Series{Name: "runs", Kind: Markers}
	errors := Series{Name: "mean of runs"}
	for _, x := range losses {
		bounds.AddRange(x, 0, 200-10*math.Sqrt(x), 200+10*math.Sqrt(x))
		points.Add(x, 200+5*math.Sqrt(x)*random.NormFloat64())
		errors.AddRange(x, 200+math.Sqrt(x), 200-4*math.Sqrt(x), 200+6*math.Sqrt(x))
	}
	band.Series = []Series{bounds, Level("truth", 200, 0.01, 10), points, errors}
	figures["band"] = band

	wave := Series{Name: "a thousand points"}
	for i := range 1000 {
		wave.Add(float64(i)*40, 1e6*math.Sin(float64(i)/60))
	}
	figures["many"] = Figure{Title: "Many points", X: Axis{Label: "time (ms)"}, Y: Axis{Label: "delay (ns)"}, Series: []Series{wave}}

	nan, inf := math.NaN(), math.Inf(1)
	figures["gaps"] = Figure{
		Title: "What cannot be drawn is left out", X: Axis{Label: "x"}, Y: Axis{Label: "y", Scale: Log},
		Series: []Series{{Name: "broken", X: []float64{1, 2, 3, 4, 5, 6, 7}, Y: []float64{1, 10, nan, 100, 0, 10, inf},
			Low: []float64{0, 5, nan, 50, nan, nan, nan}, High: []float64{2, 20, nan, inf, nan, nan, nan}}},
	}
	figures["negative"] = Figure{Title: "Nothing above 0 on a logarithmic axis", Y: Axis{Scale: Log},
		Series: []Series{curve("negative", func(float64) float64 { return -1 }, 1, 2)}}
	figures["empty"] = Figure{Title: "No series", X: Axis{Label: "x", Scale: Log}, Y: Axis{Label: "y"}}
	figures["point"] = Figure{Title: "One point", X: Axis{Label: "x", Scale: Log}, Y: Axis{Label: "y"},
		Series: []Series{curve("one", math.Sqrt, 49)}}
	figures["zero"] = Figure{Title: "One point at zero", Series: []Series{curve("one", math.Sqrt, 0)}}
	figures["narrow"] = Figure{Title: "Narrow log axis, small and large numbers", X: Axis{Label: "x", Scale: Log},
		Y:      Axis{Label: "y", Scale: Log},
		Series: []Series{curve("power", func(x float64) float64 { return math.Pow(x-40, 30) }, 42, 49, 60, 71, 97)}}
	figures["tiny"] = Figure{Title: "Tiny numbers", X: Axis{Label: "x"}, Y: Axis{Label: "y"},
		Series: []Series{curve("tiny", func(x float64) float64 { return 1e-9 * x }, 1, 2, 3)}}
	figures["bars-log"] = Figure{Title: "Bars at numbers", X: Axis{Label: "rows", Scale: Log}, Y: Axis{Label: "error (%)", Scale: Log},
		Series: []Series{{Name: "a", Kind: Bars, X: []float64{64, 256, 1024}, Y: []float64{30, 12, 4}},
			{Name: "b", Kind: Bars, X: []float64{64, 256, 1024}, Y: []float64{10, 4, 1}}}}
	return figures
}
