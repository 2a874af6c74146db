package soak

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/clock"
	"github.com/hoplag/hoplag/lda/mplane"
)

// ring returns a plan for eight routers in a ring, each of which measures.
func ring() (*mplane.Plan, error) {
	n := mplane.NewNetwork()
	var routers []mplane.Router
	for i := range 8 {
		from, to := fmt.Sprint(i), fmt.Sprint((i+1)%8)
		if err := errors.Join(n.AddLink(from, to, 1), n.AddLink(to, from, 1)); err != nil {
			return nil, err
		}
	}
	for i := range mplane.Router(n.Routers()) {
		routers = append(routers, i)
	}
	return n.Plan(mplane.Deployment{Upgraded: routers})
}

// hostileNumber returns any number, or something that is not a number.
func hostileNumber(random *rand.Rand, usual float64) float64 {
	switch random.IntN(200) {
	case 0:
		return math.Float64frombits(random.Uint64())
	case 1:
		return math.Inf(1)
	case 2:
		return math.NaN()
	}
	return usual
}

// newStation returns a station to which monitors with the key lie, and
// strangers send damaged reports.
func newStation() (machine, error) {
	plan, err := ring()
	if err != nil {
		return machine{}, err
	}
	key := mplane.NewKey("soak")
	const length = int64(1e9)
	station, err := mplane.NewStation(mplane.StationConfig{Plan: plan, Key: key, Length: length})
	if err != nil {
		return machine{}, err
	}
	path := plan.Network().Paths(0, 3)[0]
	interval := uint64(0)
	return machine{round: func(random *rand.Rand) (tried, refused int, err error) {
		interval++
		for r := range mplane.Router(plan.Network().Routers()) {
			report := mplane.Report{Monitor: r, Interval: interval, Network: plan.Network().Fingerprint()}
			ids := plan.Internal(r)
			for _, s := range plan.MSet(r) {
				ids = append(ids, s.ID)
			}
			for _, id := range ids {
				m := mplane.Measurement{Segment: id, Sent: 1000, Lost: random.Uint64N(20), Error: hostileNumber(random, 100)}
				m.Delay = estimate.Delay{Mean: hostileNumber(random, 1e5*(1+random.Float64())), StdDev: hostileNumber(random, 1000), N: 900}
				report.Measurements = append(report.Measurements, m)
			}
			data, wrong := mplane.AppendReport(nil, report, key)
			if wrong != nil { // a monitor cannot send what is not a number
				tried, refused = tried+1, refused+1
				continue
			}
			for _, b := range [][]byte{data, data, damage(random, data)} {
				tried++
				if _, wrong := station.Receive(int64(interval)*length, b); wrong != nil {
					refused++
				}
			}
		}
		v, wrong := station.Localise(path, 0, interval)
		tried++
		if wrong != nil {
			refused++
			return tried, refused, nil
		}
		return tried, refused, finite(v.Path.Delay)
	}}, nil
}

// newTrackers returns a clock whose samples lie.
func newTrackers() (machine, error) {
	tracker, err := clock.New(clock.DefaultConfig)
	if err != nil {
		return machine{}, err
	}
	now := int64(0)
	var samples [2][]clock.Sample
	return machine{round: func(random *rand.Rand) (tried, refused int, err error) {
		if random.IntN(100) == 0 {
			tracker.Reset()
			now = 0
		}
		offset := 1e6 + 3e-5*float64(now)
		for d, sign := range [2]float64{1, -1} {
			samples[d] = samples[d][:0]
			for range random.IntN(100) {
				delay := 1e5 + 1e5*random.ExpFloat64() + sign*offset
				s := clock.Sample{Time: now + random.Int64N(1e9), Delay: int64(delay), Packets: 1 + uint32(random.IntN(3))}
				s.Delay *= int64(s.Packets)
				if random.IntN(500) == 0 {
					s.Time, s.Delay, s.Packets = hostileTime(random, s.Time), int64(random.Uint64()), random.Uint32()
				}
				samples[d] = append(samples[d], s)
			}
		}
		now += 1e9
		tried++
		r, wrong := tracker.Add(samples[0], samples[1])
		if wrong != nil {
			refused++
			return tried, refused, nil
		}
		if err := finite(estimate.Delay{Mean: r.Offset, StdDev: r.Drift}); err != nil {
			return tried, refused, err
		}
		for _, i := range []estimate.Interval{r.Certain, r.Likely, r.CertainDrift, r.LikelyDrift} {
			if !(i.Low <= i.High) {
				return tried, refused, fmt.Errorf("the interval of a clock is %+v", i)
			}
		}
		return tried, refused, nil
	}}, nil
}
