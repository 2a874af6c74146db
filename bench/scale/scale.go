// Scale prints the tables of docs/SCALE.md: what a network of points costs.
//
//	go run ./bench/scale                              # the tables
//	go test ./bench/scale -measure -v -timeout 30m    # new costs, and the page
package main

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/programs"
)

//go:embed costs.csv
var measured string

func main() {
	programs.Main("scale", func(_ context.Context, args []string, stdout, stderr io.Writer) error {
		f := programs.NewFlags("scale", "Scale prints the tables of docs/SCALE.md, from costs.csv beside it. It has no flags.", stderr)
		if err := f.Parse(args); err != nil {
			return err
		}
		pages(stdout, read(measured))
		return nil
	})
}

// costs are by name, and by the rate or number that they were measured at.
type costs map[string]map[float64]float64

func read(text string) costs {
	c := costs{}
	for line := range strings.Lines(text) {
		fields := strings.Split(strings.TrimSpace(line), ",")
		var at, value float64
		if _, err := fmt.Sscan(fields[1]+" "+fields[2], &at, &value); err != nil {
			panic(err)
		}
		if c[fields[0]] == nil {
			c[fields[0]] = map[float64]float64{}
		}
		c[fields[0]][at] = value
	}
	return c
}

// of returns a cost at a rate, on a straight line between those measured, on logarithmic scales.
func (c costs) of(name string, at float64) float64 {
	known := slices.Sorted(maps.Keys(c[name]))
	i := min(max(1, slices.IndexFunc(append(known, math.Inf(1)), func(x float64) bool { return x >= at })), len(known)-1)
	if c[name][at] > 0 || i < 1 || known[i-1] == 0 {
		return c[name][at]
	}
	return c[name][known[i-1]] * math.Pow(at/known[i-1], c.slope(name, known[i-1], known[i]))
}

// slope returns the power of the rate with which a cost grows.
func (c costs) slope(name string, from, to float64) float64 {
	return math.Log(c[name][to]/c[name][from]) / math.Log(to/from)
}

const recordsEach = 20 // a second: ten cuts of two points

// pair returns the share of a core that a pair takes at a collector.
func (c costs) pair(rate float64) float64 {
	return (recordsEach*c.of("µs to take a record", rate) + c.of("µs to report", rate)) / 1e6
}

func table(out io.Writer, rows ...[]any) {
	for i, row := range rows {
		for _, cell := range row {
			if x, ok := cell.(float64); ok {
				cell = number(x)
			}
			fmt.Fprintf(out, "| %v ", cell)
		}
		fmt.Fprintln(out, "|")
		if i == 0 {
			fmt.Fprintln(out, "|---"+strings.Repeat("|---:", len(row)-1)+"|")
		}
	}
	fmt.Fprintln(out)
}

// number writes two digits, or all before the point.
func number(x float64) string {
	if x >= 100 {
		return experiment.Grouped(strconv.FormatFloat(math.Round(x), 'f', 0, 64))
	}
	return strconv.FormatFloat(x, 'g', 2, 64)
}

var rates = []float64{1e3, 1e4, 1e5, 1e6, 1e7}

// by returns a row of a cost by rate, and its slope between 10^4 and 10^7.
func (c costs) by(name string) []any {
	row := []any{name}
	for _, rate := range rates {
		row = append(row, c[name][rate])
	}
	return append(row, fmt.Sprintf("%.2f", c.slope(name, 1e4, 1e7)))
}

