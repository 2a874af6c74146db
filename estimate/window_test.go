package estimate

import "testing"

// TestScatterUnderNoise checks that one packet of a sparse group does not speak for all with no
// error, where cells that may have lost packets add so much noise that no scatter is left beside.
func TestScatterUnderNoise(t *testing.T) {
	w := window{to: 1, lossy: true, groups: make([]groupWindow, 2)}
	for g := range w.groups {
		w.groups[g].cuts, w.groups[g].way = make([]cutShare, 1), make([]float64, 2)
	}
	add := func(group int, x span, area, variance float64) {
		x.to, x.area, x.in, x.on, x.way = 1, []float64{area}, []uint32{1}, []int32{0}, []float64{0}
		w.add(&w.groups[group], &x, variance, 1)
		w.groups[group].next()
	}
	for i := range 400 {
		add(0, span{exact: true, sent: 1}, 5e6+float64(i%2)*10e6, 0)
		add(0, span{open: true}, 10e6, 1e18)
	}
	add(1, span{exact: true, sent: 1}, 5e6, 0)
	for g := range w.groups {
		w.groups[g].finish(1)
	}
	got, err := w.combine()
	if err != nil || got.Error < 4e6 {
		t.Errorf("mean %.3g ± %.3g, %v; delays differ by 5e6 from their mean of 10e6", got.Mean, got.Error, err)
	}
}
