package rli_test

import (
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/rli"
)

// FuzzStream: whatever the departures of a link become on their way to a receiver, every packet is counted
// once, and answers are numbers.
func FuzzStream(f *testing.F) {
	f.Add(uint64(1), byte(0), []byte{})
	f.Add(uint64(2), byte(7), []byte{0, 1, 0, 200, 3, 0, 9, 1, 0, 80, 0, 2})
	f.Add(uint64(3), byte(0x35), []byte{1, 0, 3, 255, 1, 2, 4, 255, 0, 9, 5, 1, 2, 2, 6, 7})
	f.Fuzz(func(t *testing.T, seed uint64, options byte, changes []byte) {
		load := []float64{0.2, 0.6, 0.9, 1.5}[options&3]
		in := rli.InjectorConfig{Every: 5 + int(seed%50)}
		events := pass(t, queue.RLIConfig, in, 400, source(t, "poisson", load, seed%8), nil)
		for changes = changes[:min(len(changes), 128)]; len(changes) >= 4; changes = changes[4:] {
			change(events, int(binary.BigEndian.Uint16(changes))%len(events), changes[2], int64(int8(changes[3])))
		}
		c := config([]rli.Method{rli.Auto, rli.Linear}[options>>3&1])
		c.Rate = []int64{0, linkRate, linkRate / 4, linkRate * 1.01}[options>>5&3]
		c.Buffer, c.Flows = 40, 64
		r := newReceiver(t, c)
		for len(events) > 0 {
			part := events[:min(len(events), 250)]
			events = events[len(part):]
			tell(r, part)
			checkAnswers(t, r)
			r.Reset()
		}
	})
}

// change alters one departure in one of eight ways.
func change(events []event, at int, kind byte, by int64) {
	e := &events[at]
	switch kind % 8 {
	case 0: // from there on later, or earlier, as long as times do not decrease
		last := int64(math.MinInt64)
		if at > 0 {
			last = events[at-1].time
		}
		for i := at; i < len(events); i++ {
			last = max(last, events[i].time+by*100)
			events[i].time = last
		}
	case 1: // a drift
		for i := at; i < len(events); i++ {
			events[i].ref.Sent += (events[i].time - e.time) * by / 100_000
		}
	case 2:
		e.ref.Sent += by * by * by * 100
	case 3:
		e.ref.Behind = uint16(by)
	case 4:
		e.bytes = int(by) * 20
	case 5:
		e.ref.Sequence += uint64(by)
	case 6:
		e.kind = (e.kind + 1) % 3
	case 7:
		e.ref.Packets += uint32(by)
	}
}

func checkAnswers(t *testing.T, r *rli.Receiver) {
	t.Helper()
	r.Flush()
	k := r.Counts()
	estimated := k.Idle + k.Busy + k.Linear
	total, err := r.Total()
	if err != nil {
		if estimated != 0 && !errors.Is(err, rli.ErrUntrusted) {
			t.Fatalf("%v of %d estimated packets", err, estimated)
		}
		return
	}
	if total.N != estimated || estimated+k.Unestimated < k.Packets {
		t.Errorf("%d packets in the total: %+v", total.N, k)
	}
	in := k.Shed + k.Evicted
	for f, res := range r.All() {
		in += res.N
		if math.IsNaN(res.Mean) || math.IsInf(res.Mean, 0) || !(res.StdDev >= 0) {
			t.Errorf("flow %#x: %+v", f, res)
		}
		if i := res.MeanInterval(0.9); !(i.Low <= res.Mean && res.Mean <= i.High) {
			t.Errorf("flow %#x: %v of %v", f, i, res.Mean)
		}
	}
	if in > total.N {
		t.Errorf("%d packets of flows, %d in all", in, total.N)
	}
	if rate := r.Rate(); !(rate >= 0 && rate < math.Inf(1)) {
		t.Errorf("a rate of %v", rate)
	}
}
