package main

import (
	"fmt"
	"io"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/queue/trace"
)

// exact is what COLATE makes unnecessary: it remembers every packet until it
// sees the packet again. Of identical packets the first to come is the first
// to go.
type exact struct {
	waiting map[hashing.Packet][]int64
	delays  map[hashing.Tuple]*estimate.Moments
}

func newExact() *exact {
	return &exact{map[hashing.Packet][]int64{}, map[hashing.Tuple]*estimate.Moments{}}
}

func (e *exact) update(at trace.Point, tuple *hashing.Tuple, packet hashing.Packet, t int64) {
	if at == trace.Ingress {
		e.waiting[packet] = append(e.waiting[packet], t)
		return
	}
	came := e.waiting[packet]
	if len(came) == 0 {
		return
	}
	if len(came) == 1 {
		delete(e.waiting, packet)
	} else {
		e.waiting[packet] = came[1:]
	}
	if e.delays[*tuple] == nil {
		e.delays[*tuple] = new(estimate.Moments)
	}
	e.delays[*tuple].Add(float64(t - came[0]))
}

func (e *exact) print(tuple hashing.Tuple, stdout io.Writer) {
	if m := e.delays[tuple]; m != nil {
		fmt.Fprintf(stdout, "  exact: mean %v, deviation %v, by matching all packets\n", duration(m.Mean()), duration(m.StdDev()))
	}
}
