package colate

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/areas"
	"github.com/hoplag/hoplag/hashing"
)

// BenchmarkEngines gives the same counters, of nine packets an epoch for an hour, to a table
// and to [areas.Areas], which LDA and LDS use: of how many packets either knows the area, and
// what a counter takes in an epoch. METHODS.md says why paths have tables.
func BenchmarkEngines(b *testing.B) {
	const epochs, counters = int64(60), 10_000
	c := minutes(counters)
	for _, of := range []struct{ delay, loss float64 }{{0.005, 0.01}, {0.1, 0.05}, {1, 0.05}} {
		rng, law := rand.New(rand.NewPCG(1, 1)), exponential(of.delay*float64(c.Period), of.loss)
		w, came := world{config: c}, 0.0
		var all []passage
		for range 9 * counters * epochs {
			p := passage{Flow: hashing.Flow(rng.IntN(5000)), Packet: hashing.Packet(rng.Uint64()), Sent: rng.Int64N(epochs * c.Period)}
			delay, lost := law(rng, 0)
			p.At = p.Sent + int64(delay)
			if p.Lost = lost; !lost && p.At < epochs*c.Period {
				came++
			}
			all = append(all, p)
		}
		both, _ := w.cut(b, all)
		for name, engine := range map[string]func(*Config, map[int64]*[2]*Recorder, int64) float64{"table": inTable, "areas": inAreas} {
			b.Run(fmt.Sprintf("%s/delay=%g,loss=%g", name, of.delay, of.loss), func(b *testing.B) {
				known := 0.0
				for range b.N {
					known = engine(&c, both, epochs)
				}
				b.ReportMetric(100*known/came, "%-known")
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(int64(b.N)*counters*epochs), "ns/counter")
			})
		}
	}
}

// inTable returns of how many packets a table knows the area.
func inTable(c *Config, both map[int64]*[2]*Recorder, epochs int64) (known float64) {
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
	for e := range epochs {
		for i := range c.Counters {
			t.put(i, both[e][0].words[i], both[e][1].words[i])
		}
		t.end(span{e * c.Period, (e + 1) * c.Period}, true, flush)
	}
	flush()
	return known
}

// inAreas returns of how many packets Areas knows it, which are settled every 16 epochs.
func inAreas(c *Config, both map[int64]*[2]*Recorder, epochs int64) (known float64) {
	a := areas.New([]int{c.Counters}, c.sumBits(), c.DigestBits)
	for e := range epochs {
		for i := range c.Counters {
			up, down := both[e][0].words[i], both[e][1].words[i]
			sent := up & (1<<c.CountBits - 1)
			more := estimate.SignExtend(down-up, int(c.CountBits))
			digest := (down - up - uint64(more)) >> c.CountBits & (1<<c.DigestBits - 1)
			a.Cut(i, areas.CellPair{SentSum: up >> c.lowBits(), SentTally: sent, ReceivedSum: down >> c.lowBits(),
				ReceivedTally: uint64(int64(sent)+more) + digest<<32})
		}
		a.Next((e + 1) * c.Period >> c.Shift)
		if from := (a.Cuts() - 1) / 16 * 16; a.Cuts()%16 == 0 || e == epochs-1 {
			_, _ = a.Transit(from, a.Cuts(), nil) // which Spans asks for
			a.Spans(from, a.Cuts(), func(s areas.Span) {
				if s.Variance == 0 && !s.Open {
					known += float64(s.Received)
				}
			})
			a.Settle(a.Cuts())
		}
	}
	return known
}
