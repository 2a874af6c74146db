package lds

import (
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/hashing"
)

// A river is one flow of packets that never pauses, cut by the clock, and what is
// true of it.
type river struct {
	rate, delay float64 // packets an interval, and intervals that one takes on average
	loss, slow  float64 // shares of packets: lost, and those that take up to six intervals
	jitter      func(r *rand.Rand) float64
}

// A travelled packet left in one interval and arrives in another, or never: -1.
type travelled struct {
	id             hashing.Packet
	sent, received int
}

func (w *river) flow(intervals int, r *rand.Rand) (all []travelled) {
	for i := range int(w.rate * float64(intervals)) {
		at := (float64(i) + r.Float64()) / w.rate
		took := w.delay * w.jitter(r)
		if r.Float64() < w.slow {
			took += 6 * r.Float64()
		}
		p := travelled{hashing.Packet(r.Uint64()), int(at), int(at + min(took, patience-1))}
		if r.Float64() < w.loss {
			p.received = -1
		}
		all = append(all, p)
	}
	return all
}

var rivers = map[string]river{
	"constant, 50 on their way": {rate: 100, delay: 0.5, loss: 0.01, jitter: steady},
	"constant, none lost":       {rate: 100, delay: 0.5, jitter: steady},
	"heavy tails":               {rate: 30, delay: 0.3, loss: 0.02, jitter: tails},
	"a few slow ones":           {rate: 50, delay: 0.1, loss: 0.01, slow: 1e-2, jitter: steady},
	"many slow ones":            {rate: 20, delay: 0.3, loss: 0.3, slow: 0.5, jitter: steady},
	"seldom on their way":       {rate: 5, delay: 0.01, loss: 0.01, jitter: steady},
	"half lost":                 {rate: 3, delay: 0.4, loss: 0.5, jitter: steady},
	"next to none":              {rate: 0.3, delay: 0.7, loss: 0.1, jitter: steady},
}

func tails(r *rand.Rand) float64 { return 0.3 * r.ExpFloat64() * r.ExpFloat64() }

func steady(r *rand.Rand) float64 { return 0.9 + 0.2*r.Float64() }

// What a flow lost in a report is never more than Lost and never less than
// Overdue, however many packets are on their way when a report begins and ends,
// and where intervals are missing. A packet on its way at a gap may be counted
// with the lost ones.
func TestLostHoldsTheTruth(t *testing.T) {
	for name, w := range rivers {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(40) {
				checkRiver(t, &w, seed)
			}
		})
	}
}

// checkRiver follows a river over reports of random length, some with gaps.
func checkRiver(t *testing.T, w *river, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 21))
	const intervals = 150
	c := Config{Rows: 2, Columns: 3, Spread: 1, Rates: [MaxRows]float64{1, 1}, SumBits: 48, DigestBits: 24}
	a, err := NewAccumulator(c)
	if err != nil {
		t.Fatal(err)
	}
	all := w.flow(intervals, r)
	begins := r.IntN(20) // where the accumulator is late, packets are on their way
	longest := []int{3, 60, 150}[seed%3]
	report, length := begins, 1+r.IntN(longest)
	missing := map[int]bool{}
	for range seed % 5 {
		missing[begins+10+r.IntN(100)] = true
	}
	up, down := mustNew(t, c), mustNew(t, c)
	for k := begins; k < intervals; k++ {
		if missing[k] {
			continue
		}
		up.Reset()
		down.Reset()
		for _, p := range all {
			if p.sent == k {
				up.Update(7, p.id, 1)
			}
			if p.received == k {
				down.Update(7, p.id, 2)
			}
		}
		if err := a.Add(uint64(k), up, down); err != nil {
			t.Fatal(err)
		}
		if k+1 < report+length && k+1 < intervals {
			continue
		}
		var lost, late uint64
		for _, p := range all {
			if p.sent >= report && p.sent <= k && !missing[p.sent] && p.received < 0 {
				lost++
			}
			if p.sent >= report && p.sent <= k && !missing[p.sent] && missing[p.received] {
				late++ // on its way at a gap
			}
		}
		got, _ := a.Estimate(7)
		if got.Lost < lost || got.Overdue > lost+late {
			t.Errorf("seed %d, intervals %d to %d: %d to %d lost, really %d", seed, report, k, got.Overdue, got.Lost, lost)
		}
		a.Reset()
		report, length = k+1, 1+r.IntN(longest)
	}
}

