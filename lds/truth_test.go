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
// all packets: of flows of 100 an interval, so that cells are mostly empty or never.
// Intervals hold the time that packets spent on their way. Intervals a tenth as wide, the control, do not.
func TestAccumulatorIsTheTruth(t *testing.T) {
	narrow := 0
	for name, way := range ways() {
		for _, loss := range []float64{0, 0.01, 0.05} {
			if name == "a queue that drops its tail" && loss > 0 {
				continue
			}
			answers, in, tenths := againstTruth(t, way, loss)
			t.Logf("%s, loss %g: %d of %d in their intervals, %d in a tenth", name, loss, in, answers, tenths)
			if answers < 50 || estimate.ProportionInterval(in, answers, 0.999).High < 0.95 {
				t.Errorf("%s, loss %g: %d of %d in their intervals", name, loss, in, answers)
			}
			narrow += int(answers - tenths)
		}
	}
	if narrow < 200 {
		t.Errorf("intervals a tenth as wide miss %d times", narrow)
	}
}

// A way says how many intervals a packet takes that is sent so long after the one before,
// in parts of the usual time, and how long it takes until the next one is sent.
type way func(r *rand.Rand, step float64) (took, next float64, lost bool)

func ways() map[string]way {
	exponential := func(mean float64) way {
		return func(r *rand.Rand, _ float64) (float64, float64, bool) {
			return mean * r.ExpFloat64(), r.ExpFloat64(), false
		}
	}
	queue, busy := 0.0, 1.0
	return map[string]way{
		"a thirtieth of an interval": exponential(0.03), "a third": exponential(0.3), "one": exponential(1),
		"three": exponential(3),
		"one in 500 thirty intervals": func(r *rand.Rand, _ float64) (float64, float64, bool) {
			if r.IntN(500) == 0 {
				return 30, r.ExpFloat64(), false
			}
			return 0.05 * r.ExpFloat64(), r.ExpFloat64(), false
		},
		// It holds 300 packets, a tenth of an interval.
		"a queue that drops its tail": func(r *rand.Rand, step float64) (float64, float64, bool) {
			if r.IntN(1000) == 0 {
				busy = 0.6 + 0.8*r.Float64()
			}
			queue = max(0, queue-step)
			lost := queue > 300
			if !lost {
				queue++
			}
			return (queue + 1) / 3000, r.ExpFloat64() / busy, lost
		},
	}
}

// againstTruth counts the answers of 30 flows, read and decoded, those in their intervals and
// in a tenth of them.
func againstTruth(t *testing.T, way way, loss float64) (answers, in, tenths uint64) {
	const flows, packets, intervals, length, start = 30, 100, 40, int64(1e9), int64(1e15)
	c := DefaultConfig
	c.Columns = 600
	x := newTimeline(t, c, intervals, length)
	x.start = start
	random := rand.New(rand.NewPCG(3, 14))
	var all []truth.Packet
	step, now := 0.0, 0.0
	for now < flows*packets*intervals {
		took, next, lost := way(random, step)
		sent, f := int64(now*float64(length)/(flows*packets)), hashing.Flow(hashing.Word(50, uint64(random.IntN(flows))))
		p := truth.Packet{Sent: start + sent, Lost: lost || random.Float64() < loss, Flow: uint64(f)}
		p.Received = p.Sent + int64(took*float64(length))
		x.pass(f, hashing.Word(7, uint64(len(all))), p.Sent, p.Received, p.Lost)
		all = append(all, p)
		step = next
		now += step
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
	for i := range intervals {
		end := start + int64(i+1)*length
		x.add(t, a, i)
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
			// By three deviations of what rows sample.
			if 1.1*float64(r.Sent+3) < float64(want.Sent) || 1.1*float64(r.Received+3) < float64(want.Received) || int(r.Lost)+3 < want.Lost {
				t.Fatalf("%+v, want at least %+v", r, want)
			}
			if err == nil {
				count(r.Mean, want.PerPacket(), r.MeanInterval(0.95))
			}
		}
	}
	return answers, in, tenths
}
