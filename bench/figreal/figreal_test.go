package figreal

import (
	"bytes"
	"os"
	"testing"

	"github.com/hoplag/hoplag/bench/experiment"
)

func TestCapture(t *testing.T) {
	t.Chdir("../..")
	if c := load(); len(c.packets) != 7830 || len(c.leaving) != 7830-370 {
		t.Errorf("%d packets, of which %d left, want 7830 and 370 fewer", len(c.packets), len(c.leaving))
	}
}

// The picture in README is what the experiment draws.
func TestPicture(t *testing.T) {
	t.Chdir("../..")
	result, err := realLDA.Execute(t.Context(), &experiment.Run{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	p := result.Pictures[0]
	if shown, err := os.ReadFile("bench/pictures/" + p.File); err != nil || !bytes.Equal(shown, p.SVG) {
		t.Errorf("bench/pictures/%s is another picture, %v", p.File, err)
	}
}