// A flow that always has packets on their way, 50 of 100 that are sent in an
// interval, loses one in a hundred. What was counted before, packets that were
// overtaken by all others or waited for, is none of them. Now they are in a range
// that is as wide as what may be on its way at either end.
func TestLossAmongPacketsOnTheirWay(t *testing.T) {
	w := rivers["constant, 50 on their way"]
	const intervals = 1000
	c := DefaultConfig
	c.Columns = 100
	a, err := NewAccumulator(c)
	if err != nil {
		t.Fatal(err)
	}
	ups, downs := make([]*Sketch, intervals), make([]*Sketch, intervals)
	for k := range intervals {
		ups[k], downs[k] = mustNew(t, c), mustNew(t, c)
	}
	var lost uint64
	for _, p := range w.flow(intervals, rand.New(rand.NewPCG(1, 1))) {
		ups[p.sent].Update(7, p.id, 0)
		if p.received < 0 {
			lost++
		} else if p.received < intervals {
			downs[p.received].Update(7, p.id, 1000)
		}
	}
	for k := range intervals {
		if err := a.Add(uint64(k), ups[k], downs[k]); err != nil {
			t.Fatal(err)
		}
	}
	got, _ := a.Estimate(7)
	t.Logf("%d lost: %d to %d", lost, got.Overdue, got.Lost)
	if got.Lost < lost || got.Overdue > lost {
		t.Errorf("%d to %d lost, really %d", got.Overdue, got.Lost, lost)
	}
	// At most 16 intervals' packets were sent since the mark that tells of them,
	// and what passed in the first eight may have been sent before.
	if width := got.Lost - got.Overdue; width > 16*100+100 || got.Overdue == 0 && lost > 16*100 {
		t.Errorf("%d to %d lost is too wide", got.Overdue, got.Lost)
	}
	// The control: levels alone do not show them.
	at := c.at(0, 7, 0)
	if n := a.levels.Lost(at, patience); n > int32(lost/10) {
		t.Errorf("levels show %d of %d losses", n, lost)
	}
}

// Without losses, and with times at which nothing is on its way, there is no
// doubt; and losses are certain once they are old.
func TestLossesAreCertainWhereCellsAreEmpty(t *testing.T) {
	c := Config{Rows: 2, Columns: 3, Spread: 1, Rates: [MaxRows]float64{1, 1}, SumBits: 48, DigestBits: 24}
	a, err := NewAccumulator(c)
	if err != nil {
		t.Fatal(err)
	}
	for k := range uint64(30) {
		up, down := mustNew(t, c), mustNew(t, c)
		for i := range uint64(10) {
			up.Update(7, hashing.Word(k, i), 0)
			if k != 3 || i > 2 {
				down.Update(7, hashing.Word(k, i), 5)
			}
		}
		if err := a.Add(k, up, down); err != nil {
			t.Fatal(err)
		}
		got, _ := a.Estimate(7)
		lost, overdue := uint64(0), uint64(0)
		if k >= 3 {
			lost = 3
		}
		if k >= 3+patience {
			overdue = 3
		}
		if got.Lost != lost || got.Overdue != overdue {
			t.Errorf("after interval %d: %d to %d lost, want %d to %d", k, got.Overdue, got.Lost, overdue, lost)
		}
	}
}

// Where every row samples, the bound is of the losses that they saw.
func TestLossOfSampledRows(t *testing.T) {
	c := Config{Rows: 2, Columns: 3, Spread: 1, Rates: [MaxRows]float64{0.5, 0.25}, SumBits: 48, DigestBits: 24}
	a, err := NewAccumulator(c)
	if err != nil {
		t.Fatal(err)
	}
	for k := range uint64(30) {
		up, down := mustNew(t, c), mustNew(t, c)
		for i := range uint64(100) {
			up.Update(7, hashing.Word(k, i), 0)
			if i > 0 {
				down.Update(7, hashing.Word(k, i), 5)
			}
		}
		if err := a.Add(k, up, down); err != nil {
			t.Fatal(err)
		}
	}
	if got, _ := a.Estimate(7); got.Lost < 30 || got.Lost > 90 || got.Overdue > 30 {
		t.Errorf("%d to %d lost, really 30", got.Overdue, got.Lost)
	}
}

// Packets may be on their way through a whole report, and hide losses in the one
// after.
func TestLossBehindShortReports(t *testing.T) {
	c := Config{Rows: 1, Columns: 1, Spread: 1, Rates: [MaxRows]float64{1}, SumBits: 48, DigestBits: 24}
	a, err := NewAccumulator(c)
	if err != nil {
		t.Fatal(err)
	}
	id := func(k, i int) hashing.Packet { return hashing.Word(uint64(k), uint64(i)) }
	var got Result
	for k := range 3 {
		up, down := mustNew(t, c), mustNew(t, c)
		for i := range []int{5, 2, 10}[k] {
			up.Update(7, id(k, i), 0)
		}
		if k == 2 { // the five of the first report arrive, and half of the ten
			for i := range 5 {
				down.Update(7, id(0, i), 5)
				down.Update(7, id(2, i), 5)
			}
		}
		if err := a.Add(uint64(k), up, down); err != nil {
			t.Fatal(err)
		}
		got, _ = a.Estimate(7)
		a.Reset()
	}
	if got.Lost < 5 || got.Overdue > 0 {
		t.Errorf("%d to %d lost, really 5", got.Overdue, got.Lost)
	}
}
