package soak

import (
	"math/rand/v2"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/lda/control"
	"github.com/hoplag/hoplag/rli"
)

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
