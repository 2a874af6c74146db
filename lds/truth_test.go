package lds

import (
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/truth"
)

// TestAccumulatorIsTheTruth holds reports after 2, 5, 16 and 40 intervals to a list of
// all packets: flows of 100 an interval, delays from a thirtieth of an interval to three,
// so that cells are mostly empty or never, with losses and without, and with a packet in
// 500 that takes thirty intervals. Intervals hold the time that packets spent on their
// way. Intervals a tenth as wide, the control, do not.
func TestAccumulatorIsTheTruth(t *testing.T) {
	narrow := 0
	for _, delay := range []float64{0.03, 0.3, 1, 3, -0.05} { // in intervals; below 0 some are slow
		for _, loss := range []float64{0, 0.01, 0.05} {
			answers, in, tenths := againstTruth(t, delay, loss)
			t.Logf("delay %g, loss %g: %d of %d in their intervals, %d in a tenth", delay, loss, in, answers, tenths)
			if answers < 80 || estimate.ProportionInterval(in, answers, 0.999).High < 0.95 {
				t.Errorf("delay %g, loss %g: %d of %d in their intervals", delay, loss, in, answers)
			}
			narrow += int(answers - tenths)
		}
	}
	if narrow < 200 {
		t.Errorf("intervals a tenth as wide miss %d times", narrow)
	}
}

// againstTruth counts the answers of 30 flows, read and decoded, those in their intervals and
// in a tenth of them.
func againstTruth(t *testing.T, delay, loss float64) (answers, in, tenths uint64) {
	const flows, packets, intervals, length, start = 30, 100, 40, int64(1e9), int64(1e15)
	c := DefaultConfig
	c.Columns = 600
	var up, down [intervals]*Sketch
	for i := range up {
		up[i], down[i] = mustNew(t, c), mustNew(t, c)
	}
	random := rand.New(rand.NewPCG(3, 14))
	var all []truth.Packet
	for i := range flows * packets * intervals {
		took := delay * random.ExpFloat64()
		if delay < 0 {
			if took = -took; random.IntN(500) == 0 {
				took = 30
			}
		}
		f, id, sent := hashing.Flow(hashing.Word(50, uint64(i%flows))), hashing.Word(7, uint64(i)), random.Int64N(intervals*length)
		p := truth.Packet{Sent: start + sent, Lost: random.Float64() < loss, Flow: uint64(f)}
		p.Received = p.Sent + int64(took*float64(length))
		up[sent/length].Update(f, id, p.Sent)
		if at := (p.Received - start) / length; !p.Lost && at < intervals {
			down[at].Update(f, id, p.Received)
		}
		all = append(all, p)
	}
	count := func(mean, want float64, within estimate.Interval) {
		if !within.Bounded() {
			return
		}
		answers++
		if within.Low-1 <= want && want <= within.High+1 {
			in++
			if far := mean + 10*(want-mean); within.Low-10 <= far && far <= within.High+10 {
				tenths++
			}
		}
	}
	a := mustAccumulate(t, c)
	for i := range up {
		end := start + int64(i+1)*length
		if err := a.Add(end-length, end, up[i], down[i]); err != nil {
			t.Fatal(err)
		}
		if i != 1 && i != 4 && i != 15 && i != 39 {
			continue
		}
		known := truth.Between(all, start, end, truth.ByFlow)
		var records []joint.FlowRecord
		for f, want := range known {
			records = append(records, joint.FlowRecord{Flow: hashing.Flow(f), Packets: float64(want.Sent)})
		}
		decoded, err := a.Decode(t.Context(), records, joint.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for k, f := range records {
			want := known[uint64(f.Flow)]
			count(decoded.Mean[k], want.PerPacket(), decoded.MeanInterval(k, 0.95))
			r, err := a.Estimate(f.Flow)
			if int(r.Sent) < want.Sent || int(r.Received) < want.Received || int(r.Lost) < want.Lost {
				t.Fatalf("%+v, want at least %+v", r, want)
			}
			if err == nil {
				count(r.Mean, want.PerPacket(), r.MeanInterval(0.95))
			}
		}
	}
	return answers, in, tenths
}
