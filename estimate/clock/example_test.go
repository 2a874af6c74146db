package clock_test

import (
	"fmt"

	"github.com/hoplag/hoplag/estimate/clock"
)

func ExampleTracker() {
	tracker, err := clock.New(clock.DefaultConfig)
	if err != nil {
		fmt.Println(err)
		return
	}
	// The far clock is 100 ms ahead. Packets take 500 µs and more, each way.
	var forth, home []clock.Sample
	for i := range int64(100) {
		at := 1_790_000_000_000_000_000 + i*10_000_000
		forth = append(forth, clock.Sample{Time: at, Delay: 100_000_000 + 500_000 + i%3*40_000, Packets: 1})
		home = append(home, clock.Sample{Time: at, Delay: -100_000_000 + 500_000 + i%2*90_000, Packets: 1})
	}
	r, err := tracker.Add(forth, home)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%.3f ms ahead, certainly %.1f to %.1f\n", r.Offset/1e6, r.Certain.Low/1e6, r.Certain.High/1e6)
	// Output: 100.000 ms ahead, certainly 99.5 to 100.5
}
