package main

import (
	"runtime"
	"testing"

	"github.com/hoplag/hoplag/bench/speed"
	"github.com/hoplag/hoplag/colate"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/lds"
)

// inFlight are how many packets are on their way at a time: a thousand, as on a short path, and a million, as
// on 100 Gb/s for 100 ms.
var inFlight = []struct {
	name  string
	count int
}{
	{"1K", 1 << 10},
	{"64K", 1 << 16},
	{"1M", 1 << 20},
}

// benchmarkPipeline fills the pipeline once and keeps using it. The floor adds a packet to a cell at both of
// its ends, which lie as far apart in the stream.
func benchmarkPipeline(b *testing.B, name string, create func(*traffic) pipeline) {
	for _, size := range inFlight {
		var p pipeline
		var s *traffic
		b.Run(name+"/"+size.name, func(b *testing.B) {
			if s == nil {
				s = newTraffic(flowCount, size.count)
				p = create(s)
				s.step(&p, 2*size.count)
			}
			arrive, leave := speed.Floor(speed.Packets()), speed.Floor(speed.Packets())
			path := func(from, to int) { s.step(&p, to-from) }
			speed.Compare(b, speed.StreamLength, 0, path, func(from, to int) {
				arrive(from, to)
				behind := max(0, from-size.count)
				leave(behind, behind+to-from)
			})
		})
	}
}

// BenchmarkPipeline is one packet's arrival and departure, for the delay of all packets: matching then
// recording, against updates at both ends.
func BenchmarkPipeline(b *testing.B) {
	benchmarkPipeline(b, "lda", ldaPipeline)
	for i, r := range recorders() {
		benchmarkPipeline(b, "map+"+r.name, func(*traffic) pipeline { return matching("map", mapMatcher{}, recorders()[i]) })
	}
	for i, r := range recorders()[:2] {
		benchmarkPipeline(b, "table+"+r.name, func(s *traffic) pipeline {
			return matching("table", newLossyTable(s.inFlight), recorders()[i])
		})
	}
}

// flowCount is how many flows the packets of the benchmarks belong to.
const flowCount = 1 << 16

// BenchmarkFlowPipeline is the same for the delay of each of 65,536 flows.
func BenchmarkFlowPipeline(b *testing.B) {
	benchmarkPipeline(b, "lds", ldsPipeline)
	benchmarkPipeline(b, "colate", colatePipeline)
	benchmarkPipeline(b, "map+map", mapFlowPipeline)
}

// BenchmarkMemory reports how many bytes of the heap a million packets in flight keep, both ends together, and
// how many bytes one end has to tell the other, if they are apart, of a million packets: an identity of 8 bytes
// and a time of 8 for each, or the encoded synopsis.
func BenchmarkMemory(b *testing.B) {
	const million = 1_000_000
	packets, flows := speed.Packets()[:million], speed.Flows()[:million]
	for _, c := range []struct {
		name string
		fill func() any // all that is kept
		told func(any) int
	}{
		{"lda", func() any {
			ends := [2]*lda.Aggregator{must(lda.New(lda.DefaultConfig)), must(lda.New(lda.DefaultConfig))}
			for i, p := range packets {
				ends[0].Update(p, int64(i))
			}
			return ends
		}, func(kept any) int {
			return len(must(kept.([2]*lda.Aggregator)[0].MarshalBinary()))
		}},
		{"lds", func() any {
			ends := [2]*lds.Sketch{must(lds.New(lds.DefaultConfig)), must(lds.New(lds.DefaultConfig))}
			for i, p := range packets {
				ends[0].Update(flows[i], p, int64(i))
			}
			return ends
		}, func(kept any) int {
			return len(must(kept.([2]*lds.Sketch)[0].MarshalBinary()))
		}},
		{"colate", func() any {
			ends := [2]*colate.Recorder{must(colate.New(colate.DefaultConfig)), must(colate.New(colate.DefaultConfig))}
			for i, p := range packets {
				ends[0].Update(flows[i], p, int64(i))
			}
			return ends
		}, func(kept any) int {
			return len(must(kept.([2]*colate.Recorder)[0].MarshalBinary()))
		}},
		{"map", func() any {
			m := mapMatcher{}
			m.ingress(packets, 0)
			return m
		}, perPacket},
		{"table", func() any {
			m := newLossyTable(million)
			m.ingress(packets, 0)
			return m
		}, perPacket},
	} {
		b.Run(c.name, func(b *testing.B) {
			var bytes, told float64
			for range b.N {
				before := heap()
				kept := c.fill()
				bytes = heap() - before
				told = float64(c.told(kept))
				runtime.KeepAlive(kept)
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(bytes/million, "MB-kept")
			b.ReportMetric(told/million, "MB-told")
		})
	}
}

func perPacket(any) int { return 1_000_000 * 16 }

// heap is how many bytes are in use after a collection.
func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}
