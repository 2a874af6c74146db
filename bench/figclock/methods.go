package figclock

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/estimate/clock"
	"github.com/hoplag/hoplag/lda"
)

// The methods, by index.
const (
	means  = iota // half the difference of the mean delays, in the last second
	filter        // NTP's: of eight polls, one a second, that of the shortest round trip
	equal         // of as many probes as weigh what the LDAs do, the same, in the last second
	probed        // the same probes, all seconds, through package clock
	last          // the cells of the last second alone, through package clock
	ours          // the cells of all seconds
	single        // the cells of one direction: drift only
	methods
)

var looks = [methods]plot.Series{
	means:  {Name: "means", Paper: true},
	filter: {Name: "NTP's filter, 1 probe/s", Paper: true},
	equal:  {Name: "shortest of probes of equal bytes", Paper: true},
	probed: {Name: "probes of equal bytes, our line", Paper: true},
	last:   {Name: "cells, 1 s"},
	ours:   {Name: "cells, 10 s"},
	single: {Name: "cells, one direction, 10 s"},
}

// An outcome is how far each method was off: NaN where it says nothing.
type outcome struct {
	offset, drift    [methods]float64 // ns, and as a fraction
	certain, likely  float64          // widths of our intervals, ns
	excluded, missed bool             // the truth, by the certain and the likely one
}

// measure runs one world of a setting through all methods.
func measure(rng *rand.Rand, set setting) outcome {
	theta := func(t float64) float64 { return ahead + gaining*t }
	roads := [2]*road{newRoad(rng, &set, 0), newRoad(rng, &set, 1)}
	config := lda.DefaultConfig
	bytes := config.EncodedSize()
	config.DigestBits = 16
	trackers := [methods]*clock.Tracker{}
	for _, m := range []int{probed, last, ours, single} {
		c := clock.DefaultConfig
		c.Window, c.Asymmetry = max(1, set.seconds), 0
		if m == last {
			c.Window = 1
		}
		trackers[m] = experiment.Try(clock.New(c))
	}
	out := outcome{}
	for m := range methods {
		out.offset[m], out.drift[m] = math.NaN(), math.NaN()
	}
	var polled []exchange
	var first float64 // the offset by means in the first second
	for s := range set.seconds {
		end := float64(s+1) * second
		probes := exchanges(roads, end, bytes/probeBytes, theta)
		if len(probes) > 0 {
			polled = append(polled, probes[rng.IntN(len(probes))])
		}
		feed(trackers, roads, probes, end)
		mean := (roads[0].sum/roads[0].n - roads[1].sum/roads[1].n) / 2
		if s == 0 {
			first = mean
		}
		if s < set.seconds-1 {
			continue
		}
		middle := end - second/2
		out.offset[means] = math.Abs(mean - theta(middle))
		out.drift[means] = math.Abs((mean-first)/(float64(s)*second) - gaining)
		e := shortest(polled[max(0, len(polled)-polls):])
		out.offset[filter] = math.Abs(e.offset() - theta(e.sent))
		e = shortest(probes)
		out.offset[equal] = math.Abs(e.offset() - theta(e.sent))
		out.read(trackers, epoch+int64(middle), theta(middle))
	}
	return out
}

// feed gives each tracker its samples of a second.
func feed(trackers [methods]*clock.Tracker, roads [2]*road, probes []exchange, end float64) {
	middle := epoch + int64(end-second/2)
	there, back := cells(roads, middle)
	var probed2 [2][]clock.Sample
	for i := range probes {
		forth, home := probes[i].samples()
		probed2[0], probed2[1] = append(probed2[0], forth), append(probed2[1], home)
	}
	// What is not known yet is asked for at the end.
	_, _ = trackers[probed].Add(probed2[0], probed2[1])
	_, _ = trackers[last].Add(there, back)
	_, _ = trackers[ours].Add(there, back)
	_, _ = trackers[single].Add(there, nil)
}

// read asks the trackers.
func (o *outcome) read(trackers [methods]*clock.Tracker, at int64, truth float64) {
	for _, m := range []int{probed, last, ours, single} {
		r, err := trackers[m].At(at)
		o.drift[m] = math.Abs(r.Drift - gaining)
		if err != nil {
			continue
		}
		o.offset[m] = math.Abs(r.Offset - truth)
		if m == ours {
			o.certain, o.likely = r.Certain.High-r.Certain.Low, r.Likely.High-r.Likely.Low
			o.excluded, o.missed = !r.Certain.Contains(truth), !r.Likely.Contains(truth)
		}
	}
}

// typical is the median of a method's errors, NaN if half the runs had none.
func typical(all []outcome, of func(*outcome) float64) float64 {
	var known []float64
	for i := range all {
		if x := of(&all[i]); !math.IsNaN(x) {
			known = append(known, x)
		}
	}
	if 2*len(known) <= len(all) {
		return math.NaN()
	}
	slices.Sort(known)
	return known[len(known)/2]
}
