package colate

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/areas"
	"github.com/hoplag/hoplag/hashing"
)

// BenchmarkEngines gives the same counters, of nine packets an epoch for an hour, to a table
// and to [areas.Areas], which LDA and LDS use: of how many packets either knows the area, and
// what a counter takes in an epoch. METHODS.md says why paths have tables.
func BenchmarkEngines(b *testing.B) {
	const epochs, counters = 60, 10_000
	c := minutes(counters)
	for _, of := range []struct{ delay, loss float64 }{{0.005, 0.01}, {0.1, 0.05}, {1, 0.05}} {
		rng := rand.New(rand.NewPCG(1, 1))
		var both [epochs + 1][2]*Recorder
		for e := range both {
			both[e][0], _ = New(c)
			both[e][1], _ = New(c)
		}
		came := 0.0
		for range 9 * counters * epochs {
			f, p, at := hashing.Flow(rng.IntN(5000)), hashing.Packet(rng.Uint64()), rng.Int64N(epochs*c.Period)
			both[at/c.Period][0].Update(f, p, at)
			if at += int64(of.delay * float64(c.Period) * rng.ExpFloat64()); rng.Float64() >= of.loss && at < epochs*c.Period {
				both[at/c.Period][1].Update(f, p, at)
				came++
			}
		}
		for name, engine := range map[string]func(*Config, [][2]*Recorder) float64{"table": inTable, "areas": inAreas} {
			b.Run(fmt.Sprintf("%s/delay=%g,loss=%g", name, of.delay, of.loss), func(b *testing.B) {
				known := 0.0
				for range b.N {
					known = engine(&c, both[:epochs])
				}
				b.ReportMetric(100*known/came, "%-known")
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*counters*epochs), "ns/counter")
			})
		}
	}
}

// inTable returns of how many packets a table knows the area.
func inTable(c *Config, both [][2]*Recorder) (known float64) {
	t := newCellTable(*c, c.Counters, room)
	flush := func() {
		var s sight
		for i := range c.Counters {
			t.read(i, &s)
			for e := range t.epochs {
				known += t.packets(i, e) * float64(t.live&s.settled>>e&1)
			}
		}
		t.live = 0
	}
	for e, pair := range both {
		for i := range c.Counters {
			t.put(i, pair[0].words[i], pair[1].words[i])
		}
		t.end(span{int64(e) * c.Period, int64(e+1) * c.Period}, true, flush)
	}
	flush()
	return known
}

// inAreas returns of how many packets Areas knows it, which are settled every 16 epochs.
func inAreas(c *Config, both [][2]*Recorder) (known float64) {
	a := areas.New([]int{c.Counters}, c.sumBits(), c.DigestBits)
	for e, pair := range both {
		for i := range c.Counters {
			up, down := pair[0].words[i], pair[1].words[i]
			sent := up & (1<<c.CountBits - 1)
			more := estimate.SignExtend(down-up, int(c.CountBits))
			digest := (down - up - uint64(more)) >> c.CountBits & (1<<c.DigestBits - 1)
			a.Cut(i, areas.CellPair{SentSum: up >> c.lowBits(), SentTally: sent, ReceivedSum: down >> c.lowBits(),
				ReceivedTally: uint64(int64(sent)+more) + digest<<32})
		}
		a.Next(int64(e+1) * c.Period >> c.Shift)
		if from := a.Cuts() - 16; a.Cuts()%16 == 0 || e == len(both)-1 {
			from = max(from, (a.Cuts()-1)/16*16)
			_, _ = a.Transit(from, a.Cuts(), nil) // which Spans asks for
			a.Spans(from, a.Cuts(), func(s areas.Span) {
				if s.Variance == 0 && !s.Open {
					known += float64(s.Received)
				}
			})
			a.Settle(a.Cuts())
		}
	}
	runtime.KeepAlive(a)
	return known
}
