package figmplane

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/lda/mplane"
)

// sprintFile is where the map of AS 1239 is, where it is: it is not part of
// the project.
var sprintFile = filepath.Join("..", "shared", "data", "topology", "as1239.weights")

// sprintMap reads the map that the paper used, or returns nil.
func sprintMap() *mplane.Network {
	file, err := os.Open(sprintFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	experiment.Check(err)
	defer file.Close()
	return experiment.Try(mplane.ReadWeights(file))
}

// makeMap draws a map as backbones are: routers on a plane, each new one
// linked to some that have many links already or are near, weights by
// distance, in steps of 0.5 so that equal costs are common.
func makeMap(random *rand.Rand, routers, linksEach int) *mplane.Network {
	n := mplane.NewNetwork()
	type place struct{ x, y, degree float64 }
	places := make([]place, routers)
	name := func(i int) string { return fmt.Sprintf("router %d", i+1) }
	for i := range places {
		places[i] = place{x: random.Float64(), y: random.Float64(), degree: 1}
		distance := func(j int) float64 { return math.Hypot(places[i].x-places[j].x, places[i].y-places[j].y) }
		for range min(i, linksEach) {
			best, worth := 0, 0.0
			for range 8 { // the best of some: well linked and near
				j := random.IntN(i)
				if w := places[j].degree / (0.1 + distance(j)); w > worth {
					best, worth = j, w
				}
			}
			weight := math.Ceil(20*distance(best)) / 2
			if n.AddLink(name(i), name(best), weight) == nil {
				experiment.Check(n.AddLink(name(best), name(i), weight))
				places[i].degree++
				places[best].degree++
			}
		}
	}
	return n
}
