package mplane

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hoplag/hoplag/estimate"
)

func TestReadWeights(t *testing.T) {
	n, err := ReadWeights(strings.NewReader("# a map\n\nSan+Jose,+CA4062 Anaheim,+CA4101 2.5\nAnaheim,+CA4101\tSan+Jose,+CA4062 3\n" +
		"a x 1e-3\n"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for r := range n.Routers() {
		names = append(names, n.Name(Router(r)))
	}
	if diff := cmp.Diff([]string{"San Jose, CA4062", "Anaheim, CA4101", "a", "x"}, names); diff != "" {
		t.Error(diff)
	}
	if n.Weight(1, 0) != 3 || n.Weight(0, 2) != 0 || n.Weight(2, 3) != 1e-3 {
		t.Errorf("weights %v, %v, %v", n.Weight(1, 0), n.Weight(0, 2), n.Weight(2, 3))
	}
}

func TestReadWeightsErrors(t *testing.T) {
	for text, want := range map[string]string{
		"a b":             "line 1: 2 fields",
		"a b 1\na b c d":  "line 2: 4 fields",
		"a b one":         `weight "one" is not a number`,
		"a b 0":           "weight is 0",
		"a b -1":          "weight is -1",
		"a b NaN":         "weight is NaN",
		"a b +Inf":        "weight is +Inf",
		"a a 1":           `from "a" to itself`,
		"a b 1\na b 2":    `line 2: mplane: invalid configuration: link is from "a" to "b" twice`,
		"x y 1\n\x00 y 1": "",
	} {
		_, err := ReadWeights(strings.NewReader(text))
		if want == "" {
			if err != nil {
				t.Errorf("%q: %v", text, err)
			}
			continue
		}
		if !errors.Is(err, estimate.ErrEncoding) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
	if _, err := ReadWeights(strings.NewReader(strings.Repeat("x", 1<<20))); err == nil {
		t.Error("a line of a megabyte is taken")
	}
}

func FuzzReadWeights(f *testing.F) {
	f.Add("San+Jose,+CA4062 Anaheim,+CA4101 2.5\n")
	f.Add("a+b c 1e300\nb c 1\nc b 1\n")
	f.Fuzz(func(t *testing.T, text string) {
		n, err := ReadWeights(strings.NewReader(text))
		if err != nil {
			return
		}
		for r := range n.Routers() {
			if _, ok := n.Router(n.Name(Router(r))); !ok {
				t.Errorf("router %d has a name that is not found", r)
			}
		}
		if n.Routers() > 0 {
			n.Paths(0, Router(n.Routers()-1))
		}
	})
}

// A ladder of n rungs has 2^n equal-cost paths: they are enumerated up to a limit, and quickly.
func TestPathsAreLimited(t *testing.T) {
	n := new(Network)
	name := func(i int, side string) string { return side + strings.Repeat("x", i) }
	for i := range 40 {
		for _, side := range []string{"l", "r"} {
			both(t, n, name(i, "m"), name(i, side), 1)
			both(t, n, name(i, side), name(i+1, "m"), 1)
		}
	}
	end, _ := n.Router(name(40, "m"))
	start, _ := n.Router("m")
	if got := len(n.Paths(start, end)); got != maxPaths {
		t.Errorf("%d paths, want %d", got, maxPaths)
	}
	if _, err := n.PlanUpgrades(t.Context(), UpgradeDemand{Count: 3}); err != nil {
		t.Error(err)
	}
}
