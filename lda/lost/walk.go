package lost

import (
	"cmp"
	"math"
	"slices"

	"github.com/hoplag/hoplag/estimate/areas"
	"github.com/hoplag/hoplag/lda"
)

// A walker follows one trail: the sets of candidates that may be outstanding,
// and those that have been sent since the last cut that was not passed over.
type walker struct {
	all     []candidate // by time
	mask    uint32
	most    float64 // sets of a cut
	kept    [][]int
	fit     [][]int
	sent    []int
	among   []int
	digests []uint32 // of those
	chosen  []int
	ages    []uint8 // by candidate: for how many cuts it has been outstanding
	budget  int
}

// mostKept is how many sets may fit a cut. If more do, it is passed over.
const mostKept = 8

// begin begins with the candidates of a trail of a cell.
func (w *walker) begin(all []candidate, c lda.Config, cell int) {
	slices.SortFunc(all, func(x, y candidate) int { return cmp.Compare(x.sent, y.sent) })
	w.all, w.mask, w.sent = all, 1<<c.DigestBits-1, w.sent[:0]
	w.kept, w.ages = append(w.kept[:0], nil), append(w.ages[:0], make([]uint8, len(all))...)
	varying := c.DigestBits
	for _, b := range c.Banks {
		if cell -= b.Rows; cell < 0 {
			varying = min(varying, 32-b.Shift)
			break
		}
	}
	w.most = MostChance * math.Exp2(float64(varying))
}

// follow appends the names of a trail. It returns how many packets are left
// that it knows nothing of.
func (w *walker) follow(trail int, t *areas.Trail, names *[]Name) (left int) {
	n, counted, known, possible := 0, 0, false, true
	w.budget -= len(w.all)
	for i := range t.Steps {
		s := &t.Steps[i]
		left = int(s.Outstanding)
		for ; n < len(w.all) && w.all[n].sent < s.End; n++ {
			w.sent = append(w.sent, n)
		}
		counted += int(s.Sent)
		if known = false; counted == n && possible {
			known, possible = w.step(left, s.Digest)
		}
	}
	cost := len(w.kept[0]) * len(w.all) / 8
	if !known || cost > w.budget {
		return left
	}
	w.budget -= cost
	for k, i := range w.kept[0] {
		common, repeated := w.common(k)
		if !common {
			continue
		}
		left--
		if c := &w.all[i]; !t.Open || c.sent < t.Until { // or it is on its way
			after := func(s areas.TrailStep, t int64) int { return cmp.Compare(s.End, t) }
			step, _ := slices.BinarySearchFunc(t.Steps, c.sent+1, after)
			*names = append(*names, Name{trail, step, c.id, c.packet, c.sent, repeated})
		}
	}
	return left
}

// step finds the sets of n candidates with a digest, and reports whether they are
// known and whether there may be one. A cut with too many is passed over. First
// it looks for sets with all that have been outstanding for some cuts: most of
// these are lost.
func (w *walker) step(n int, digest uint32) (known, possible bool) {
	possible = true
	for _, age := range []uint8{oldAge, math.MaxUint8} {
		tried := 0.0
		for _, kept := range w.kept {
			w.split(kept, age)
			tried += sets(len(w.among), n-len(w.chosen))
		}
		cost := tried * float64(max(1, n-len(w.chosen))) // about
		if w.budget -= 4 * len(w.kept); tried > w.most || cost > float64(w.budget) {
			continue
		}
		w.budget -= int(cost)
		w.fit = w.fit[:0]
		for _, kept := range w.kept {
			rest := digest
			for _, i := range w.split(kept, age) {
				rest -= w.all[i].digest
			}
			if n >= len(w.chosen) {
				w.choose(0, n-len(w.chosen), rest)
			}
		}
		if len(w.fit) > mostKept {
			return false, true
		}
		if len(w.fit) > 0 {
			w.kept, w.fit, w.sent = w.fit, w.kept, w.sent[:0]
			for _, i := range w.kept[0] {
				w.ages[i] = min(w.ages[i]+1, math.MaxUint8-1)
			}
			return true, true
		}
		possible = age == oldAge
	}
	return false, possible
}

// oldAge is for how many cuts a candidate has been outstanding that may be lost.
const oldAge = 2

// split chooses of a set those of an age, and puts the others among those to be
// chosen.
func (w *walker) split(kept []int, age uint8) (chosen []int) {
	w.among, w.chosen, w.digests = w.among[:0], w.chosen[:0], w.digests[:0]
	for _, i := range kept {
		if w.ages[i] >= age {
			w.chosen = append(w.chosen, i)
		} else {
			w.among = append(w.among, i)
		}
	}
	w.among = append(w.among, w.sent...)
	for _, i := range w.among {
		w.digests = append(w.digests, w.all[i].digest)
	}
	return w.chosen
}

// sets returns how many sets of n there are among m.
func sets(m, n int) float64 {
	if n > m || n < 0 {
		return 0
	}
	count := 1.0
	for i := range min(n, m-n) {
		count = count * float64(m-i) / float64(i+1)
	}
	return count
}

// choose finds the sets of n more candidates with a digest, from number first
// on.
func (w *walker) choose(first, n int, digest uint32) {
	if n == 0 {
		if digest&w.mask == 0 && len(w.fit) <= mostKept {
			w.fit = append(w.fit, slices.Clone(w.chosen))
		}
		return
	}
	last := len(w.digests) - n
	for i := first; i <= last; i++ {
		rest := digest - w.digests[i]
		if n > 1 || rest&w.mask == 0 {
			w.chosen = append(w.chosen, w.among[i])
			w.choose(i+1, n-1, rest)
			w.chosen = w.chosen[:len(w.chosen)-1]
		}
	}
}

// common reports whether number k of the first set is outstanding whichever set
// is right, and whether candidates of the same hash are not. Of several of one
// hash, the first ones stand for those that are outstanding.
func (w *walker) common(k int) (common, repeated bool) {
	packet := w.all[w.kept[0][k]].packet
	count := func(of []int) (n int) {
		for _, i := range of {
			if w.all[i].packet == packet {
				n++
			}
		}
		return n
	}
	least, copies := len(w.all), 0
	for _, kept := range w.kept {
		least = min(least, count(kept))
	}
	for i := range w.all {
		if w.all[i].packet == packet {
			copies++
		}
	}
	return count(w.kept[0][:k]) < least, least < copies
}
