package mplane_test

import (
	"fmt"
	"strings"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/lda/mplane"
)

// Two monitors of one process compare a segment by LDA, and a station takes the result.
func ExampleStation_Take() {
	network, _ := mplane.ReadWeights(strings.NewReader("london paris 1\nparis london 1\n"))
	plan, _ := network.Plan(mplane.Deployment{Upgraded: []mplane.Router{0, 1}})
	station, _ := mplane.NewStation(mplane.StationConfig{Plan: plan, Length: 1e9})

	up, _ := lda.New(lda.DefaultConfig)
	down, _ := lda.New(lda.DefaultConfig)
	for i := range uint64(1000) {
		up.Update(hashing.Word(7, i), int64(i))
		down.Update(hashing.Word(7, i), int64(i)+4_000_000)
	}
	result, _ := lda.Estimate(up, down)
	measurement := mplane.Measure(plan.MSet(0)[0], &result)
	measurement.AheadError = 1 // one clock stamped both ends
	err := station.Take(0, mplane.Report{
		Monitor: 0, Interval: 0, Measurements: []mplane.Measurement{measurement},
	})

	path, _ := station.Path([]mplane.Router{0, 1}, 0)
	fmt.Println(err, path.Mean, path.N, path.Loss)
	// Output: <nil> 4e+06 1000 0
}
