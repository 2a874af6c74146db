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

// numeric.json has values that were computed with 60 digits at exactly representable
// arguments.
func TestReferenceTable(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "shared", "data", "numeric.json"))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("no ../shared/data/numeric.json: the inline golden values remain")
	}
	var tables struct {
		Rows []struct {
			X    string `json:"x_f64hex"`
			Want string `json:"f64hex"`
		} `json:"normal_quantile"`
	}
	if err == nil {
		err = json.Unmarshal(b, &tables)
	}
	if err != nil || len(tables.Rows) < 8 {
		t.Fatalf("%d rows, %v", len(tables.Rows), err)
	}
	for _, r := range tables.Rows {
		x, err := strconv.ParseFloat(r.X, 64)
		want, other := strconv.ParseFloat(r.Want, 64)
		if got := NormalQuantile(x); errors.Join(err, other) != nil || !(off(got, want) <= specialBar) {
			t.Errorf("%v: got %v, want %v, %v, %v", x, got, want, err, other)
		}
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
