package figreal

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/hoplag/hoplag/bench/experiment"
)

// The shipped capture is read whole, and so is one that does not ship, if it is
// here.
func TestTruth(t *testing.T) {
	for _, c := range []struct {
		source
		packets, lost int
	}{
		{source: sources[0], packets: 7830, lost: 370},
		{source: sources[1], packets: 213_228 - 1132, lost: 840}, // less frames without IP
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Chdir("../..")
			got, err := c.load()
			if errors.Is(err, fs.ErrNotExist) && !c.ships {
				t.Skip("captures that are not part of the project are not here: ", err)
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(got.packets) != c.packets || len(got.leaving) != c.packets-c.lost {
				t.Errorf("%d packets, %d left, want %d, %d", len(got.packets), len(got.leaving), c.packets, c.packets-c.lost)
			}
		})
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

// Runs repeat bit for bit, another seed gives something else, and notes name the
// captures that are missing.
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
			if e.Name == oursRepeats.Name && reflect.DeepEqual(first.Tables, result(2).Tables) {
				t.Error("seeds 1 and 2 give the same")
			}
			if notes := strings.Join(first.Notes, "\n"); !strings.Contains(notes, "which are not part of the project") {
				t.Errorf("the notes do not say that captures are missing:\n%s", notes)
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

// Outside the project's root the error says what is wrong.
func TestElsewhere(t *testing.T) {
	t.Chdir(t.TempDir())
	if _, err := realLDA.Execute(t.Context(), &experiment.Run{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v, want that there are no captures", err)
	}
}
