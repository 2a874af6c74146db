package figreal

import (
	"reflect"
	"testing"

	"github.com/hoplag/hoplag/bench/experiment"
)

func TestCapture(t *testing.T) {
	t.Chdir("../..")
	if c := load(); len(c.packets) != 7830 || len(c.leaving) != 7830-370 {
		t.Errorf("%d packets, of which %d left, want 7830 and 370 fewer", len(c.packets), len(c.leaving))
	}
}

// Runs repeat bit for bit, and another seed gives something else.
func TestRepeats(t *testing.T) {
	t.Chdir("../..")
	result := func(e experiment.Experiment, seed uint64) experiment.Result {
		r, err := e.Execute(t.Context(), &experiment.Run{Seed: seed, Quick: true})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for _, e := range Experiments() {
		if !reflect.DeepEqual(result(e, 1), result(e, 1)) {
			t.Errorf("%s: two runs of one seed differ", e.Name)
		}
	}
	if reflect.DeepEqual(result(oursRepeats, 1).Tables, result(oursRepeats, 2).Tables) {
		t.Error("seeds 1 and 2 give the same")
	}
}
