package lds

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"syscall"
	"testing"
	"time"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
)

// BenchmarkDecode decodes a million flows over 4 × 120,000 cells, and 146,000 over 4 × 17,500. plain-s is how long a plain
// conjugate gradient over the same equations takes, of the processor's time. The other figures are how many times as long decoding
// takes, for means alone and for means with deviations. Each is the least of all rounds. B/flow is what decoding with deviations
// holds at most. With -short there is a tenth of the million.
//
//	GOMAXPROCS=1 go test -run '^$' -bench Decode -benchtime 3x ./lds
func BenchmarkDecode(b *testing.B) {
	large := 1_000_000
	if testing.Short() {
		large /= 10
	}
	b.Run(fmt.Sprint(large), func(b *testing.B) { benchmarkDecode(b, large, large*12/100) })
	b.Run("146000", func(b *testing.B) { benchmarkDecode(b, 146_000, 17_500) })
}

func benchmarkDecode(b *testing.B, flows, columns int) {
	c := lossless
	c.Columns = columns
	up, down := mustNew(b, c), mustNew(b, c)
	known := crowd(up, down, flows)
	decode := func(opts joint.Options) func() error {
		return func() error { _, err := Decode(context.Background(), up, down, known, opts); return err }
	}
	work := []struct {
		unit string
		do   func() error
	}{
		{"plain-s", func() error { plainGradient(up, down, known); return nil }},
		{"means-x", decode(joint.Options{MeansOnly: true})},
		{"intervals-x", decode(joint.Options{})},
	}
	least := make([]float64, len(work))
	for i := range least {
		least[i] = math.Inf(1)
	}
	for b.Loop() {
		for i, w := range work {
			begin := processor(b)
			if err := w.do(); err != nil {
				b.Fatal(err)
			}
			least[i] = min(least[i], (processor(b) - begin).Seconds())
		}
	}
	b.ReportMetric(float64(held(work[2].do))/float64(flows), "B/flow")
	b.ReportMetric(least[0], work[0].unit)
	for i, w := range work[1:] {
		b.ReportMetric(least[i+1]/least[0], w.unit)
	}
}

// held returns by how much the heap grows at most, with hardly any garbage.
func held(do func() error) (most uint64) {
	defer debug.SetGCPercent(debug.SetGCPercent(1))
	runtime.GC()
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	done := make(chan error)
	go func() { done <- do() }()
	for {
		select {
		case <-done:
			return most - before.HeapAlloc
		case <-time.After(20 * time.Millisecond):
			runtime.ReadMemStats(&now)
			most = max(most, now.HeapAlloc)
		}
	}
}

// processor returns how long the processor has worked for this process.
func processor(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// crowd puts flows of Pareto sizes into cells of a Spread of 1, all of each flow's packets at once.
func crowd(up, down *Sketch, flows int) (records []joint.FlowRecord) {
	r := rand.New(rand.NewPCG(7, 1))
	c := &up.config
	for i := range uint64(flows) {
		f := hashing.Flow(hashing.Word(7, i))
		n := math.Trunc(min(math.Pow(1-r.Float64(), -1/0.8), 60000))
		delays := math.Trunc(n * 3e5 * math.Exp(0.5*r.NormFloat64()))
		for row := range c.Rows {
			up.cells[c.at(row, f, 0)].add(0, uint64(n))
			down.cells[c.at(row, f, 0)].add(uint64(delays), uint64(n))
		}
		records = append(records, joint.FlowRecord{Flow: f, Packets: n})
	}
	return records
}

// plainGradient solves the ridge regression of four rows by a conjugate gradient with Jacobi's preconditioner,
// in as few lines as that takes, until the error of the iteration is about twice Decode's.
func plainGradient(up, down *Sketch, flows []joint.FlowRecord) (x []float64) {
	const ridge, noise, enough = 1, 0.01, 1e-4
	c, n := &up.config, len(flows)
	trust, y := make([]float64, len(up.cells)), make([]float64, len(up.cells))
	cells, _ := c.cellsOf(flows)
	var all estimate.Cells
	for i := range y {
		y[i] = float64(estimate.SignExtend(down.cells[i].sum-up.cells[i].sum, int(c.SumBits)))
		all.Add(y[i], uint64(up.cells[i].count()))
	}
	for i := range y {
		count := float64(up.cells[i].count())
		trust[i] = 1 / (noise*count + 1e-9)
		y[i] = (y[i] - all.Mean()*count) * trust[i]
	}
	four := func(of []float64, f int) float64 {
		run := (*[4]uint32)(cells[4*f:])
		return of[run[0]] + of[run[1]] + of[run[2]] + of[run[3]]
	}
	x = make([]float64, n)
	residual, direction, image, inverse := make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
	var norm float64
	for f, record := range flows {
		w := record.Packets
		residual[f], inverse[f] = w*four(y, f), 1/(ridge+w*w*four(trust, f))
		direction[f] = residual[f] * inverse[f]
		norm += residual[f] * direction[f]
	}
	for first := norm; norm > enough*enough*first; {
		clear(y)
		for f, record := range flows {
			run, a := (*[4]uint32)(cells[4*f:]), record.Packets*direction[f]
			y[run[0]] += a
			y[run[1]] += a
			y[run[2]] += a
			y[run[3]] += a
		}
		for i, t := range trust {
			y[i] *= t
		}
		var product, next float64
		for f, record := range flows {
			image[f] = ridge*direction[f] + record.Packets*four(y, f)
			product += direction[f] * image[f]
		}
		for f := range x {
			x[f] += norm / product * direction[f]
			residual[f] -= norm / product * image[f]
			next += residual[f] * residual[f] * inverse[f]
		}
		for f := range direction {
			direction[f] = residual[f]*inverse[f] + next/norm*direction[f]
		}
		norm = next
	}
	return x
}
