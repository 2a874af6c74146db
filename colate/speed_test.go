package colate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/hoplag/hoplag/bench/speed"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
)

// BenchmarkQuery answers for flows from two stores of an hour, all in the system's cache.
func BenchmarkQuery(b *testing.B) {
	flows, packets := speed.Flows(), speed.Packets()
	c := DefaultConfig
	up, _ := New(c)
	down, _ := New(c)
	for i, f := range flows {
		up.Update(f, packets[i], int64(i)*20_000)
		down.Update(f, packets[i], int64(i)*20_000+100_000)
	}
	var path Path
	for i, point := range []**Store{&path.Up, &path.Down} {
		*point = openStore(b, dir(b.TempDir()), StoreOptions{})
		for minute := range int64(60) {
			r := []*Recorder{up, down}[i]
			r.start = minute * c.Period
			if err := (*point).Append(r); err != nil {
				b.Fatal(err)
			}
		}
	}
	for _, n := range []int{1, 4000} {
		records := make([]joint.FlowRecord, n)
		for i := range records {
			records[i] = joint.FlowRecord{Flow: flows[i], Packets: 60} // one of each minute
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.ReportAllocs(); b.Loop(); {
				_, coverage, err := path.EstimateAll(b.Context(), records, 0, 60*c.Period-1)
				if err != nil || coverage.Epochs != 60 {
					b.Fatal(err, coverage)
				}
				b.ReportMetric(float64(coverage.Bytes)/1e6, "MB-read/op")
			}
		})
	}
}

// BenchmarkDecode is the answer about a million flows of nine packets on average from one epoch.
func BenchmarkDecode(b *testing.B) {
	up, _ := New(DefaultConfig)
	down, _ := New(DefaultConfig)
	rng := rand.New(rand.NewPCG(1, 1))
	flows := make([]joint.FlowRecord, 1_000_000)
	for i := range flows {
		f := hashing.Flow(rng.Uint64())
		n := int(min(1.2*math.Pow(1-rng.Float64(), -1/1.1), 100_000))
		flows[i] = joint.FlowRecord{Flow: f, Packets: float64(n)}
		mean := 100_000 * math.Exp(0.7*rng.NormFloat64())
		for range n {
			p, at := hashing.Packet(rng.Uint64()), rng.Int64N(59e9)
			up.Update(f, p, at)
			down.Update(f, p, at+int64(mean*rng.ExpFloat64()))
		}
	}
	// What it holds besides, as sampled by a garbage collector that runs often.
	defer debug.SetGCPercent(debug.SetGCPercent(5))
	live := func() float64 {
		s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(s)
		return float64(s[0].Value.Uint64()) / 1e6
	}
	runtime.GC()
	before, most, done := live(), 0.0, make(chan error, 1)
	for b.Loop() {
		go func() {
			_, err := Decode(b.Context(), up, down, flows, joint.Options{})
			done <- err
		}()
		for len(done) == 0 {
			time.Sleep(5 * time.Millisecond)
			most = max(most, live())
		}
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(most-before, "MB-held")
}
