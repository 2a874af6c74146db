package main

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/hoplag/hoplag/bench/speed"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/lda/control"
)

// streams are the packets of a large and of a small working set.
func streams(b *testing.B, f func(b *testing.B, packets []hashing.Packet)) {
	b.Run("stream-16MiB", func(b *testing.B) { f(b, speed.Packets()) })
	b.Run("stream-64KiB", func(b *testing.B) { f(b, speed.Packets()[:1<<13]) })
}

// BenchmarkLDAUpdate is one packet at a time, with its own timestamp. The aggregator is 32 KiB with two banks
// of 1,024 cells, 80 KiB with the default's four, the first of which takes most packets.
func BenchmarkLDAUpdate(b *testing.B) {
	for _, c := range []struct {
		name   string
		config lda.Config
		bar    float64
	}{
		{"2banks", twoBanks, 2.0},
		{"default-4banks", lda.DefaultConfig, 0},
	} {
		b.Run(c.name, func(b *testing.B) {
			streams(b, func(b *testing.B, packets []hashing.Packet) {
				a := must(lda.New(c.config))
				speed.Compare(b, len(packets), c.bar, func(from, to int) {
					t := int64(from)
					for i, p := range packets[from:to] {
						a.Update(p, t+int64(i))
					}
				}, speed.Floor(packets))
			})
		})
	}
}

// BenchmarkFixed is Update on arrays of fixed size, as one would write it where the Config is known at compile time, beside
// BenchmarkLDAUpdate/2banks. Then no index needs a check, but one check a packet, which is always predicted, costs nothing:
// both take 1.8 floors.
func BenchmarkFixed(b *testing.B) {
	packets := speed.Packets()[:1<<13]
	arrays := new(struct {
		cells      [4096]struct{ sum, tally uint64 } // 2,064 of them are used
		base, mask [65]uint64                        // by the length of what a packet adds to a tally
	})
	for length := range arrays.base {
		arrays.base[length], arrays.mask[length] = uint64(min(1, (64-length)/3))<<10, 1023
	}
	speed.Compare(b, len(packets), 0, func(from, to int) {
		for i, p := range packets[from:to] {
			tally := uint64(p) - uint64(uint32(p)) | 1
			length := bits.Len64(tally)
			c := &arrays.cells[(uint64(p)&arrays.mask[length]+arrays.base[length])%4096]
			c.sum += uint64(from + i)
			c.tally += tally
		}
	}, speed.Floor(packets))
}

// BenchmarkLDABatch is UpdateBatch, and the least that bursts into these two banks take: known-banks are arrays of a size
// that the compiler knows, chosen by a byte of the hash. No other index is cheaper than its four instructions, and they and
// two additions take up to a third more than the floor, whose time in bursts differs by a quarter from program to program.
func BenchmarkLDABatch(b *testing.B) {
	inBursts(b, 1.3, must(lda.New(twoBanks)).UpdateBatch)
	b.Run("known-banks", func(b *testing.B) {
		a := new(struct {
			cells [2048]struct{ sum, tally uint64 }
			base  [256]uint64
		})
		for first := range 32 {
			a.base[first] = 1024
		}
		inBursts(b, 0, func(packets []hashing.Packet, t int64) {
			add := func(p hashing.Packet) {
				c := &a.cells[(uint64(p)%1024+a.base[p>>56])%2048]
				c.sum += uint64(t)
				c.tally += uint64(p)>>32<<32 | 1
			}
			for ; len(packets) >= 8; packets = packets[8:] { // as UpdateBatch
				p := (*[8]hashing.Packet)(packets)
				add(p[0])
				add(p[1])
				add(p[2])
				add(p[3])
				add(p[4])
				add(p[5])
				add(p[6])
				add(p[7])
			}
			for _, p := range packets {
				add(p)
			}
		})
	})
}

// inBursts updates with bursts of 32 packets and one timestamp, as the floor does.
func inBursts(b *testing.B, bar float64, update func([]hashing.Packet, int64)) {
	streams(b, func(b *testing.B, packets []hashing.Packet) {
		floor := speed.Floor(packets)
		speed.Compare(b, len(packets), bar, func(from, to int) {
			for ; from < to; from += burst {
				update(packets[from:min(from+burst, to)], int64(from))
			}
		}, func(from, to int) {
			for ; from < to; from += burst {
				floor(from, min(from+burst, to))
			}
		})
	})
}