func pages(out io.Writer, c costs) {
	frame := c.of("ns to identify a frame", 0) + c.of("ns to record an identity in a burst", 0)
	fmt.Fprintf(out, "A tap spends %.0f ns on a frame: %.0f to identify it and %.0f to record it in a burst. That is %.0f million frames a\n"+
		"second and core, without what takes them off the wire. A message that a program reports takes %.0f ns.\n\n",
		frame, c.of("ns to identify a frame", 0), c.of("ns to record an identity in a burst", 0), 1e3/frame, c.of("ns to record a message", 0))
	const cpu, records = "ms of a core a second, of a pair", "records a second and core"
	c[cpu], c[records] = map[float64]float64{}, map[float64]float64{}
	for _, rate := range rates {
		c[cpu][rate], c[records][rate] = 1e3*c.pair(rate), recordsEach/c.pair(rate)
	}
	table(out, []any{"packets a second", "10³", "10⁴", "10⁵", "10⁶", "10⁷", "slope"}, c.by("ms a second of a point"),
		c.by("KB a second from a point"), c.by("KiB of a point"), c.by("µs to take a record"), c.by("µs to report"),
		c.by(cpu), c.by(records), c.by("KiB of a pair"), c.by("bytes of a report"))
	most, ns := 1e3, 1e3/(5120*recordsEach/2.) // a cell of lda.DefaultConfig and a cut
	for cores*c.of(records, most) > 30_000 {
		most *= 1.01
	}
	fmt.Fprintf(out, "A report settles the 5,120 cells of each cut: %.0f ns for each at 10⁴ packets a second, when most are empty, and\n"+
		"%.0f at 10⁷. A literal loop, which reads both points' cells and adds up once what passed, takes %.1f and %.1f.\n"+
		"A process on %d cores takes 30,000 records a second if each pair has at most %s packets a second,\nand %s at 10⁴.\n\n",
		ns*c.of("µs to report", 1e4), ns*c.of("µs to report", 1e7), c.of("ns of a literal loop", 1e4), c.of("ns of a literal loop", 1e7), cores,
		number(math.Round(most/100)*100), number(cores*c.of(records, 1e4)))
	rows := [][]any{{"pairs in one process, 10⁴ packets a second each", "10", "100", "1,000", "5,000"}}
	for _, name := range []string{"µs to take a record", "µs to report", "KiB of a pair"} {
		row := []any{name, c.of(name, 1e4)}
		for _, pairs := range []float64{100, 1000, 5000} {
			row = append(row, c[name+" beside others"][pairs])
		}
		rows = append(rows, row)
	}
	table(out, rows...)
	const month = 30 * 86400
	table(out, []any{"a month of storage", "GB"},
		[]any{"a report a second of a pair, as JSON", c.of("bytes of a report", 1e4) * month / 1e9},
		[]any{"all records of a point at 10⁴ packets a second", c.of("KB a second from a point", 1e4) * month / 1e6},
		[]any{"all records of a point at 10⁷", c.of("KB a second from a point", 1e7) * month / 1e6},
		[]any{"counters for every flow, `colate.DefaultConfig`, at 10⁵ packets a second",
			c.of("MB a minute in a store", 1e5) * month / 60 / 1e3})
	networks(out, c)
}

type network struct { // to be measured
	name  string
	pairs int
	rate  float64 // packets a second of each
	each  string  // what a point spends on one
}

// A collector is a machine of two cores.
const (
	cores     = 2
	memory    = 16e9  // bytes
	wire      = 1.2e9 // bytes a second
	busy      = 0.7   // the most that is used of any of these
	partition = 4     // partitions of the stream of records to each core
)

// bounds returns how many collectors a network takes by each of their resources.
func (n network) bounds(c costs) map[string]float64 {
	pairs := float64(n.pairs) / busy
	return map[string]float64{
		"processor": pairs * c.pair(n.rate) / cores,
		"memory":    pairs * c.of("KiB of a pair", n.rate) * 1024 / memory,
		"wire":      pairs * 2 * c.of("KB a second from a point", n.rate) * 1e3 / wire,
	}
}

// networks prints what networks take, and how late the last report of a second is: all of them are due at once,
// so it is as late as the collector is loaded. Pairs are hashed to collectors, so some have more than others.
func networks(out io.Writer, c costs) {
	rows := [][]any{{"network", "processor", "memory", "wire", "collectors", "partitions", "GB a second into them",
		"last report after (s)", "in the fullest", "cores of points"}}
	for _, n := range []network{
		{"1,000 services, 10⁴ messages a second", 1000, 1e4, "ns to record a message"},
		{"10⁴ links of 100 Gb/s, both ways, 800 bytes a packet", 20_000, 1.56e7, "ns to identify a frame"},
		{"10⁶ points, in twos, 10³ messages a second", 500_000, 1e3, "ns to record a message"},
	} {
		b := n.bounds(c)
		need := int(math.Ceil(max(b["processor"], b["memory"], b["wire"])))
		load := b["processor"] / float64(need) * busy
		rows = append(rows, []any{n.name, b["processor"], b["memory"], b["wire"], float64(need), float64(need * cores * partition),
			float64(n.pairs) * 2 * c.of("KB a second from a point", n.rate) / 1e6,
			load, load * n.fullest(need),
			2 * float64(n.pairs) * (c.of(n.each, 0)*n.rate/1e9 + c.of("ms a second of a point", n.rate)/1e3)})
	}
	fmt.Fprintf(out, "Collectors of %d cores, %.0f GB and %.0f Gb/s, used to %.0f %%, by what they need of each:\n\n",
		cores, memory/1e9, wire*8/1e9, 100*busy)
	table(out, rows...)
}

// fullest returns how many pairs the fullest collector has, as a multiple of the mean.
func (n network) fullest(collectors int) float64 {
	pairs := make([]int, collectors)
	for p := range n.pairs {
		part := hashing.Mix(uint64(p), 1) % uint64(collectors*cores*partition)
		pairs[part%uint64(collectors)]++
	}
	return float64(slices.Max(pairs)*collectors) / float64(n.pairs)
}
