package mplane_test

import (
	"fmt"
	"strings"

	"github.com/hoplag/hoplag/estimate/clock"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/lda/mplane"
)

// Two monitors compare a segment by LDA, and a station receives the result.
func ExampleStation_Receive() {
	network, _ := mplane.ReadWeights(strings.NewReader("london paris 1\nparis london 1\n"))
	plan, _ := network.Plan([]mplane.Router{0, 1}, nil)
	station, _ := mplane.NewStation(mplane.StationConfig{Plan: plan, Length: 1e9})

	up, _ := lda.New(lda.DefaultConfig)
	down, _ := lda.New(lda.DefaultConfig)
	for i := range uint64(1000) {
		up.Update(hashing.Word(7, i), int64(i))
		down.Update(hashing.Word(7, i), int64(i)+4_000_000)
	}
	result, _ := lda.Estimate(up, down)
	measurement := mplane.Measure(plan.MSet(0)[0], &result)
	measurement.SetClock(clock.Reading{}) // one clock stamped both ends
	report := mplane.Report{Monitor: 0, Interval: 0, Measurements: []mplane.Measurement{measurement}}
	datagrams, err := plan.Datagrams(report, mplane.Key{})
	for _, data := range datagrams {
		err = station.Receive(0, data)
	}

	path, _ := station.Path([]mplane.Router{0, 1}, 0)
	fmt.Println(err, path.Mean, path.N, path.Loss)
	// Output: <nil> 4e+06 1000 0
}
