package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew; then look at them")

func drawn(t *testing.T, f Figure, id string) []byte {
	t.Helper()
	svg, err := SVG(&f, id)
	if err != nil {
		t.Fatal(err)
	}
	return svg
}

// Each golden file was looked at. A change of one is a change to look at.
func TestGolden(t *testing.T) {
	for name, f := range gallery() {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join("testdata", name+".svg")
			got := drawn(t, f, name)
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
				t.Errorf("%s differs (-want +got); if so intended, go test -update, and look at it:\n%s", file, diff)
			}
		})
	}
}

// What SVG returns is well-formed, holds no number that is none, and has the
// same bytes each time.
func TestWellFormed(t *testing.T) {
	for name, f := range gallery() {
		f.Title += ` <&"'> ` + "\x00"
		f.X.Label = "<x>"
		svg := drawn(t, f, name)
		if again := drawn(t, f, name); !bytes.Equal(svg, again) {
			t.Errorf("%s: two drawings of one figure differ", name)
		}
		d := xml.NewDecoder(bytes.NewReader(svg))
		for {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			element, ok := token.(xml.StartElement)
			if !ok {
				continue
			}
			for _, a := range element.Attr {
				if strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") {
					t.Errorf("%s: %s has %s=%q", name, element.Name.Local, a.Name.Local, a.Value)
				}
			}
		}
	}
}

func TestNotShown(t *testing.T) {
	for name, want := range map[string]string{
		"gaps":     "3 points are not shown: not a number, or not above 0 on a logarithmic axis",
		"bars":     "1 point is not shown: not a number<",
		"negative": "no data",
		"empty":    "no data",
	} {
		f := gallery()[name]
		if svg := drawn(t, f, name); !bytes.Contains(svg, []byte(want)) {
			t.Errorf("%s does not say %q", name, want)
		}
	}
	f := gallery()["lines"]
	if svg := drawn(t, f, "lines"); bytes.Contains(svg, []byte("not shown")) {
		t.Error("a figure whose points are all shown says that some are not")
	}
}

func TestContradictions(t *testing.T) {
	point := func(change func(*Figure)) Figure {
		f := Figure{Series: []Series{{Name: "s", X: []float64{1}, Y: []float64{1}}}}
		change(&f)
		return f
	}
	for want, f := range map[string]Figure{
		"1 X and 2 Y":                point(func(f *Figure) { f.Series[0].Y = []float64{1, 2} }),
		"has no X":                   point(func(f *Figure) { f.Series[0].X = nil }),
		"1 Low, 0 High":              point(func(f *Figure) { f.Series[0].Low = []float64{1} }),
		"has no Low and High":        point(func(f *Figure) { f.Series[0].Kind = Band }),
		"axis X from 2 to 1":         point(func(f *Figure) { f.X.Min, f.X.Max = 2, 1 }),
		"axis Y from NaN":            point(func(f *Figure) { f.Y.Min = math.NaN() }),
		"logarithmic axis Y":         point(func(f *Figure) { f.Y = Axis{Scale: Log, Max: 1} }),
		"categories belong":          point(func(f *Figure) { f.X = Axis{Scale: Log, Categories: []string{"a"}} }),
		"categories belong on a lin": point(func(f *Figure) { f.Y.Categories = []string{"a"} }),
	} {
		if _, err := SVG(&f, "x"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		axis   Axis
		values []float64
		want   string
	}{
		{Axis{}, []float64{0, 1}, "0 0.2 0.4 0.6 0.8 1.0"},
		{Axis{}, []float64{0, 97}, "0 20 40 60 80 100"},
		{Axis{}, []float64{190, 210}, "190 195 200 205 210"},
		{Axis{}, []float64{-3, 3}, "−3 −2 −1 0 1 2 3"},
		{Axis{}, []float64{0, 50000}, "0 10,000 20,000 30,000 40,000 50,000"},
		{Axis{Scale: Log}, []float64{0.01, 10}, "0.01 0.1 1 10"},
		{Axis{Scale: Log}, []float64{1, 10}, "1 2 5 10"},
		{Axis{Scale: Log}, []float64{3, 4}, "3.0 3.2 3.4 3.6 3.8 4.0"},
		{Axis{Scale: Log}, []float64{1e-9, 1e9}, "^-9 ^-6 ^-3 ^0 ^3 ^6 ^9"},
		{Axis{Scale: Log, Min: 1, Max: 1e6}, nil, "1 10 100 1000 10,000 100,000 1,000,000"},
		{Axis{Categories: []string{"a", "b"}}, []float64{0}, "a b"},
	} {
		r := lay(&c.axis, c.values, false)
		var got []string
		for _, tick := range r.ticks {
			if tick.label == "" {
				tick.label = fmt.Sprintf("^%d", tick.power)
			}
			got = append(got, tick.label)
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%+v over %v has ticks %s, want %s", c.axis, c.values, s, c.want)
		}
	}
}

// Whatever the values, the ruler covers them, and there are ticks to read.
func FuzzRuler(f *testing.F) {
	f.Add(1.0, 2.0, false, false)
	f.Add(-1e300, 1e300, true, false)
	f.Add(5e-324, 1.7e308, false, true)
	f.Add(0.0, 0.0, true, false)
	f.Add(1.0, 1.0000000000000002, false, false)
	f.Fuzz(func(t *testing.T, a, b float64, bars, log bool) {
		axis := Axis{}
		if log {
			axis.Scale = Log
		}
		if !drawable(a, axis.Scale) || !drawable(b, axis.Scale) || math.IsInf(1.1*(a-b), 0) || math.IsInf(1.2*a, 0) || math.IsInf(1.2*b, 0) {
			t.Skip("not drawable")
		}
		r := lay(&axis, []float64{a, b}, bars)
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
	if diff := cmp.Diff([]float64{1, 1, 2, 2, 3}, s.X); diff != "" {
		t.Error("X", diff)
	}
	if diff := cmp.Diff([]float64{0, 0.25, 0.5, 0.75, 1}, s.Y); diff != "" {
		t.Error("Y", diff)
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
