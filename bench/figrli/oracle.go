package figrli

import (
	"iter"
	"math"
)

// An oracle knows how long packets wait in every busy period that has a
// reference. For all others it knows how long packets wait on average that far
// from the beginning and end. Its errors are chance.
type oracle struct {
	cells map[[2]int]*cell
	runs  []unseen
}

// A cell holds the packets at such distances, by halves of a doubling.
type cell struct{ packets, wait float64 }

// The unseen packets of a run are those in busy periods without a reference.
type unseen struct {
	wait  float64
	cells map[[2]int]float64 // how many
}

// busy returns an iterator over the busy periods: the first departure, and the
// one after the last.
func (p *passage) busy() iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		begin := 0
		for i := 1; i <= len(p.events); i++ {
			if i < len(p.events) && float64(p.events[i].out-p.events[i-1].out)-p.events[i].sending() <= 2 {
				continue
			}
			if !yield(begin, i) {
				return
			}
			begin = i
		}
	}
}

// sending returns how many ns the link takes to send it.
func (d *departure) sending() float64 { return float64(d.bytes) * 8e9 / rate }

// wait returns how long it waited.
func (d *departure) wait() float64 { return float64(d.delay) - d.sending() }

// look takes in one more run.
func (o *oracle) look(p *passage) {
	if o.cells == nil {
		o.cells = map[[2]int]*cell{}
	}
	u := unseen{cells: map[[2]int]float64{}}
	for begin, end := range p.busy() {
		period, known := p.events[begin:end], false
		for i := range period {
			known = known || !period[i].regular()
		}
		if known {
			continue
		}
		for i := range period[1:] { // the first did not wait
			d := &period[1+i]
			since := float64(d.out-period[0].out) + period[0].sending() - d.sending()
			at := [2]int{halves(since), halves(float64(period[len(period)-1].out - d.out))}
			if o.cells[at] == nil {
				o.cells[at] = new(cell)
			}
			o.cells[at].packets++
			o.cells[at].wait += d.wait()
			u.wait += d.wait()
			u.cells[at]++
		}
	}
	o.runs = append(o.runs, u)
}

func halves(x float64) int { return int(2 * math.Log2(1+max(x, 0))) }

// errors returns the oracle's error in each run, summed over packets.
func (o *oracle) errors() (list []float64) {
	for _, u := range o.runs {
		sum := -u.wait
		for at, n := range u.cells {
			sum += n * o.cells[at].wait / o.cells[at].packets
		}
		list = append(list, sum)
	}
	return list
}
