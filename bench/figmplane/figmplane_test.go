package figmplane

import (
	"reflect"
	"testing"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/lda/mplane"
)

// Where all packets take equally long nothing is named; then the one segment that takes twice as long is.
func TestWatch(t *testing.T) {
	var o outcome
	e := experiment.Experiment{Name: "watch", Measure: func(run *experiment.Run) {
		for seed := range uint64(3) {
			o.watch(run, seed+40, 1, 2)
		}
	}}
	if _, err := e.Execute(&experiment.Run{Seed: 1}); err != nil {
		t.Fatal(err)
	}
	if o.runs != 3 || o.looks != 6 || o.named < 3 {
		t.Errorf("%+v", o)
	}
}

func TestMakeMap(t *testing.T) {
	run := &experiment.Run{Seed: 1}
	n := makeMap(run.Rand("map"), 100, 3)
	if !reflect.DeepEqual(n, makeMap(run.Rand("map"), 100, 3)) {
		t.Error("another map when drawn again")
	}
	for r := range n.Routers() - 1 {
		if len(n.Paths(99, mplane.Router(r))) == 0 {
			t.Errorf("router %d cannot be reached", r)
		}
	}
}
