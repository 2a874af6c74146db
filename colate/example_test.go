package colate_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/hoplag/hoplag/colate"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
)

// Two points record an epoch, and one flow of it is asked for.
func Example() {
	up, err := colate.New(colate.DefaultConfig)
	if err != nil {
		panic(err)
	}
	down, _ := colate.New(colate.DefaultConfig)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range int64(100_000) {
		flow, packet := hashing.Flow(i%1000), hashing.Packet(rng.Uint64())
		sent := i * 10_000
		up.Update(flow, packet, sent)
		if i%500 == 0 {
			continue // lost
		}
		delay := int64(200_000 * rng.ExpFloat64())
		if flow == 7 {
			delay += 1_000_000
		}
		down.Update(flow, packet, sent+delay)
	}
	r, err := colate.Estimate(up, down, joint.FlowRecord{Flow: 7, Packets: 100})
	if err != nil {
		panic(err)
	}
	i := r.MeanInterval(0.95)
	fmt.Printf("mean %.3f ms, between %.3f and %.3f ms\n", r.Mean/1e6, i.Low/1e6, i.High/1e6)
	// Output: mean 1.158 ms, between 1.149 and 1.165 ms
}

// Two points keep what they record for as long as they like; a flow is asked for by its time.
func ExampleStore() {
	dir, err := os.MkdirTemp("", "colate")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	config := colate.DefaultConfig
	config.Counters, config.Period = 1000, 1e9 // cut every second

	record := func(name string, delay int64) *colate.Store {
		store, err := colate.OpenStore(filepath.Join(dir, name), colate.StoreOptions{})
		if err != nil {
			panic(err)
		}
		rotation, _ := estimate.NewRotation(colate.New, config)
		rng := rand.New(rand.NewPCG(1, 2))
		keep := func() {
			done, _ := rotation.Rotate()
			if err := store.Append(done); err != nil {
				panic(err)
			}
			rotation.Release(done)
		}
		for i := range int64(50_000) {
			now := i*100_000 + delay // five seconds
			if rotation.Active().Due(now) {
				keep()
			}
			rotation.Active().Update(hashing.Flow(i%10), hashing.Packet(rng.Uint64()), now)
		}
		keep()
		return store
	}
	path := colate.Path{Up: record("ingress", 0), Down: record("egress", 2_500_000)}
	defer path.Up.Close()
	defer path.Down.Close()
	// Seconds 1 and 2, in which flow 3 had 1,000 packets each.
	r, coverage, err := path.Estimate(context.Background(), joint.FlowRecord{Flow: 3, Packets: 2000}, 1e9, 3e9-1)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%d pairs of epochs, mean %.2f ms\n", coverage.Epochs, r.Mean/1e6)
	// Output: 2 pairs of epochs, mean 2.50 ms
}

func ExamplePlan() {
	config, err := colate.Plan(colate.Demand{Rate: 70_000, BytesADay: 4e9, Delay: 100e6})
	if err != nil {
		panic(err)
	}
	fmt.Printf("%d counters: %.1f bits a packet\n", config.Counters, config.BitsPerPacket(70_000))
	// Output: 301113 counters: 5.3 bits a packet
}
