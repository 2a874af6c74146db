package soak

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/lda/control"
	"github.com/hoplag/hoplag/lda/mplane"
)

// damage changes some bytes, cuts some off or adds some.
func damage(random *rand.Rand, b []byte) []byte {
	b = bytes.Clone(b)
	for range random.IntN(8) {
		if len(b) > 0 {
			b[random.IntN(len(b))] = byte(random.Uint32())
		}
	}
	switch random.IntN(4) {
	case 0:
		b = b[:random.IntN(len(b)+1)]
	case 1:
		b = append(b, byte(random.Uint32()))
	}
	return b
}

// hostileTime returns, mostly, the present.
func hostileTime(random *rand.Rand, now int64) int64 {
	switch random.IntN(1000) {
	case 0:
		return math.MinInt64
	case 1:
		return math.MaxInt64
	case 2:
		return int64(random.Uint64())
	}
	return now
}

// hostilePacket returns, mostly, a new packet; sometimes one of a few again.
func hostilePacket(random *rand.Rand) hashing.Packet {
	if random.IntN(3) == 0 {
		return hashing.Word(1, uint64(random.IntN(3)))
	}
	return hashing.Packet(random.Uint64())
}

// finite reports which part of a delay is not a number.
func finite(d estimate.Delay) error {
	if sum := d.Mean + d.StdDev; math.IsNaN(sum) || math.IsInf(sum, 0) {
		return fmt.Errorf("the answer is %+v", d)
	}
	return nil
}

// newControl returns the receiver of a session whose senders start anew in
// each round, and whose messages are damaged or come twice.
func newControl() (machine, error) {
	tuner := lda.Tuner{Config: lda.DefaultConfig}
	receiver, err := control.NewReceiver(tuner)
	if err != nil {
		return machine{}, err
	}
	var reports []control.Report
	return machine{round: func(random *rand.Rand, n *tally) error {
		sender, err := control.NewSender(tuner, random.Uint64(), 1400)
		if err != nil {
			return err
		}
		give := func(data []byte) {
			for range 1 + random.IntN(2) {
				var wrong error
				reports, wrong = receiver.Receive(damage(random, data), reports[:0])
				n.count(wrong)
			}
		}
		for range 4 {
			start, err := sender.Start(nil)
			if err != nil {
				return err
			}
			give(start)
			for i := range 500 {
				p := hostilePacket(random)
				sender.Update(p, hostileTime(random, int64(i)))
				receiver.Update(p, hostileTime(random, int64(i)))
			}
			end, err := sender.End(nil)
			if err != nil {
				return err
			}
			give(end)
			for part := range sender.Parts() {
				give(part)
			}
		}
		return nil
	}}, nil
}

// newStation returns the station of eight routers in a ring, each of which
// measures. Monitors with the key lie, and strangers send damaged reports.
func newStation() (machine, error) {
	network, measuring := mplane.NewNetwork(), mplane.Deployment{}
	for i := range 8 {
		from, to := fmt.Sprint(i), fmt.Sprint((i+1)%8)
		if err := errors.Join(network.AddLink(from, to, 1), network.AddLink(to, from, 1)); err != nil {
			return machine{}, err
		}
		measuring.Upgraded = append(measuring.Upgraded, mplane.Router(i))
	}
	plan, err := network.Plan(measuring)
	if err != nil {
		return machine{}, err
	}
	key := mplane.NewKey("soak")
	const length = int64(1e9)
	station, err := mplane.NewStation(mplane.StationConfig{Plan: plan, Key: key, Length: length})
	if err != nil {
		return machine{}, err
	}
	path := network.Paths(0, 3)[0]
	interval := uint64(0)
	return machine{round: func(random *rand.Rand, n *tally) error {
		interval++
		for _, r := range measuring.Upgraded {
			data, wrong := mplane.AppendReport(nil, lie(random, plan, r, interval), key)
			n.count(wrong) // a monitor cannot send what is not a number
			if wrong != nil {
				continue
			}
			for _, b := range [][]byte{data, data, damage(random, data)} {
				_, wrong := station.Receive(int64(interval)*length, b)
				n.count(wrong)
			}
		}
		v, wrong := station.Localise(path, 0, interval)
		if n.count(wrong); wrong != nil {
			return nil
		}
		return finite(v.Path.Delay)
	}}, nil
}

// lie returns what a monitor says of its segments: usual delays, any numbers,
// and what is no number.
func lie(random *rand.Rand, plan *mplane.Plan, monitor mplane.Router, interval uint64) mplane.Report {
	hostile := func(usual float64) float64 {
		return [3]float64{usual, math.Float64frombits(random.Uint64()), math.NaN()}[max(0, random.IntN(200)-197)]
	}
	report := mplane.Report{Monitor: monitor, Interval: interval, Network: plan.Network().Fingerprint()}
	ids := plan.Internal(monitor)
	for _, s := range plan.MSet(monitor) {
		ids = append(ids, s.ID)
	}
	for _, id := range ids {
		m := mplane.Measurement{Segment: id, Sent: 1000, Lost: random.Uint64N(20), Error: hostile(100)}
		m.Delay = estimate.Delay{Mean: hostile(1e5 * (1 + random.Float64())), StdDev: hostile(1000), N: 900}
		report.Measurements = append(report.Measurements, m)
	}
	return report
}
