// Package perflow scores methods that answer about many flows: the errors of a
// method, by the flows' numbers of packets.
//
//	joint := perflow.New("joint", perflow.Infinite)
//	for i := range flows {
//		joint.Add(flows[i].packets, answers[i], flows[i].mean) // NaN is no answer
//	}
//	run.Beats("median error, flows of 100 packets and more", joint.Median(large), other.Median(large))
package perflow

import (
	"math"
	"slices"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/estimate"
)

// A Class is a range of flows by their numbers of packets, both ends included.
type Class struct {
	Name        string
	Least, Most int
}

// Unlimited is the Most of a Class without limit.
const Unlimited = math.MaxInt32

// Has reports whether a flow of the given number of packets is in the class.
func (c Class) Has(packets int) bool { return c.Least <= packets && packets <= c.Most }

// Classes makes classes from alternating names, least and greatest numbers of
// packets: Classes("1", 1, 1, "2–9", 2, 9).
func Classes(namesAndEnds ...any) []Class {
	var all []Class
	for c := range slices.Chunk(namesAndEnds, 3) {
		all = append(all, Class{c[0].(string), c[1].(int), c[2].(int)})
	}
	return all
}

// The error that a flow without an answer counts as.
var (
	Infinite = math.Inf(1)
	Whole    = 1.0        // as for an answer of 0
	LeftOut  = math.NaN() // such flows do not count
)

// Errors are the relative errors of one method.
type Errors struct {
	Name string

	none  float64 // the error of a flow without an answer
	flows []scored
}

type scored struct {
	packets  int
	off      float64
	answered bool
}

// New returns a method without errors so far. None is the error of a flow
// without an answer: Infinite, Whole or LeftOut.
func New(name string, none float64) *Errors {
	return &Errors{Name: name, none: none}
}

// Add adds the answer about a flow, NaN if there was none.
func (e *Errors) Add(packets int, got, truth float64) {
	if math.IsNaN(got) {
		e.flows = append(e.flows, scored{packets, e.none, false})
		return
	}
	e.flows = append(e.flows, scored{packets, estimate.RelativeError(got, truth), true})
}

// Missing returns how many flows of a class had no answer.
func (e *Errors) Missing(c Class) int {
	return len(of(e.flows, c, func(f *scored) bool { return !f.answered }))
}

// Answered returns the errors of the flows of a class that had an answer.
func (e *Errors) Answered(c Class) []float64 {
	return of(e.flows, c, func(f *scored) bool { return f.answered })
}

// Of returns the errors of the flows of a class that count, in the order in which they were added.
func (e *Errors) Of(c Class) []float64 {
	return of(e.flows, c, func(f *scored) bool { return !math.IsNaN(f.off) })
}

func of(flows []scored, c Class, counts func(*scored) bool) (errors []float64) {
	for i := range flows {
		if f := &flows[i]; c.Has(f.packets) && counts(f) {
			errors = append(errors, f.off)
		}
	}
	return errors
}

// Quantile returns a quantile of the errors of a class, NaN if there are none.
func (e *Errors) Quantile(c Class, p float64) float64 { return Quantile(e.Of(c), p) }

// Median returns the median of the errors of a class, NaN if there are none.
func (e *Errors) Median(c Class) float64 { return e.Quantile(c, 0.5) }

// Within returns the fraction of a class whose error is at most limit.
func (e *Errors) Within(c Class, limit float64) float64 {
	list := e.Of(c)
	n := 0
	for _, off := range list {
		if off <= limit {
			n++
		}
	}
	return float64(n) / float64(len(list))
}

// Cell returns a table cell: some quantiles of the errors of a class.
func (e *Errors) Cell(c Class, quantiles ...float64) string {
	cell := ""
	for i, p := range quantiles {
		if i > 0 {
			cell += " / "
		}
		cell += experiment.Percent(e.Quantile(c, p))
	}
	return cell
}

// Quantile returns a quantile of the numbers in a list that are not NaN, or
// NaN if there are none. It does not change the list.
func Quantile(list []float64, p float64) float64 {
	q, err := estimate.NewEmpirical(Known(list)).Quantile(p)
	if err != nil {
		return math.NaN()
	}
	return q
}

// Known returns the numbers of a list that are not NaN.
func Known(list []float64) []float64 {
	return slices.DeleteFunc(slices.Clone(list), math.IsNaN)
}

// Spread picks at most the given number of values from a list, evenly.
func Spread[T any](list []T, most int) []T {
	if len(list) <= most {
		return list
	}
	picked := make([]T, most)
	for i := range picked {
		picked[i] = list[i*len(list)/most]
	}
	return picked
}
