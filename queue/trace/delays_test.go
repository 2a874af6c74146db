package trace

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// known is one distribution with its exact values, in microseconds.
type known struct {
	Shape     string `json:"shape"`
	Alpha     string `json:"alpha"`
	Mean      string `json:"mean_us"`
	StdDev    string `json:"std_f64hex"`
	Quantiles map[string]struct {
		Value string `json:"f64hex"`
	} `json:"quantiles"`
}

func number(t *testing.T, s string) float64 { return must(strconv.ParseFloat(s, 64))(t) }

// Quantiles and deviations against values of 60 digits.
func TestDelaysExact(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "data", "numeric.json"))
	if err != nil {
		t.Skip("no reference values here:", err)
	}
	var values struct {
		Weibull []known `json:"weibull_mean_0.2us"`
		Pareto  []known `json:"pareto_mean_0.2us"`
	}
	if err := json.Unmarshal(data, &values); err != nil {
		t.Fatal(err)
	}
	compared := 0
	check := func(law Law, shape string, k known) {
		d := must(NewDelays(DelaysConfig{Law: law, Mean: 1000 * number(t, k.Mean), Shape: number(t, shape)}))(t)
		near := func(what string, got, want float64) {
			compared++
			if math.Abs(got-want) > 1e-12*want {
				t.Errorf("law %d, shape %s: %s is %v, want %v", law, shape, what, got, want)
			}
		}
		if k.StdDev != "" {
			near("standard deviation", stdDev(d), 1000*number(t, k.StdDev))
		}
		for u, v := range k.Quantiles {
			near("quantile "+u, d.Quantile(number(t, u)), 1000*number(t, v.Value))
		}
	}
	for _, k := range values.Weibull {
		check(Weibull, k.Shape, k)
	}
	for _, k := range values.Pareto {
		check(Pareto, k.Alpha, k)
	}
	if compared < 50 {
		t.Errorf("only %d values compared", compared)
	}
}

var delayConfigs = []DelaysConfig{
	{Law: Weibull, Mean: 200, Shape: 0.6, Seed: 1}, {Law: Weibull, Mean: 200, Shape: 0.8, Seed: 2},
	{Law: Pareto, Mean: 200, Shape: 3, Seed: 3}, {Law: Pareto, Mean: 200, Shape: 5, Seed: 4},
	{Mean: 200, Spread: 10, Seed: 5},
}

// What is drawn has the mean asked for, to the precision of its own deviation,
// and falls below each quantile as often as it should.
func TestDelaysDrawn(t *testing.T) {
	heavy(t)
	const n = 400_000
	worst := func(d *Delays, draw func() float64) (z float64) {
		quantiles := [...]float64{0.01, 0.1, 0.5, 0.9, 0.99, 0.999}
		var at, below [len(quantiles)]float64
		for i, u := range quantiles {
			at[i] = d.Quantile(u)
		}
		sum := 0.0
		for range n {
			x := draw()
			sum += x
			for i := range at {
				if x <= at[i] {
					below[i]++
				}
			}
		}
		z = math.Abs(sum/n-d.config.Mean) / (stdDev(d) / math.Sqrt(n))
		for i, u := range quantiles {
			z = max(z, math.Abs(below[i]-n*u)/math.Sqrt(n*u*(1-u)))
		}
		return z
	}
	for _, c := range delayConfigs {
		d := must(NewDelays(c))(t)
		if z := worst(d, d.Draw); z > limit {
			t.Errorf("%+v: %.1f deviations off", c, z)
		}
		random := generator(c.Seed, 1)
		if z := worst(d, func() float64 { return c.Mean * exponential(random) }); z <= limit {
			t.Errorf("negative control: exponential delays pass for %+v, %.1f deviations", c, z)
		}
	}
}

// Whole delays add up to what was drawn.
func TestDelaysWhole(t *testing.T) {
	for _, c := range append(delayConfigs, DelaysConfig{Mean: 10.25}) {
		d, exact := must(NewDelays(c))(t), must(NewDelays(c))(t)
		sum, whole := 0.0, int64(0)
		for range 10_000 {
			sum += exact.Draw()
			whole += d.Next()
			if diff := sum - float64(whole); diff < -1e-3 || diff > 1+1e-3 {
				t.Fatalf("%+v: whole delays sum to %d, exact ones to %v", c, whole, sum)
			}
		}
	}
}

// stdDev returns the distribution's standard deviation in ns.
func stdDev(d *Delays) float64 {
	k := d.config.Shape
	switch d.config.Law {
	case Weibull:
		first := math.Gamma(1 + 1/k)
		return d.scale * math.Sqrt(math.Gamma(1+2/k)-first*first)
	case Pareto:
		return d.scale / (k - 1) * math.Sqrt(k/(k-2))
	}
	return d.config.Spread / math.Sqrt(3)
}
