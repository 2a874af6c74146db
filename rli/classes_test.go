package rli_test

import (
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/rli"
)

const high, low = 0, 1 // classes

// twoClasses are departures of a link on which packets of one class always go first, of a flow for each.
// References are of one class, and their injector sees packets of that one, or of both.
func twoClasses(t *testing.T, load float64, of int, both bool, loss queue.LossConfig) (events []event) {
	t.Helper()
	wire, injector := must(queue.NewLoss(loss, 7)), must(rli.NewInjector(rli.InjectorConfig{Every: 50}))
	sources := [2]queue.Source{source(t, "poisson", load, 21), source(t, "flows", 0.6, 22)}
	var next [2]queue.Packet
	var waiting [2][]event // time is when they came
	for i, s := range sources {
		s.Next(&next[i])
	}
	free := int64(0) // when the link is, in tenths of ns
	for sent := 0; sent < 100_000 || len(waiting[high])+len(waiting[low]) > 0; {
		class := high
		if next[low].Time < next[high].Time {
			class = low
		}
		if p := next[class]; sent < 100_000 && (p.Time*10 < free || len(waiting[high])+len(waiting[low]) == 0) {
			sources[class].Next(&next[class])
			sent++
			free = max(free, p.Time*10)
			waiting[class] = append(waiting[class], event{flow: hashing.Flow(class), bytes: int(p.Bytes), time: p.Time})
			if !both && class != of {
				continue
			}
			if told, due := injector.Packet(int(p.Bytes), p.Time); due {
				waiting[of] = append(waiting[of], event{kind: reference, bytes: referenceBytes, time: p.Time, ref: told})
			}
			continue
		}
		if class = high; len(waiting[high]) == 0 {
			class = low
		}
		e := waiting[class][0]
		waiting[class] = waiting[class][1:]
		free += int64(e.bytes) * 8e10 / linkRate
		e.time, e.delay = free/10, free/10-e.time
		if !wire.Drop() {
			events = append(events, e)
		}
	}
	return events
}

// TestTwoClasses: if packets of two classes are reported by Update, no wrong answer has a bounded interval, whichever
// class the references are of and whatever the injector sees, with or without the rate or loss, in long intervals or
// short ones. There are two negative controls: references that do not tell how many packets were sent give wrong
// answers, and if the other class is reported by Pass, as it should be, answers are bounded.
func TestTwoClasses(t *testing.T) {
	long(t)
	silent, passed := 0, 0
	for _, load := range []float64{0.2, 0.02} {
		for _, loss := range []queue.LossConfig{{}, {Probability: 0.03, Burst: 5}} {
			for _, of := range []int{high, low} {
				for _, both := range []bool{false, true} {
					events := twoClasses(t, load, of, both, loss)
					for _, rate := range []int64{linkRate, 0} {
						c := rli.DefaultConfig
						c.Rate, c.ReferenceBytes, c.Flows = rate, referenceBytes, 64
						for _, length := range []int{100_000, 1000} {
							if _, wrong := judgeIntervals(t, c, events, length); wrong > 0 {
								t.Errorf("load of the high class %v, references of %d, both told %v, loss %v, rate %d, intervals of %d: %d wrong",
									load, of, both, loss.Probability, rate, length, wrong)
							}
						}
						if rate > 0 || both {
							continue
						}
						for i := range events {
							events[i].ref.Packets = 0
						}
						_, wrong := judgeIntervals(t, c, events, 25_000)
						silent += wrong
					}
				}
			}
			events := twoClasses(t, load, low, false, loss)
			for i := range events {
				if events[i].kind == measured && events[i].flow == hashing.Flow(high) {
					events[i].kind = cross
				}
			}
			c := config(rli.Auto)
			bounded, wrong := judgeIntervals(t, c, events, 10_000)
			passed += bounded
			if wrong > 0 {
				t.Errorf("told by Pass: %d of %d are wrong", wrong, bounded)
			}
		}
	}
	if silent < 5 || passed < 30 {
		t.Errorf("%d answers are wrong where references are silent; %d are bounded where Pass tells of the other class", silent, passed)
	}
}

// judgeIntervals asks a receiver for both flows after every few departures. It returns how many answers have a
// bounded interval, and how many of those are wrong.
func judgeIntervals(t *testing.T, c rli.Config, events []event, length int) (bounded, wrong int) {
	r := newReceiver(t, c)
	for len(events) > 0 {
		part := events[:min(length, len(events))]
		events = events[len(part):]
		tell(r, part)
		r.Flush()
		var truth [2]estimate.Moments
		for _, e := range part {
			if e.kind == measured {
				truth[e.flow].Add(float64(e.delay))
			}
		}
		for f := range truth {
			got, err := r.Estimate(hashing.Flow(f))
			if err != nil || !got.MeanInterval(0.999).Bounded() {
				continue
			}
			bounded++
			count(&wrong, !got.MeanInterval(0.999).Contains(truth[f].Mean()))
		}
		r.Reset()
	}
	return bounded, wrong
}
