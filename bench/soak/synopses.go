package soak

import (
	"math/rand/v2"

	"github.com/hoplag/hoplag/colate"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/lda/control"
	"github.com/hoplag/hoplag/lds"
	"github.com/hoplag/hoplag/rli"
)

func newAggregates() (machine, error) {
	var points [2]*lda.Aggregator
	for i := range points {
		var err error
		if points[i], err = lda.New(lda.DefaultConfig); err != nil {
			return machine{}, err
		}
	}
	return machine{round: func(random *rand.Rand) (tried, refused int, err error) {
		for _, a := range points {
			a.Reset()
		}
		for i := range 5000 {
			p, now := hostilePacket(random), int64(i)*1000
			for _, a := range points[random.IntN(20)/19:] {
				a.Update(p, hostileTime(random, now))
			}
		}
		for _, f := range []func() (lda.Result, error){
			func() (lda.Result, error) { return lda.Estimate(points[0], points[1]) },
			func() (lda.Result, error) { return lda.EstimateRest(points[0], points[1]) },
		} {
			r, wrong := f()
			tried++
			if wrong != nil {
				refused++
			} else if err := finite(r.Delay); err != nil {
				return tried, refused, err
			}
		}
		n, no, err := decode(random, points[1])
		return tried + n, refused + no, err
	}}, nil
}

func newControl() (machine, error) {
	tuner := lda.Tuner{Config: lda.DefaultConfig}
	receiver, err := control.NewReceiver(tuner)
	if err != nil {
		return machine{}, err
	}
	var reports []control.Report
	return machine{round: func(random *rand.Rand) (tried, refused int, err error) {
		sender, err := control.NewSender(tuner, random.Uint64(), 1400)
		if err != nil {
			return 0, 0, err
		}
		give := func(data []byte) {
			for range 1 + random.IntN(2) {
				tried++
				var wrong error
				if reports, wrong = receiver.Receive(damage(random, data), reports[:0]); wrong != nil {
					refused++
				}
			}
		}
		for range 4 {
			start, err := sender.Start(nil)
			if err != nil {
				return tried, refused, err
			}
			give(start)
			for i := range 500 {
				p := hostilePacket(random)
				sender.Update(p, hostileTime(random, int64(i)))
				receiver.Update(p, hostileTime(random, int64(i)))
			}
			end, err := sender.End(nil)
			if err != nil {
				return tried, refused, err
			}
			give(end)
			for part := range sender.Parts() {
				give(part)
			}
		}
		return tried, refused, nil
	}}, nil
}

func newSketches() (machine, error) {
	c := lds.DefaultConfig
	c.Columns = 500
	var points [2]*lds.Sketch
	for i := range points {
		var err error
		if points[i], err = lds.New(c); err != nil {
			return machine{}, err
		}
	}
	return machine{round: func(random *rand.Rand) (tried, refused int, err error) {
		for _, s := range points {
			s.Reset()
		}
		for i := range 3000 {
			f, p := hashing.Flow(hashing.Word(2, uint64(random.IntN(300)))), hostilePacket(random)
			for _, s := range points[random.IntN(20)/19:] {
				s.Update(f, p, hostileTime(random, int64(i)*1000))
			}
		}
		for k := range uint64(300) {
			tried++
			r, wrong := lds.Estimate(points[0], points[1], hashing.Flow(hashing.Word(2, k)))
			if wrong != nil {
				refused++
			} else if err := finite(r.Delay); err != nil {
				return tried, refused, err
			}
		}
		n, no, err := decode(random, points[0])
		return tried + n, refused + no, err
	}}, nil
}

func newReceiver() (machine, error) {
	c := rli.DefaultConfig
	c.Rate, c.Flows = 1e9, 500
	r, err := rli.NewReceiver(c)
	if err != nil {
		return machine{}, err
	}
	return machine{round: func(random *rand.Rand) (tried, refused int, err error) {
		now := int64(0)
		for range 3000 {
			now += random.Int64N(20_000)
			tried++
			switch random.IntN(20) {
			case 0:
				p := rli.ReferencePacket{Sent: hostileTime(random, now-random.Int64N(50_000)), Sequence: random.Uint64N(1000)}
				r.Reference(p, hostileTime(random, now))
			case 1:
				if _, wrong := r.Estimate(hashing.Flow(random.Uint64())); wrong != nil {
					refused++
				}
			default:
				r.Update(hashing.Flow(hashing.Word(3, random.Uint64N(2000))), random.IntN(1600), hostileTime(random, now))
			}
		}
		if total, wrong := r.Total(); wrong == nil {
			if err := finite(total.Delay); err != nil {
				return tried, refused, err
			}
		}
		return tried, refused, nil
	}}, nil
}

// small is for a recorder in which many packets meet in a counter.
var small = colate.Config{Counters: 2000, PerFlow: 10, Bits: 64, CountBits: 14, DigestBits: 20, Period: 1e9}

// flows are those in a query, with records that may be wrong.
func flows(random *rand.Rand) (records []joint.FlowRecord) {
	for k := range uint64(30) {
		f := hashing.Flow(hashing.Word(2, k))
		records = append(records, joint.FlowRecord{Flow: f, Packets: float64(random.IntN(100)), Doubt: float64(random.IntN(3))})
	}
	return records
}

// fill lets two recorders count, mostly, the packets of an epoch.
func fill(random *rand.Rand, points [2]*colate.Recorder, start int64) {
	for i := range 2000 {
		f, p := hashing.Flow(hashing.Word(2, random.Uint64N(300))), hostilePacket(random)
		for _, r := range points[random.IntN(20)/19:] {
			r.Update(f, p, hostileTime(random, start+int64(i)*1000))
		}
	}
}

func newRecorders() (machine, error) {
	var points [2]*colate.Recorder
	for i := range points {
		var err error
		if points[i], err = colate.New(small); err != nil {
			return machine{}, err
		}
	}
	return machine{round: func(random *rand.Rand) (tried, refused int, err error) {
		for _, r := range points {
			r.Reset()
		}
		fill(random, points, 0)
		var answers []colate.Answer
		for _, f := range flows(random) {
			r, wrong := colate.Estimate(points[0], points[1], f)
			answers = append(answers, colate.Answer{Result: r, Err: wrong})
		}
		n, no, err := delays(answers)
		if err != nil {
			return tried + n, refused + no, err
		}
		d, dNo, err := decode(random, points[0])
		return tried + n + d, refused + no + dNo, err
	}}, nil
}

// delays checks answers.
func delays(answers []colate.Answer) (tried, refused int, err error) {
	for i := range answers {
		tried++
		if answers[i].Err != nil {
			refused++
		} else if err := finite(answers[i].Delay); err != nil {
			return tried, refused, err
		}
	}
	return tried, refused, nil
}
