package figreal

import (
	"bytes"
	"os"
	"testing"

	"github.com/hoplag/hoplag/bench/experiment"
)

// The picture in README is what the experiment draws.
func TestPicture(t *testing.T) {
	t.Chdir("../..")
	result, err := LDA.Execute(&experiment.Run{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	p := result.Pictures[0]
	if shown, err := os.ReadFile("bench/pictures/" + p.File); err != nil || !bytes.Equal(shown, p.SVG) {
		t.Errorf("bench/pictures/%s is another picture, %v", p.File, err)
	}
}
