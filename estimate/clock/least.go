package clock

import (
	"cmp"
	"slices"
)

// Least collects the samples of one direction for [Tracker.Add]: of each cut the few of least delay, which are more than a tracker
// ranks. Where clocks drift by more in an interval than delays vary, the least of an interval all come from one end of it.
type Least struct {
	samples []Sample
	cut     int64 // the latest,
	from    int   // and its first sample
}

const leastSamples = 8

// Add adds a sample of a cut; cuts are not mixed.
func (l *Least) Add(s Sample, cut int64) {
	if len(l.samples) == 0 || cut != l.cut {
		l.cut, l.from = cut, len(l.samples)
	}
	i, _ := slices.BinarySearchFunc(l.samples[l.from:], s, func(a, b Sample) int { return cmp.Compare(a.Delay, b.Delay) })
	if i < leastSamples {
		l.samples = slices.Insert(l.samples, l.from+i, s)
		l.samples = l.samples[:min(len(l.samples), l.from+leastSamples)]
	}
}

// Take returns the samples, until the next Add, and begins anew.
func (l *Least) Take() []Sample {
	all := l.samples
	l.samples = all[:0]
	return all
}
