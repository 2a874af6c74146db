package queue

import (
	"fmt"
	"math"
	"testing"
)

// After a while, when queues are as large as they get, nothing allocates.
func TestAllocations(t *testing.T) {
	const n = 20000
	packets := tracked(n, 13)
	span := packets[n-1].Time + 100_000
	check := func(name string, round func(offset int64)) {
		offset := int64(0)
		run := func() {
			round(offset)
			offset += span
		}
		run()
		if got := testing.AllocsPerRun(3, run); got != 0 {
			t.Errorf("%s: %v allocations for %d packets, want none", name, got, n)
		}
	}
	link := must(NewLink(lossyLink))(t)
	check("link", func(offset int64) {
		for i := range packets {
			link.Send(offset+packets[i].Time, int(packets[i].Bytes))
		}
	})
	for name, hop := range hops(t) {
		var p, out Packet
		check(name, func(offset int64) {
			for i := range packets {
				p = packets[i]
				p.Time += offset
				for hop.Next(p.Time, &out) {
				}
				hop.Send(&p)
			}
			for hop.Next(offset+span-1, &out) {
			}
		})
	}
}

func BenchmarkLink(b *testing.B) {
	// 65,536 packets, 1.5 MiB with the backlog, over and over.
	packets := bursty(1<<16, 14)
	span := packets[len(packets)-1].Time + 1
	for _, queue := range []string{"unlimited", "packets", "red"} {
		b.Run(queue, func(b *testing.B) {
			link := must(NewLink(LinkConfig{Rate: 8e9, Queue: referenceQueues[queue], Seed: 1}))(b)
			b.ReportAllocs()
			for i := range b.N {
				p := &packets[i&(1<<16-1)]
				link.Send(p.Time+int64(i>>16)*span, int(p.Bytes))
			}
			report(b)
		})
	}
}

func BenchmarkHops(b *testing.B) {
	packets := tracked(1<<16, 14)
	span := packets[len(packets)-1].Time + 1
	for _, name := range []string{"fifo", "strict", "paths", "chain"} {
		b.Run(name, func(b *testing.B) {
			hop := hops(b)[name]
			var in, p Packet
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				in = packets[i&(1<<16-1)]
				in.Time += int64(i>>16) * span
				for hop.Next(in.Time, &p) {
				}
				hop.Send(&in)
			}
			for hop.Next(math.MaxInt64, &p) {
			}
			report(b)
		})
	}
}

func report(b *testing.B) {
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "Mpkt/s")
}

func BenchmarkLoss(b *testing.B) {
	for _, c := range []LossConfig{{Probability: 0.01}, {Probability: 0.01, Burst: 100}} {
		b.Run(fmt.Sprintf("burst %v", c.Burst), func(b *testing.B) {
			loss := must(NewLoss(c, 1))(b)
			lost := 0
			for range b.N {
				if loss.Drop() {
					lost++
				}
			}
			report(b)
		})
	}
}
