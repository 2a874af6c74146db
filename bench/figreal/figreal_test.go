package figreal

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/perflow"
	"github.com/hoplag/hoplag/estimate"
)

// read loads a source, as from the project's root, or skips the test.
func read(t *testing.T, s source) *capture {
	t.Helper()
	t.Chdir("../..")
	c, err := s.load()
	if errors.Is(err, fs.ErrNotExist) && !s.ships {
		t.Skip("captures that are not part of the project are not here: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestTruth(t *testing.T) {
	for _, c := range []struct {
		source
		packets, lost int
		mean          float64 // ns, to two digits after the point; 0 if it was not published
	}{
		{source: sources[0], packets: 7830, lost: 370},
		{source: sources[1], packets: 213_228 - 1132, lost: 840}, // less frames without IP
		{source: hardware, packets: 1000, mean: 4546.40},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := read(t, c.source)
			all := got.truth()
			if len(got.packets) != c.packets || got.lost != c.lost || int(all.N()) != c.packets-c.lost {
				t.Errorf("%d packets, %d lost, %d delays, want %d, %d, %d", len(got.packets), got.lost, all.N(), c.packets, c.lost, c.packets-c.lost)
			}
			if c.mean > 0 && math.Abs(all.Mean()-c.mean) > 0.005 {
				t.Errorf("mean %v, want %v", all.Mean(), c.mean)
			}
			sent, arrived := 0, uint64(0)
			for i := range got.flows {
				sent += got.flows[i].sent
				arrived += got.flows[i].delays.N()
			}
			if sent != c.packets || arrived != all.N() {
				t.Errorf("flows have %d packets and %d delays", sent, arrived)
			}
		})
	}
}

func TestStudy(t *testing.T) {
	var none, short, long estimate.Moments
	for range 40 {
		short.Add(1000)
	}
	for range 50 {
		long.Add(5000)
	}
	c := &capture{flows: []flow{{sent: 60, delays: none}, {sent: 40, delays: short}, {sent: 50, delays: long}, {sent: 5, delays: short}}}
	s := c.study()
	if want := []int{1, 2}; !reflect.DeepEqual(s.large, want) {
		t.Errorf("large flows %v, want %v", s.large, want)
	}
	silent := math.NaN()
	for _, c := range []struct {
		name                  string
		answers               []float64
		median, rms, answered float64
	}{
		{"right", []float64{silent, 1000, 5000, silent}, 0, 0, 1},
		{"none", perflow.Unanswered(4), 1, 1, 0},
		{"twice as long", []float64{1, 2000, 10000, 1}, 1, 1, 1},
		{"one of two", []float64{silent, 1000, silent, silent}, 0, 5 / math.Sqrt(26), 0.5},
		{"same for all", []float64{5000, 5000, 5000, 5000}, 0, 4 / math.Sqrt(26), 1},
	} {
		if got := s.median(c.answers); got != c.median {
			t.Errorf("%s: median %v, want %v", c.name, got, c.median)
		}
		if got := s.rms(c.answers); math.Abs(got-c.rms) > 1e-12 {
			t.Errorf("%s: root mean square %v, want %v", c.name, got, c.rms)
		}
		if got := s.answered(c.answers); got != c.answered {
			t.Errorf("%s: %v answered, want %v", c.name, got, c.answered)
		}
	}
}

// shippedOnly goes to a directory where only what ships with the project is,
// as its users have it.
func shippedOnly(t *testing.T) {
	t.Helper()
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(t.TempDir(), "project")
	if err := os.Mkdir(root, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(examples, filepath.Join(root, "examples")); err != nil {
		t.Skip("no symbolic links here: ", err)
	}
	t.Chdir(root)
}

// Runs repeat bit for bit, and no other seed gives the same. What is missing is
// said.
func TestRepeats(t *testing.T) {
	shippedOnly(t)
	for _, e := range Experiments() {
		t.Run(e.Name, func(t *testing.T) {
			result := func(seed uint64) experiment.Result {
				r, err := e.Execute(t.Context(), &experiment.Run{Seed: seed, Quick: true})
				if err != nil {
					t.Fatal(err)
				}
				return r
			}
			first := result(1)
			if !reflect.DeepEqual(first, result(1)) {
				t.Error("two runs of one seed differ")
			}
			if other := result(2); reflect.DeepEqual(first.Claims, other.Claims) && reflect.DeepEqual(first.Figures,
				other.Figures) && e.Name != "ours-repeats" {
				t.Error("seeds 1 and 2 give the same") // RLI draws nothing, and no interval may miss copies
			}
			if notes := strings.Join(first.Notes, "\n"); !strings.Contains(notes, "which are not part of the project") {
				t.Errorf("not said that captures are missing:\n%s", notes)
			}
		})
	}
}

func TestStops(t *testing.T) {
	shippedOnly(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, e := range Experiments() {
		if _, err := e.Execute(ctx, &experiment.Run{Seed: 1, Quick: true}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want it canceled", e.Name, err)
		}
	}
}

// Elsewhere than in the project's root the error says what is the matter.
func TestElsewhere(t *testing.T) {
	t.Chdir(t.TempDir())
	_, err := realFlows.Execute(t.Context(), &experiment.Run{})
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v, want that there are no captures", err)
	}
}
