package rli_test

import (
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/rli"
)

// twoClasses are departures of a link on which packets of one class always go
// first, of a flow for each. References are of one class, and their injector is
// told of that one, or of both.
func twoClasses(t *testing.T, high float64, of queue.Class, both bool, loss queue.LossConfig) (events []event) {
	t.Helper()
	link := must(queue.NewScheduler(queue.SchedulerConfig{Rate: linkRate, Loss: loss, Seed: 7}))
	injector := must(rli.NewInjector(rli.InjectorConfig{Every: 50}))
	var references []rli.ReferencePacket
	receive := func(until int64) {
		for p := (queue.Packet{}); link.Next(until, &p); {
			e := event{flow: p.Flow, bytes: int(p.Bytes), time: p.Time, delay: p.Time - p.Sent}
			if p.Tag > 0 {
				e.kind, e.ref = reference, references[p.ID]
			}
			if p.Fate == queue.Passed {
				events = append(events, e)
			}
		}
	}
	sources := [queue.Classes]queue.Source{source(t, "poisson", high, 21), source(t, "flows", 0.6, 22)}
	var next [queue.Classes]queue.Packet
	for i, s := range sources {
		s.Next(&next[i])
	}
	for range 100_000 {
		class := queue.High
		if next[queue.Low].Time < next[queue.High].Time {
			class = queue.Low
		}
		p := next[class]
		sources[class].Next(&next[class])
		p.Class, p.Flow = class, hashing.Flow(class)
		receive(p.Time)
		link.Send(&p)
		if !both && class != of {
			continue
		}
		if told, due := injector.Packet(int(p.Bytes), p.Time); due {
			p.Class, p.Bytes, p.Tag, p.ID = of, referenceBytes, 1, hashing.Packet(len(references))
			references = append(references, told)
			link.Send(&p)
		}
	}
	receive(1 << 62)
	return events
}

// TestTwoClasses: where packets of two classes are told of by Update, no answer
// that is wrong has a bounded interval: whichever class references are of,
// whatever the injector is told of, with the defaults or with the rate, with or
// without loss, in a long interval or in short ones. There are two negative
// controls: references that do not tell how many packets were sent give wrong
// answers, and where the other class is told of by Pass, as it should be, answers
// are bounded.
func TestTwoClasses(t *testing.T) {
	long(t)
	silent, passed := 0, 0
	for _, high := range []float64{0.2, 0.02} {
		for _, loss := range []queue.LossConfig{{}, {Probability: 0.03, Burst: 5}} {
			for _, of := range []queue.Class{queue.High, queue.Low} {
				for _, both := range []bool{false, true} {
					events := twoClasses(t, high, of, both, loss)
					for _, rate := range []int64{linkRate, 0} {
						c := rli.DefaultConfig
						c.Rate, c.ReferenceBytes, c.Flows = rate, referenceBytes, 64
						for _, length := range []int{100_000, 1000} {
							if _, wrong := judgeIntervals(t, c, events, length); wrong > 0 {
								t.Errorf("load of the high class %v, references of %d, both told %v, loss %v, rate %d, intervals of %d: %d wrong",
									high, of, both, loss.Probability, rate, length, wrong)
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
			events := twoClasses(t, high, queue.Low, false, loss)
			for i := range events {
				if events[i].kind == measured && events[i].flow == hashing.Flow(queue.High) {
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

// judgeIntervals asks a receiver for both flows after every so many departures. It
// returns how many answers have a bounded interval, and how many of those are wrong.
func judgeIntervals(t *testing.T, c rli.Config, events []event, length int) (bounded, wrong int) {
	r := newReceiver(t, c)
	for len(events) > 0 {
		part := events[:min(length, len(events))]
		events = events[len(part):]
		tell(r, part)
		r.Flush()
		var truth [queue.Classes]estimate.Moments
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
			if !got.MeanInterval(0.999).Contains(truth[f].Mean()) {
				wrong++
			}
		}
		r.Reset()
	}
	return bounded, wrong
}
