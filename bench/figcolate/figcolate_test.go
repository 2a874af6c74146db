package figcolate

import (
	"math"
	"reflect"
	"testing"

	"github.com/hoplag/hoplag/bench/experiment"
)

var quick = &experiment.Run{Seed: 1, Quick: true}

func someTraffic(t *testing.T, k kind) *traffic {
	t.Helper()
	return newTrafficOf(quick, k, 20_000)
}

// What is said of flows is true of their packets.
func TestTraffic(t *testing.T) {
	for _, k := range kinds {
		tr := someTraffic(t, k)
		packets := make([]int, len(tr.flows))
		sums := make([]float64, len(tr.flows))
		last := int64(math.MinInt64)
		for _, p := range tr.packets {
			if p.out <= p.in || p.in < last {
				t.Fatalf("%s: a packet came at %d after %d and left at %d", k.name, p.in, last, p.out)
			}
			last = p.in
			packets[p.flow]++
			sums[p.flow] += float64(p.out - p.in)
		}
		for i := range tr.flows {
			f := &tr.flows[i]
			if f.packets != packets[i] || math.Abs(f.mean()*float64(packets[i])-sums[i]) > 1e-9*sums[i] {
				t.Errorf("%s: flow %d has %d packets of %v ns, want %d of %v in all", k.name, i, f.packets, f.mean(), packets[i], sums[i])
			}
		}
	}
	if a, b := someTraffic(t, backbone), someTraffic(t, backbone); !reflect.DeepEqual(a, b) {
		t.Error("the same seed gives other traffic")
	}
}

// A flow that shares its counters with no other gets its exact mean from every
// estimator; a flow that shares them does not.
func TestAlone(t *testing.T) {
	tr := someTraffic(t, enterprise)
	biggest := 0
	for i := range tr.flows {
		if tr.flows[i].packets > tr.flows[biggest].packets {
			biggest = i
		}
	}
	alone := &traffic{flows: []flow{{key: tr.flows[biggest].key}}}
	for _, p := range tr.packets {
		if p.flow == uint32(biggest) {
			p.flow = 0
			alone.add(p)
		}
	}
	off := func(tr *traffic, i int) []float64 {
		r := tr.race(1000, 3, []int{i})
		return []float64{r.theorem.Median(every), r.single.Median(every), r.joint.Median(every)}
	}
	if x := off(alone, 0); x[0] > 1e-9 || x[1] > 1e-9 || x[2] > 0.01 {
		t.Errorf("relative errors of a flow alone: %v", x)
	}
	if x := off(tr, biggest); x[0] < 1e-6 || x[1] < 1e-6 {
		t.Errorf("relative errors of a flow among others: %v", x)
	}
}

func TestSome(t *testing.T) {
	tr := &traffic{flows: make([]flow, 100)}
	for i := range tr.flows {
		tr.flows[i].packets = 1 + i%2*999
	}
	if got := tr.some(large, 5); !reflect.DeepEqual(got, []int{1, 21, 41, 61, 81}) {
		t.Errorf("chose %v", got)
	}
	if got := tr.some(large, 500); len(got) != 50 {
		t.Errorf("chose %d of 50", len(got))
	}
}
