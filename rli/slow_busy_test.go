package rli_test

import (
	"math"
	"math/bits"
	"slices"
	"testing"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/rli"
)

// slowBusy is the busy-aware estimator with all packets in memory, and every
// quantity worked out anew from the whole past when it is wanted. It returns
// how many references contradicted the link. If credulous, it believes the link
// whatever they say: the broken estimator that tests of the fallback must
// reject.
func slowBusy(events []event, rate float64, tolerance float64, credulous bool) int {
	size := func(i int) float64 { return float64(events[i].bytes) * 8e9 / rate }
	between := func(i, j int) float64 { return float64(events[j].time - events[i].time) }

	// Which busy period each departure is in, and where that begins.
	period := make([]int, len(events))
	tooSoon := make([]bool, len(events))
	first := []int{0}
	for i := 1; i < len(events); i++ {
		gap := float64(events[i].time-events[i-1].time) - size(i)
		if gap > tolerance {
			first = append(first, i)
		}
		tooSoon[i] = gap < -tolerance
		period[i] = len(first) - 1
	}
	// Times that one packet's size makes a whole number of nanoseconds must not
	// come out just below it: so whole numbers are subtracted first.
	place := func(i int) float64 { f := first[period[i]]; return between(f, i) + (size(f) - size(i)) }
	endOf := func(p int) float64 { // place of the period's end
		last := len(events) - 1
		if p+1 < len(first) {
			last = first[p+1] - 1
		}
		return between(first[p], last) + size(first[p])
	}

	var refs []int
	for i := range events {
		events[i].estimate = math.NaN()
		if events[i].kind == reference {
			refs = append(refs, i)
		}
	}
	delay := func(i int) float64 {
		return float64(events[i].time - events[i].ref.Sent - (events[refs[0]].time - events[refs[0]].ref.Sent))
	}

	// Straight lines go through these, of each reference so far.
	marks := map[int]event{}

	type interval struct{ low, high float64 }
	recent, older := []interval{}, []interval{}
	cut := func(extra ...interval) interval {
		b := interval{math.Inf(-1), math.Inf(1)}
		for _, set := range [][]interval{recent, older, extra} {
			for _, x := range set {
				b = interval{max(b.low, x.low), min(b.high, x.high)}
			}
		}
		return b
	}
	wide := func(b interval) float64 { return b.high - b.low }

	type lesson struct{ since, left, height float64 }
	var lessons []lesson
	var drawn struct {
		of, period  int
		place, wait float64
		behind      bool
	}
	mean := 0.0 // size of a packet, in ns
	level := func(x float64, width int) int { return min(bits.Len64(uint64(max(x, 0))), 31) / width }
	scale := func(since, left float64) float64 { return math.Sqrt(since * (left + mean) / (since + left + mean)) }
	usable, nextUse := 0, 1
	height := func(since, left float64) float64 {
		h := 0.0
		for _, width := range []int{32, 8, 4, 2, 1} {
			n, sum := 0.0, 0.0
			for _, l := range lessons[:usable] {
				if level(l.since, width) == level(since, width) && level(l.left, width) == level(left, width) {
					n++
					sum += l.height
				}
			}
			if width == 32 {
				h = sum / max(n, 1)
			} else {
				h = (sum + 4*h) / (n + 4)
			}
		}
		return h * scale(since, left)
	}
	// bridge is the course of the waiting time from w0 to w1.
	bridge := func(since, left, w0, w1 float64) float64 {
		switch {
		case since <= 0:
			return w0
		case left <= 0:
			return w1
		}
		u := since / (since + left)
		m := (1-u)*w0 + u*w1
		v := math.Pow(height(since, left), 2) * math.Pi / 8
		near := 1.0
		if x := 2 * w0 * w1 * u * (1 - u) / v; x > 0 {
			near = x / (math.Exp(x) - 1)
		}
		if v == 0 {
			return m
		}
		return math.Sqrt(m*m + near*v*(2+(8/math.Pi-2)*3*v/(m*m+3*v)))
	}

	agreed, proof, conflicts := 0, 16, 0
	trusted := func() bool { return credulous || agreed >= proof && wide(cut()) <= 2*tolerance }
	lose := func() {
		if trusted() {
			proof = min(2*proof, 1<<16)
		}
		agreed = 0
	}
	done := 0 // events settled
	left := -1
	leftPlace, leftWait := 0.0, 0.0
	for _, r := range refs {
		for i := done; i <= r; i++ {
			if tooSoon[i] {
				lose()
			}
			if drawn.of > 0 && period[i] != drawn.period {
				left := endOf(drawn.period) - drawn.place
				if drawn.behind {
					left -= referenceBytes * 8e9 / rate
				}
				if drawn.place >= 1 && left >= 0 {
					lessons = append(lessons, lesson{drawn.place, left, drawn.wait / scale(drawn.place, left)})
					if len(lessons) >= nextUse {
						usable = len(lessons)
						nextUse = usable + 1 + min(usable/16, 1024)
					}
				}
				drawn.of = 0
			}
		}

		// The point that the reference makes known, base delay included.
		ownPlace, ownWait := place(r), delay(r)-size(r)
		at, wait := ownPlace, ownWait
		seen := period[r] > 0 // how the period began
		behind := r > 0 && r != first[period[r]] && events[r].ref.Behind > 0 &&
			events[r-1].kind != reference && events[r-1].bytes == int(events[r].ref.Behind)
		if behind {
			at, wait = place(r-1), ownWait-(ownPlace-place(r-1))
		}
		bound := interval{math.Inf(-1), wait}
		if seen {
			bound.low = wait - at
		}
		if behind && wide(cut(bound)) < -2*tolerance {
			at, wait = ownPlace, ownWait
			bound.high = wait
		}
		if wide(cut(bound)) < -2*tolerance {
			conflicts++
			lose()
			recent, older = []interval{bound}, nil
		} else {
			recent = append(recent, bound)
			before := older
			older = nil
			if len(recent) >= 256 && wide(cut()) <= 2*tolerance {
				older, recent = recent, nil
			} else {
				older = before
			}
			agreed++
			if agreed >= 2*proof && proof > 16 {
				proof /= 2
				agreed = proof
			}
		}
		mark := markOf(events, r)
		mark.estimate -= float64(events[refs[0]].time - events[refs[0]].ref.Sent)
		marks[r] = mark
		base := cut().low + wide(cut())/2
		pinned := wide(cut()) <= 2*tolerance
		if !pinned {
			base = 0
		}
		wait = max(wait-base, 0)

		for i := done; i < r; i++ {
			e := &events[i]
			if e.kind != measured {
				continue
			}
			if !trusted() || left < 0 {
				switch sizes := size(i) - size(r); {
				case left < 0:
					e.estimate = marks[r].estimate + sizes
				default:
					e.estimate = straight(marks[left], marks[r], e.time) + sizes
				}
			} else {
				fromPlace, fromWait := 0.0, 0.0
				if left >= 0 && period[left] == period[i] {
					fromPlace, fromWait = leftPlace, leftWait
				}
				toPlace, toWait := endOf(period[i]), 0.0
				if period[i] == period[r] {
					toPlace, toWait = at, wait
				}
				since, ahead := place(i)-fromPlace, toPlace-place(i)
				w := bridge(since, ahead, fromWait, toWait)
				e.estimate = base + size(i) + max(min(w, fromWait+since), toWait-ahead, 0)
			}
			e.estimate += float64(events[refs[0]].time - events[refs[0]].ref.Sent)
		}

		named := at != ownPlace
		if behind {
			if mean == 0 {
				mean = size(r - 1)
			}
			mean += (size(r-1) - mean) / 64
		}
		if pinned && seen {
			drawn.of++
			drawn.period = period[r]
			n := uint64(slices.Index(refs, r) + 1)
			if drawn.of == 1 || hashing.Sampled(uint64(hashing.Word(0, n)), hashing.Threshold(1/float64(drawn.of))) == 1 {
				drawn.place, drawn.wait, drawn.behind = at, wait, named
			}
		}
		left, leftPlace, leftWait, done = r, at, wait, r+1
		if named { // the reference came at the same instant
			leftPlace, leftWait = at+size(r), wait+size(r)
		}
	}
	return conflicts
}

