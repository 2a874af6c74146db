package rli_test

import (
	"math"
	"math/bits"
	"testing"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/rli"
)

// slowBusy is the busy-aware estimator with all packets in memory, and every
// quantity worked out anew from the whole past when it is wanted. It returns
// how many references contradicted the link.
func slowBusy(events []event, rate float64, tolerance float64) int {
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

	agreed, conflicts := 0, 0
	trusted := func() bool { return agreed >= 16 && wide(cut()) <= 2*tolerance }
	heights := slowRatios{reluctance: 1}
	befores, afters := slowRatios{prior: 1, reluctance: 16}, slowRatios{prior: 1, reluctance: 16}
	betweens := slowRatios{prior: 1, reluctance: 10}
	mean := 0.0 // size of a packet, in ns
	scale := func(since, left float64) float64 { return math.Sqrt(since * (left + mean) / (since + left + mean)) }
	height := func(since, left float64) float64 { return heights.at(since, left) * scale(since, left) }
	// bridge is the line, the course and the variance between two points, and the
	// course mended.
	bridge := func(from, to slowEnd, at, size float64) (line, course, variance, mended float64, mend *slowRatios) {
		since, left := at-from.place, to.place-at
		rest := max(left-size, 0)
		m := (from.wait*left + to.wait*since) / (since + left)
		v := math.Pow(height(since, rest), 2) * math.Pi / 8
		d := (from.wait*left - to.wait*since) / (since + left)
		near := 1.0
		x := 2 * from.wait * to.wait * since * left / math.Pow(since+left, 2) / v
		if x > 0 {
			near = x / (math.Exp(x) - 1) * (1 + x/24)
		}
		course = m
		if v > 0 && x < 16 { // else it is straight
			course = math.Sqrt(m*m + near*v*(2+(8/math.Pi-2)*3*v/(d*d+3*v)))
		}
		mended = course
		switch {
		case v == 0:
		case from.known && to.known:
			mend = &betweens
			mended = m + mend.at(since, rest)*(course-m)
		case from.known:
			mend = &afters
			mended *= mend.at(since, rest)
		case to.known:
			mend = &befores
			mended *= mend.at(since, rest)
		default:
			mended = height(since, rest)
		}
		return m, course, v, max(min(mended, from.wait+since), to.wait-left, 0), mend
	}
	// What is not over of the period under way.
	type lesson struct{ place, rest, wait, packets float64 }
	var lessons []lesson
	var sample struct {
		given                                   bool
		since, left, place, rest, wait, packets float64
	}
	var probe struct {
		given          bool
		from           slowEnd
		place, wait    float64
		size, own, all float64
	}
	endProbe := func(to slowEnd) {
		if !probe.given {
			return
		}
		probe.given = false
		to.place -= probe.own
		if to.known {
			to.wait = max(to.wait-probe.own, 0)
		}
		since, left := probe.place-probe.from.place, to.place-probe.place
		if since <= 0 || left <= 0 {
			return
		}
		line, course, variance, _, mend := bridge(probe.from, to, probe.place, probe.size)
		switch {
		case mend == nil || variance == 0:
		case mend != &betweens:
			mend.learn(since, max(left-probe.size, 0), probe.all*probe.wait, probe.all*course, 1)
		case course > line:
			mend.learn(since, max(left-probe.size, 0), (probe.wait-line)*(course-line)/variance,
				(course-line)*(course-line)/variance, (course-line)*(course-line)/variance)
		}
	}
	gap := uint64(1) // between references
	compare := func(from, to slowEnd, packets []int) {
		if from.known == to.known || period[packets[0]] == 0 || !trusted() {
			return
		}
		i := packets[int(uint64(hashing.Word(0, gap))%uint64(len(packets)))]
		since, still, n := place(i)-from.place, to.place-place(i), float64(len(packets))
		if since <= 0 || still <= 0 {
			return
		}
		_, course, variance, _, _ := bridge(from, to, place(i), size(i))
		rest := max(still-size(i), 0)
		switch {
		case variance == 0:
		case to.known:
			sample.given, sample.since, sample.left, sample.place = true, since, rest, place(i)
			sample.rest, sample.wait, sample.packets = size(i)+referenceBytes*8e9/rate, course, n
		default:
			afters.learn(since, rest, n*(height(place(i), rest)+referenceBytes*8e9/rate*still/(since+still)), n*course, 1)
		}
	}
	endPeriod := func(p int) {
		end := endOf(p)
		endProbe(slowEnd{place: end})
		stride := 1
		for len(lessons)/stride > 16 {
			stride *= 2
		}
		for n, l := range lessons {
			if (n+1)%stride == 0 && l.place >= 1 {
				left := max(end-l.place-l.rest, 0)
				w := l.packets * float64(stride)
				heights.learn(l.place, left, w*l.wait, w*scale(l.place, left), 1)
			}
		}
		if x := &sample; x.given {
			befores.learn(x.since, x.left, x.packets*height(x.place, max(end-x.place-x.rest, 0)), x.packets*x.wait, 1)
		}
		lessons, sample.given = nil, false
	}

	done := 0 // events settled
	before := uint32(0)
	left := -1
	leftPlace, leftWait := 0.0, 0.0
	for _, r := range refs {
		for i := done; i <= r; i++ {
			if tooSoon[i] {
				conflicts++
				agreed = 0
			}
			if i > 0 && period[i] != period[i-1] {
				endPeriod(period[i-1])
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
			agreed = 0
			recent, older = []interval{bound}, nil
		} else {
			recent = append(recent, bound)
			before := older
			older = nil
			if len(recent) >= 16 && wide(cut()) <= 2*tolerance {
				older, recent = recent, nil
			} else {
				older = before
			}
			agreed++
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

		if trusted() {
			endProbe(slowEnd{at, wait, true})
		}
		ends := func(p int) (from, to slowEnd) {
			if left >= 0 && period[left] == p {
				from = slowEnd{leftPlace, leftWait, true}
			}
			if to = (slowEnd{place: endOf(p)}); p == period[r] {
				to = slowEnd{at, wait, true}
			}
			return from, to
		}
		var packets []int // that wait for the reference
		for i := done; i < r; i++ {
			if events[i].kind == measured {
				packets = append(packets, i)
			}
		}
		for n, i := range packets {
			e := &events[i]
			from, to := ends(period[i])
			if n == 0 || period[i] != period[packets[n-1]] {
				over := n + 1
				for over < len(packets) && period[packets[over]] == period[i] {
					over++
				}
				begin := n
				if !from.known && place(i) <= 0 {
					begin++
				}
				if left >= 0 && begin < over {
					compare(from, to, packets[begin:over])
				}
			}
			switch sizes := size(i) - size(r); {
			case left < 0:
				e.estimate = marks[r].estimate + sizes
			case !trusted():
				e.estimate = straight(marks[left], marks[r], e.time) + sizes
			case place(i) <= from.place:
				e.estimate = base + size(i) + from.wait
			case place(i) >= to.place:
				e.estimate = base + size(i) + to.wait
			default:
				_, _, _, w, _ := bridge(from, to, place(i), size(i))
				e.estimate = base + size(i) + w
			}
			e.estimate += float64(events[refs[0]].time - events[refs[0]].ref.Sent)
		}

		named := at != ownPlace
		from, _ := ends(period[r])
		probe.given = trusted() && (from.known || seen)
		probe.from, probe.place, probe.wait = from, at, wait
		probe.size, probe.own, probe.all = size(r), 0, 1.0
		if probe.all = float64(events[r].ref.Packets - before); left < 0 {
			probe.all = 1
		}
		before = events[r].ref.Packets
		if named {
			probe.size, probe.own = size(r-1), size(r)
		}
		if behind {
			if mean == 0 {
				mean = size(r - 1)
			}
			mean += (size(r-1) - mean) / 64
		}
		if pinned && seen {
			lessons = append(lessons, lesson{at, ownPlace + size(r) - at, wait, probe.all})
		}
		left, leftPlace, leftWait, done = r, at, wait, r+1
		gap++
		if named { // the reference came at the same instant
			leftPlace, leftWait = at+size(r), wait+size(r)
		}
	}
	return conflicts
}

// A slowEnd is one of a bridge.
type slowEnd struct {
	place, wait float64
	known       bool
}

// slowRatios are all pairs of what was seen and expected, by octaves.
type slowRatios struct {
	prior, reluctance float64
	all               []slowRatio
	usable, next      int
}

type slowRatio struct {
	since, left              int
	seen, expected, evidence float64
}

func slowOctave(x float64) int { return min(bits.Len64(uint64(x+1.0/1024)), 31) }

func (s *slowRatios) learn(since, left, seen, expected, evidence float64) {
	s.all = append(s.all, slowRatio{slowOctave(since), slowOctave(left), seen, expected, evidence})
	if len(s.all) >= s.next {
		s.usable = len(s.all)
		s.next = s.usable + 1 + min(s.usable/16, 1024)
	}
}

// at is the ratio of a cell, completed by that of larger and larger ones.
func (s *slowRatios) at(since, left float64) float64 {
	value := s.prior
	for _, width := range []int{32, 16, 8, 4, 2, 1} {
		var all slowRatio
		for _, x := range s.all[:s.usable] {
			if x.since/width == slowOctave(since)/width && x.left/width == slowOctave(left)/width {
				all.seen, all.expected, all.evidence = all.seen+x.seen, all.expected+x.expected, all.evidence+x.evidence
			}
		}
		if all.evidence == 0 {
			break
		}
		ratio, weight := all.seen/all.expected, s.reluctance
		if s.prior > 0 {
			ratio = min(max(ratio, 0), 4)
		} else if width == 32 {
			weight = 0
		}
		value = (all.evidence*ratio + weight*value) / (all.evidence + weight)
	}
	return value
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
			events := pass(t, queue.RLIConfig, adaptive(), 8000, src, other)
			for events[len(events)-1].kind != reference {
				events = events[:len(events)-1]
			}
			slowBusy(events, linkRate, 2)
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
	events := pass(t, queue.RLIConfig, adaptive(), 20000, source(t, "poisson", 0.6, 5), nil)
	// Now and then one departure is stamped 100 ns early, or a reference says that
	// it was sent 3 µs early.
	n, lies := 0, 0
	for i := range events {
		if n++; events[i].kind == reference && n > 2000 {
			n, lies = 0, lies+1
			events[i].ref.Sent -= 3000
		} else if events[i].kind == measured && n == 1000 {
			events[i].time -= 100
		}
	}
	for events[len(events)-1].kind != reference {
		events = events[:len(events)-1]
	}
	conflicts := slowBusy(events, linkRate, 2)
	r := receive(t, config(rli.BusyAware), events)
	c := r.Counts()
	if lies < 5 || conflicts <= lies || c.Conflicts != uint64(conflicts) || c.Busy == 0 || c.Linear == 0 {
		t.Errorf("want %d conflicts and all kinds: %+v", conflicts, c)
	}
	compare(t, r, events)
}
