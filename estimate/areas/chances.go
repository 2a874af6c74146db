package areas

import "math"

// chances are [losses.weight] and [Areas.weight] of two cuts, or 0 where they are not known yet.
type chances struct {
	weight, alone float64
	to            int
}

// weight returns for how many a span between two cuts stands that is known to be exact: one over the chance that of all packets of its
// cell none was lost in it, nor for so long before and after it that the cell had one level for a patience.
func (l *losses) weight(group, from, to int) float64 {
	kept := l.chances(group, from, to)
	if kept.weight == 0 {
		lost := l.hazardUp(group, to) - l.hazardUp(group, from)
		kept.weight = math.Exp(min(lost, -math.Log(leastFree))) / l.free(group, from, to)
	}
	return kept.weight
}

// awaits finds how long a cell that lost a packet waits until nothing is on its way in it, by exact spans and
// their weights as in all cuts on average. What was taken out hides nothing.
func (l *losses) awaits(group int) {
	of, last := &l.groups[group], l.areas.latest()
	times, often := float64(last*l.areas.size(group)), of.hazards[last]/max(1, float64(last))
	of.wait, of.waits = 0, 0
	for i := 0; i < 3 && l.share > 0 && len(l.areas.taken) == 0; i++ { // the weight depends on it
		wait, waits, all := 0.0, 0.0, 0.0
		for cuts, spans := range of.lengths {
			if n := float64(cuts); spans > 0 {
				spans *= min(math.Exp(often*n)/l.freeFor(group, -1, last, n), 1/leastFree)
				all += spans * n
				wait += spans * n * (n - 1) / 2
				waits += spans * n * n * (n - 1) / 3
			}
		}
		of.wait, of.waits = wait/max(1, times, all), waits/max(1, times, all)
	}
}

// places is how many cuts after each one chances are kept for: most spans are short, or as long as others.
const places = 4

// hazardUp returns how many packets a cell loses up to cut k on average. Before and after the cuts that are kept, it loses as many.
func (l *losses) hazardUp(group, k int) float64 {
	of := &l.groups[group]
	last := len(of.hazards) - 1
	in := min(max(k, 0), last)
	return of.hazards[in] + float64(k-in)*of.hazards[last]/float64(max(last, 1))
}

// stay returns the chance that a cell loses nothing in cut k.
func (of *groupLosses) stay(k int) float64 {
	if k < 1 || k >= len(of.stays) {
		k = 0 // as in the cuts that are kept, on average
	}
	return of.stays[k]
}

// free returns the chance that a cell loses nothing for a patience around two cuts, if it loses nothing between them.
func (l *losses) free(group, from, to int) float64 {
	if l.share == 0 {
		return 1
	}
	return l.freeFor(group, from, to, l.areas.between(from, to)/max(l.areas.step, 1))
}

// freeFor is free of cuts at a distance: the time without loss before them and the time after are long enough together. At either end the
// cell may wait until nothing is on its way: mostly not, or else for one time, so that mean and mean square are right.
func (l *losses) freeFor(group, from, to int, apart float64) (chance float64) {
	rest := math.Ceil(min(l.areas.patience/max(l.areas.step, 1), longestKept) - apart)
	if rest <= 0 {
		return 1
	}
	of, after := &l.groups[group], append(l.after[:0], 1) // after: that it loses nothing in so many intervals after
	long, share := of.waits/max(of.wait, 1e-9), min(1, sq(of.wait)/max(of.waits, 1e-9))
	for ends, times := range [3]float64{sq(1 - share), 2 * share * (1 - share), sq(share)} {
		n, before := int(math.Round(rest+float64(ends)*long)), 1.0 // before: in i intervals before, up to an idle beginning
		for i := 0; i < n && before*times > leastFree && (i != from || l.areas.before > 0 || l.areas.underWay); i++ {
			for len(after) <= n {
				after = append(after, after[len(after)-1]*of.stay(to+len(after)))
			}
			next := before * of.stay(from-i)
			chance += times * (before - next) * after[n-i]
			before = next
		}
		chance += times * before
	}
	l.after = after
	return max(chance, leastFree)
}

// chances returns where those of two cuts are kept.
func (l *losses) chances(group, from, to int) *chances {
	if from < 0 || to <= from {
		return new(chances)
	}
	kept := &l.groups[group].chances[places*from+to%places]
	if kept.to != to {
		*kept = chances{to: to}
	}
	return kept
}
