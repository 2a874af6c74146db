package main

import (
	"github.com/hoplag/hoplag/estimate/clock"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/lda/mplane"
)

// A pair is the two directions between two monitors. The monitors follow each
// other's clocks with what they measure anyway.
type pair struct {
	there, back *meter
	tracker     *clock.Tracker
}

// pair finds the segments that are measured both ways.
func (w *world) pair() error {
	c := clock.DefaultConfig
	c.Asymmetry, c.SumBits = 0, int(synopsis.SumBits)
	for _, id := range w.ids {
		opposite, ok := w.plan.Opposite(id)
		back := w.meters[opposite]
		if !ok || back == nil || id.From > id.To {
			continue
		}
		tracker, err := clock.New(c)
		if err != nil {
			return err
		}
		w.pairs = append(w.pairs, pair{w.meters[id], back, tracker})
	}
	return nil
}

// clock returns what a router's clock shows at a time.
func (w *world) clock(r mplane.Router, t int64) int64 {
	return t + int64(w.ahead[r]+w.drift[r]*float64(t)/float64(second))
}

// follow reads the clocks of an interval. Its packets pass during the first
// part of it.
func (w *world) follow(interval uint64) error {
	for i := range w.pairs {
		p := &w.pairs[i]
		p.there.reading, p.back.reading = nil, nil
		middle := w.clock(p.there.id.From, int64(interval)*second+int64(simulated/2*float64(second)))
		forth, err := lda.AppendClockSamples(nil, p.there.up, p.there.down, clock.There, middle)
		if err != nil {
			return err
		}
		home, err := lda.AppendClockSamples(nil, p.back.up, p.back.down, clock.Back, middle)
		if err != nil {
			return err
		}
		if _, err := p.tracker.Add(forth, home); err != nil {
			continue // too few packets passed
		}
		if reading, err := p.tracker.At(middle); err == nil {
			reverse := reading.Reverse()
			p.there.reading, p.back.reading = &reading, &reverse
		}
	}
	return nil
}