// BenchmarkLDASender updates through the state machine that ends intervals.
func BenchmarkLDASender(b *testing.B) {
	streams(b, func(b *testing.B, packets []hashing.Packet) {
		s := must(control.NewSender(twoBanks, 1, 1500))
		must(s.Start(nil))
		speed.Compare(b, len(packets), 0, func(from, to int) {
			t := int64(from)
			for i, p := range packets[from:to] {
				s.Update(p, t+int64(i))
			}
		}, speed.Floor(packets))
	})
}

const reported, cutLength = 10, int64(1e8) // cuts, and ns of each

// A literal holds what two points count in the cells of each cut. Its report is the least that one takes: it
// reads the cells, keeps what passed, and reads that twice, by cut and by cell, since what a packet stands for
// depends on what all cells lost.
type literal struct {
	cells  [reported][5120][2]speed.FloorCell
	events []literalEvent
	sums   [5120]speed.FloorCell
}

type literalEvent struct {
	cell, packets uint32
	delay         uint64
}

func (l *literal) report() (sum uint64) {
	l.events = l.events[:0]
	for k := range l.cells {
		for j := range l.cells[k] {
			if c := &l.cells[k][j]; c[0].Count|c[1].Count != 0 {
				l.events = append(l.events, literalEvent{uint32(j), uint32(c[0].Count), c[1].Sum - c[0].Sum})
			}
		}
	}
	for i := range l.events {
		sum += l.events[i].delay
	}
	for i := range l.events {
		e := &l.events[i]
		l.sums[e.cell].Sum += e.delay * sum
		l.sums[e.cell].Count += uint64(e.packets)
	}
	return sum
}

// A crossing holds what two points see of a report's packets. Delays are a twentieth of a cut, and one packet
// in a thousand is lost.
type crossing struct {
	points [2][reported]*lda.Sparse
	same   literal // the same
	random *rand.Rand
	late   []hashing.Packet // of the report before
}

func (c *crossing) next(start int64, packets int) {
	for i := range 2 * reported {
		c.points[i%2][i/2].Reset()
		clear(c.same.cells[i/2][:])
	}
	pass := func(point int, p hashing.Packet, t int64) {
		c.points[point][t/cutLength].Update(p, start+t)
		if at := lda.DefaultConfig.Cell(p); at >= 0 {
			c.same.cells[t/cutLength][at][point].Add(uint64(start + t))
		}
	}
	late := c.late
	for c.late = nil; len(late) > 0; late = late[1:] {
		pass(1, late[0], 0)
	}
	for i := range reported * packets {
		p, t := hashing.Packet(c.random.Uint64()), int64(i)*cutLength/int64(packets)
		pass(0, p, t)
		if t += int64(c.random.ExpFloat64() * float64(cutLength/20)); c.random.IntN(1000) == 0 {
			continue // lost
		} else if t < reported*cutLength {
			pass(1, p, t)
		} else {
			c.late = append(c.late, p)
		}
	}
}

// BenchmarkLDAAccumulator adds ten cuts and estimates their report: ns/op is for each of the default's 5,120 cells and each cut. 8 were
// aimed at. It takes 8 to 12 with 1,000 packets a cut, and 40 to 70 with 10,000, of which one cell in eight has some on their way. Of
// 130 instructions a cell (valgrind counts them) adding takes 36, order 17, losses 21, times on the way 34, samples and ends 22.
func BenchmarkLDAAccumulator(b *testing.B) {
	for _, packets := range []int{1e3, 1e4} {
		b.Run(fmt.Sprintf("%d-packets-a-cut", packets), func(b *testing.B) {
			c := &crossing{random: rand.New(rand.NewPCG(1, 3))}
			for i := range 2 * reported {
				c.points[i%2][i/2] = must(lda.NewSparse(lda.DefaultConfig))
			}
			total, start := must(lda.NewAccumulator(lda.DefaultConfig)), int64(0)
			var times, ratios []float64
			for b.Loop() {
				c.next(start, packets)
				begin := time.Now()
				for k := range reported {
					if err := total.Add(start, start+cutLength, &c.points[0][k].Aggregator, &c.points[1][k].Aggregator); err != nil {
						b.Fatal(err)
					}
					start += cutLength
				}
				must(total.Estimate())
				total.Reset()
				took := time.Since(begin)
				begin = time.Now()
				hashed += c.same.report()
				times = append(times, float64(took)/reported/5120)
				ratios = append(ratios, float64(took)/float64(time.Since(begin)))
			}
			if slices.Sort(times); len(times) > 2 {
				slices.Sort(ratios)
				b.ReportMetric(times[len(times)/2], "ns/op")
				b.ReportMetric(ratios[len(ratios)/2], "x-floor")
				b.ReportMetric(map[int]float64{1e3: 4}[packets], "bar-x")
			}
		})
	}
}