// straight is the line through two marks at time t.
func straight(left, right event, t int64) float64 {
	share := float64(t-left.time) / float64(right.time-left.time)
	return left.estimate + share*(right.estimate-left.estimate)
}

// TestBusyAware holds the receiver to the slow one, packet for packet, up to
// the last reference. The two compute in different order; where the difference
// of a few units in the last place decides about a nanosecond, it is less than
// half of one on average, as everywhere.
func TestBusyAware(t *testing.T) {
	for _, test := range []struct {
		name        string
		traffic     string
		utilisation float64
		cross       bool
	}{
		{"poisson", "poisson", 0.55, false},
		{"flows", "flows", 0.7, false},
		{"cross", "poisson", 0.35, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			src := source(t, test.traffic, test.utilisation, 3)
			var other queue.Source
			if test.cross {
				other = source(t, "flows", 0.4, 4)
			}
			events, _ := pass(t, queue.RLIConfig, adaptive(), 8000, src, other)
			for events[len(events)-1].kind != reference {
				events = events[:len(events)-1]
			}
			slowBusy(events, linkRate, 2, false)
			r := receive(t, config(rli.BusyAware), events)
			if c := r.Counts(); c.Idle == 0 || c.Busy == 0 || c.Linear == 0 || !r.Trusted() {
				t.Errorf("want some of every kind: %+v", c)
			}
			compare(t, r, events)
		})
	}
}

// TestBusyAwareDoubts does the same where the link breaks its promise now and
// then, so that trust is lost and won again.
func TestBusyAwareDoubts(t *testing.T) {
	events, _ := pass(t, queue.RLIConfig, adaptive(), 20000, source(t, "poisson", 0.6, 5), nil)
	// After every thousandth packet the link pauses for 5 µs, or stamps one
	// departure 100 ns early.
	late, n := int64(0), 0
	for i := range events {
		events[i].time += late
		if events[i].kind == measured {
			if n++; n%2000 == 0 {
				late += 5000
			} else if n%2000 == 1000 {
				events[i].time -= 100
			}
		}
	}
	for events[len(events)-1].kind != reference {
		events = events[:len(events)-1]
	}
	conflicts := slowBusy(events, linkRate, 2, false)
	r := receive(t, config(rli.BusyAware), events)
	c := r.Counts()
	if conflicts == 0 || c.Conflicts != uint64(conflicts) || c.Impossible == 0 || c.Fallbacks < 2 || c.Busy == 0 || c.Linear == 0 {
		t.Errorf("want %d conflicts and all kinds: %+v", conflicts, c)
	}
	compare(t, r, events)
}
