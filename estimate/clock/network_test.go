package clock

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/estimate"
)

// mesh is the links of every pair of points whose clocks are known, over paths
// of a millisecond or so that are asymmetric by up to a share of it.
func mesh(rng *rand.Rand, clocks []float64, share float64) (links []Link) {
	for i := range clocks {
		for j := range i {
			truth := clocks[i] - clocks[j]
			half := 5e5 * (1 + rng.Float64())
			e := share * half * (2*rng.Float64() - 1)
			links = append(links, link2(j, i, truth+e, half, share*half))
		}
	}
	return links
}

func link2(from, to int, offset, half, likely float64) Link {
	return Link{from, to, Reading{
		Offset:  offset,
		Certain: estimate.Interval{Low: offset - half, High: offset + half, Confidence: 1},
		Likely:  estimate.Interval{Low: offset - likely, High: offset + likely, Confidence: 0.95},
	}}
}

func clocksOf(rng *rand.Rand, n int) []float64 {
	clocks := make([]float64, n)
	for i := range clocks[1:] {
		clocks[i+1] = 1e8 * rng.NormFloat64()
	}
	return clocks
}

// Loops average out asymmetries: of ten points, each offset is better than the
// direct link's, by about the root of half their number.
func TestNetworkAveragesAsymmetries(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var direct, together estimate.Moments
	for range 100 {
		clocks := clocksOf(rng, 10)
		links := mesh(rng, clocks, 0.3)
		n, err := SolveNetwork(len(clocks), links)
		if err != nil || n.Contradiction || n.Suspect != -1 {
			t.Fatalf("%v, %+v", err, n)
		}
		for i, l := range links {
			if l.From == 0 {
				e, d := n.Offsets[l.To]-clocks[l.To], l.Reading.Offset-clocks[l.To]
				together.Add(e * e)
				direct.Add(d * d)
				if !n.Certain[l.To].Contains(clocks[l.To]) {
					t.Errorf("%.0f not in %+v", clocks[l.To], n.Certain[l.To])
				}
				if width := n.Certain[l.To].High - n.Certain[l.To].Low; width > l.Reading.Certain.High-l.Reading.Certain.Low+1 {
					t.Errorf("link %d: together less certain: %v", i, width)
				}
			}
		}
	}
	if gain := math.Sqrt(direct.Mean() / together.Mean()); gain < 1.8 || gain > 2.8 {
		t.Errorf("error %.2f times less than of direct links, want about √5", gain)
	}
}

// What the solution says adds up to nothing around loops, and one wrong link
// is found, if there are more loops than one that it is in.
func TestNetworkFindsTheWrongLink(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for range 50 {
		clocks := clocksOf(rng, 4+rng.IntN(4))
		links := mesh(rng, clocks, 0.02)
		wrong := rng.IntN(len(links))
		for _, by := range []float64{2e5, 5e6} {
			spoilt := append([]Link(nil), links...)
			l := spoilt[wrong]
			spoilt[wrong] = link2(l.From, l.To, l.Reading.Offset+by, 5e5, 1e4)
			n, err := SolveNetwork(len(clocks), spoilt)
			if err != nil || n.Suspect != wrong {
				t.Fatalf("%v: suspect %d, want %d of %d: %v", err, n.Suspect, wrong, len(links), n.Disagreements)
			}
			if e := n.Disagreements[wrong] - by; math.Abs(e) > 5e4 {
				t.Errorf("disagrees by %.0f, want %.0f", n.Disagreements[wrong], by)
			}
			if n.Contradiction != (by > 2e6) {
				t.Errorf("off by %g: contradiction %v", by, n.Contradiction)
			}
		}
	}
}

// In a lone triangle any link may be the wrong one; on a line none is checked.
func TestNetworkDoesNotGuess(t *testing.T) {
	triangle := []Link{link2(0, 1, 10, 1e5, 5), link2(1, 2, 10, 1e5, 5), link2(0, 2, 60_020, 1e5, 5)}
	n, err := SolveNetwork(3, triangle)
	if err != nil || n.Suspect != -1 {
		t.Errorf("%v, suspect %d", err, n.Suspect)
	}
	if e := n.Offsets[2] - 40_020; math.Abs(e) > 1 {
		t.Errorf("offset %v, want a third of the 60,000 given to each", n.Offsets[2])
	}
	n, err = SolveNetwork(3, triangle[:2])
	if err != nil || n.Suspect != -1 || math.Abs(n.Offsets[2]-20) > 1e-6 || n.Disagreements[0] != 0 {
		t.Errorf("%v, %+v", err, n)
	}
}

func TestNetworkErrors(t *testing.T) {
	good := link2(0, 1, 5, 10, 1)
	for _, c := range []struct {
		points int
		links  []Link
		want   error
	}{
		{0, nil, estimate.ErrConfig},
		{2, []Link{{From: 0, To: 2, Reading: good.Reading}}, estimate.ErrConfig},
		{2, []Link{{From: 1, To: 1, Reading: good.Reading}}, estimate.ErrConfig},
		{2, []Link{{From: 0, To: 1, Reading: Reading{Certain: anywhere}}}, estimate.ErrConfig},
		{3, []Link{good}, estimate.ErrNoSamples},
		{1, nil, nil},
	} {
		if _, err := SolveNetwork(c.points, c.links); !errors.Is(err, c.want) {
			t.Errorf("%d points, %d links: %v, want %v", c.points, len(c.links), err, c.want)
		}
	}
}
