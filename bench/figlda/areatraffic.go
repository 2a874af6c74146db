package figlda

import (
	"math/rand/v2"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
)

// An areaPassing is a packet at one of the points.
type areaPassing struct {
	p hashing.Packet
	t int64
}

// areaTruth is what happened within a report: the time that packets spent on
// their way, the packets received, and their delays, in seconds.
type areaTruth struct{ way, received, delays float64 }

// An areaTraffic is what passed two points, by cut, and the truth of each report.
type areaTraffic struct {
	up, down [][]areaPassing
	truth    []areaTruth
}

// newAreaTraffic simulates so many seconds. It passes each of these every packet, with the time at which it
// came or its loss; each may be nil.
func newAreaTraffic(random *rand.Rand, law areaLaw, loss areaLoss, rate float64, seconds int,
	each func(x areaPassing, came int64, lost bool)) *areaTraffic {
	delay, lost := law.start(random), loss.start(random)
	cuts, end := seconds*areaWindow, float64(seconds)
	t := &areaTraffic{make([][]areaPassing, cuts), make([][]areaPassing, cuts), make([]areaTruth, seconds)}
	for now := random.ExpFloat64() / rate; now < end; now += random.ExpFloat64() / rate {
		x := areaPassing{hashing.Packet(random.Uint64()), int64(now * 1e9)}
		d, slow := delay(now)
		t.up[int(now*areaWindow)] = append(t.up[int(now*areaWindow)], x)
		gone, came := lost(now, slow), now+d
		if each != nil {
			each(x, int64(came*1e9), gone)
		}
		if gone {
			continue
		}
		for w := int(now); w < seconds && float64(w) < came; w++ {
			t.truth[w].way += min(came, float64(w+1)) - max(now, float64(w))
		}
		if came < end {
			t.truth[int(came)].received++
			t.truth[int(came)].delays += d
			t.down[int(came*areaWindow)] = append(t.down[int(came*areaWindow)], areaPassing{x.p, int64(came * 1e9)})
		}
	}
	return t
}

// pass passes the traffic to an LDA at each point, and calls report for each report as it settles, with its
// number and the number of cuts so far. If early is set, an estimate at its end tells the Accumulator how long
// packets take.
func (t *areaTraffic) pass(config lda.Config, early bool, report func(total *lda.Accumulator, number, cuts int)) {
	total := experiment.Try(lda.NewAccumulator(config))
	a, b := experiment.Try(lda.New(config)), experiment.Try(lda.New(config))
	number := 0
	for k := range t.up {
		a.Reset()
		b.Reset()
		for _, x := range t.up[k] {
			a.Update(x.p, x.t)
		}
		for _, x := range t.down[k] {
			b.Update(x.p, x.t)
		}
		experiment.Check(total.Add(int64(k)*int64(areaCut), int64(k+1)*int64(areaCut), a, b))
		if (k+1)%areaWindow == 0 {
			if total.End(); early {
				total.Estimate()
			}
		}
		for ; total.Settled(); number++ {
			report(total, number, k+1)
			total.Reset()
		}
	}
}
