package figlda

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/colate"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lds"
)

// The flows that per-flow synopses are asked for, and the cells they have for them.
const (
	areaFlows  = 50
	areaRate   = 1e4 // packets a second, of all flows
	areaPeriod = 1e9 // ns: an epoch of COLATE
)

var (
	areaLDS    = lds.Config{Rows: 4, Columns: 1024, Spread: 1, Rates: [lds.MaxRows]float64{1, 1, 0.1, 0.01}, SumBits: 64, DigestBits: 24}
	areaCOLATE = colate.Config{Counters: 16384, PerFlow: 20, Bits: 64, CountBits: 14, DigestBits: 20, Shift: 6, Period: areaPeriod}
)

// A flowPassing is a packet of a flow at one of the points.
type flowPassing struct {
	flow   int
	packet hashing.Packet
	at     int64
}

// flowAreas passes traffic of some flows and scores each flow's answer by LDS and by
// COLATE, after all packets have come.
func flowAreas(run *experiment.Run, law areaLaw, loss areaLoss, seconds int, seed string) (byLDS, byCOLATE *areaScore) {
	random := run.Rand("flows " + seed)
	delay, lost := law.start(random), loss.start(random)
	var up, down []flowPassing
	truth := make([]estimate.Moments, areaFlows)
	last := int64(seconds) * 1e9
	for now := random.ExpFloat64() / areaRate; now < float64(seconds); now += random.ExpFloat64() / areaRate {
		p := flowPassing{random.IntN(areaFlows), hashing.Packet(random.Uint64()), int64(now * 1e9)}
		up = append(up, p)
		if d, slow := delay(now); !lost(now, slow) {
			p.at += int64(d * 1e9)
			down = append(down, p)
			truth[p.flow].Add(d * 1e9)
			last = max(last, p.at)
		}
	}
	slices.SortStableFunc(down, func(x, y flowPassing) int { return int(x.at - y.at) })
	keys := make([]hashing.Flow, areaFlows)
	for f := range keys {
		keys[f] = hashing.Flow(random.Uint64())
	}
	return ldsAreas(up, down, keys, truth, last), colateAreas(up, down, keys, truth, last)
}

func ldsAreas(up, down []flowPassing, keys []hashing.Flow, truth []estimate.Moments, last int64) *areaScore {
	total := experiment.Try(lds.NewAccumulator(areaLDS))
	a, b := experiment.Try(lds.New(areaLDS)), experiment.Try(lds.New(areaLDS))
	for start := int64(0); start <= last; start += int64(areaCut) {
		end := start + int64(areaCut)
		a.Reset()
		b.Reset()
		for ; len(up) > 0 && up[0].at < end; up = up[1:] {
			a.Update(keys[up[0].flow], up[0].packet, up[0].at)
		}
		for ; len(down) > 0 && down[0].at < end; down = down[1:] {
			b.Update(keys[down[0].flow], down[0].packet, down[0].at)
		}
		experiment.Check(total.Add(start, end, a, b))
	}
	s := new(areaScore)
	for f, key := range keys {
		r, err := total.Estimate(key)
		s.judgeFlow(&truth[f], r.Mean, r.MeanInterval, err)
	}
	return s
}

func colateAreas(up, down []flowPassing, keys []hashing.Flow, truth []estimate.Moments, last int64) *areaScore {
	dir := experiment.Try(os.MkdirTemp("", "areas"))
	defer os.RemoveAll(dir)
	var stores [2]*colate.Store
	for i, passed := range [][]flowPassing{up, down} {
		stores[i] = experiment.Try(colate.OpenStore(filepath.Join(dir, []string{"up", "down"}[i]), colate.StoreOptions{}))
		r := experiment.Try(colate.New(areaCOLATE))
		for end := int64(areaPeriod); end-areaPeriod <= last; end += areaPeriod {
			for ; len(passed) > 0 && passed[0].at < end; passed = passed[1:] {
				r.Update(keys[passed[0].flow], passed[0].packet, passed[0].at)
			}
			if _, _, ok := r.Span(); ok {
				experiment.Check(stores[i].Append(r))
			}
			r.Reset()
		}
		experiment.Check(stores[i].Close())
	}
	path, s := colate.Path{Up: stores[0], Down: stores[1]}, new(areaScore)
	for f, key := range keys {
		packets := float64(truth[f].N())
		r, _, err := path.Estimate(context.Background(), joint.FlowRecord{Flow: key, Packets: packets}, 0, last)
		s.judgeFlow(&truth[f], r.Mean, r.MeanInterval, err)
	}
	return s
}

// judgeFlow compares an answer for a flow with the truth.
func (s *areaScore) judgeFlow(truth *estimate.Moments, mean float64, interval func(float64) estimate.Interval, err error) {
	s.reports++
	if err != nil {
		s.refused++
		return
	}
	want := truth.Mean()
	i := interval(0.95)
	for confidence, outside := range map[float64]*int{0.95: &s.outside95, 0.999: &s.outside999} {
		if !interval(confidence).Contains(want) && math.Abs(mean-want) > 1e-5*want {
			*outside++
		}
	}
	s.errors = append(s.errors, math.Abs(mean-want)/want)
	s.halves = append(s.halves, (i.High-i.Low)/2/want)
}
