package estimate

import (
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// The bar that every special function is held to.
const specialBar = 1e-7

// off is the relative error of got, or the absolute one below 1e-5, with NaN never
// close to anything.
func off(got, want float64) float64 {
	if got == want {
		return 0
	}
	return math.Abs(got-want) / max(math.Abs(want), 1e-5)
}

// A reference is a row of numeric.json, whose values were computed with 60
// digits at exactly representable arguments. Only the fields of its table are
// present.
type reference struct {
	X    string  `json:"x_f64hex"`
	P    string  `json:"p_f64hex"`
	Loss string  `json:"loss_f64hex"`
	N    float64 `json:"n"`
	K    float64 `json:"k"`
	Want string  `json:"f64hex"`
}

func (r reference) number(t *testing.T, s string) float64 {
	t.Helper()
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatalf("%+v: %v", r, err)
	}
	return x
}

func readReferences(t *testing.T) map[string]json.RawMessage {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "shared", "data", "numeric.json"))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("no ../shared/data/numeric.json: the inline golden values remain")
	}
	if err != nil {
		t.Fatal(err)
	}
	var tables map[string]json.RawMessage
	if err := json.Unmarshal(b, &tables); err != nil {
		t.Fatal(err)
	}
	return tables
}

func TestReferenceTables(t *testing.T) {
	tables := readReferences(t)
	x := func(f func(float64) float64) func(*testing.T, reference) float64 {
		return func(t *testing.T, r reference) float64 { return f(r.number(t, r.X)) }
	}
	functions := map[string]func(*testing.T, reference) float64{
		"digamma":         x(Digamma),
		"normal_quantile": x(NormalQuantile),
		// What this package leaves to package math must be as good.
		"lgamma": x(func(x float64) float64 { y, _ := math.Lgamma(x); return y }),
		"erf":    x(math.Erf),
		"erfc":   x(math.Erfc),
		"erfinv": x(math.Erfinv),
	}
	for name, f := range functions {
		t.Run(name, func(t *testing.T) {
			var rows []reference
			if err := json.Unmarshal(tables[name], &rows); err != nil {
				t.Fatal(err)
			}
			if len(rows) < 8 {
				t.Fatalf("only %d rows", len(rows))
			}
			worst := 0.0
			for _, r := range rows {
				got, want := f(t, r), r.number(t, r.Want)
				e := off(got, want)
				if !(e <= specialBar) {
					t.Errorf("%+v: got %v, want %v, relative error %.2g", r, got, want, e)
				}
				worst = max(worst, e)
			}
			t.Logf("%d values, worst relative error %.2g", len(rows), worst)
		})
	}
}

// What the documentation says of the ends of each function's range, and of
// arguments beyond.
func TestSpecialEdges(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"Digamma(0)", Digamma(0), nan},
		{"Digamma(-1.5)", Digamma(-1.5), nan},
		{"Digamma(NaN)", Digamma(nan), nan},
		{"Digamma(Inf)", Digamma(inf), inf},
		{"NormalQuantile(-1)", NormalQuantile(-1), nan},
		{"NormalQuantile(0)", NormalQuantile(0), -inf},
		{"NormalQuantile(1)", NormalQuantile(1), inf},
		{"NormalQuantile(2)", NormalQuantile(2), nan},
		{"NormalQuantile(NaN)", NormalQuantile(nan), nan},
		{"StudentQuantile(2)", StudentQuantile(2, 3), nan},
		{"StudentQuantile(0)", StudentQuantile(0, 3), -inf},
		{"StudentQuantile(0.5)", StudentQuantile(0.5, 3), 0},
		{"StudentQuantile(1)", StudentQuantile(1, 3), inf},
		{"StudentQuantile, no degrees", StudentQuantile(0.4, 0), nan},
		{"StudentQuantile, infinite degrees", StudentQuantile(0.01, inf), NormalQuantile(0.01)},
	} {
		if c.got != c.want && !(math.IsNaN(c.got) && math.IsNaN(c.want)) {
			t.Errorf("%s is %v, want %v", c.name, c.got, c.want)
		}
	}
}
