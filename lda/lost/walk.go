package lost

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"github.com/hoplag/hoplag/estimate/areas"
	"github.com/hoplag/hoplag/lda"
)

// A walker follows one trail: the set of candidates that are outstanding, and
// those that have been sent since the last cut that was not passed over.
type walker struct {
	all     []candidate // by time
	mask    uint32
	most    float64 // sets of a cut
	kept    []int
	sent    []int
	fit     []int // a set that fits a cut
	fits    int   // how many sets do, if copies of a packet count as one
	among   []int
	digests []uint32 // of those
	chosen  []int
	ages    []uint8 // by candidate: for how many cuts it has been outstanding
	budget  int
}

// begin begins with the candidates of a trail of a cell.
func (w *walker) begin(all []candidate, c lda.Config, cell int) {
	slices.SortFunc(all, func(x, y candidate) int { return cmp.Compare(x.sent, y.sent) })
	w.all, w.mask, w.sent = all, 1<<c.DigestBits-1, w.sent[:0]
	w.kept, w.ages = w.kept[:0], append(w.ages[:0], make([]uint8, len(all))...)
	varying := c.DigestBits
	for _, b := range c.Banks {
		if cell -= b.Rows; cell < 0 {
			varying = min(varying, 32-b.Shift)
			break
		}
	}
	w.most = MostChance * math.Exp2(float64(varying))
}

// follow appends the names of a trail.
func (w *walker) follow(trail int, t *areas.Trail, names *[]Name) {
	n, counted, known, possible := 0, 0, false, true
	w.budget -= len(w.all)
	for i := range t.Steps {
		s := &t.Steps[i]
		for ; n < len(w.all) && w.all[n].sent < s.End; n++ {
			w.sent = append(w.sent, n)
		}
		counted += int(s.Sent)
		if known = false; counted == n && possible {
			known, possible = w.step(int(s.Outstanding), s.Digest)
		}
	}
	cost := len(w.kept) * len(w.all) / 8
	if !known || cost > w.budget {
		return
	}
	w.budget -= cost
	for _, i := range w.kept {
		if c := &w.all[i]; !t.Open || c.sent < t.Until { // or it is on its way
			step := sort.Search(len(t.Steps), func(i int) bool { return t.Steps[i].End > c.sent })
			*names = append(*names, Name{trail, step, c.id, c.packet, c.sent, w.repeated(i)})
		}
	}
}

// step finds the set of n candidates with a digest, and reports whether it is known and whether there may be
// one. A cut with several, or too many to try, is passed over. First it looks for sets with all that have been
// outstanding for some cuts: most of these are lost.
func (w *walker) step(n int, digest uint32) (known, possible bool) {
	for _, age := range []uint8{oldAge, math.MaxUint8} {
		w.fits = 0
		rest := digest - w.split(age)
		tried := sets(len(w.among), n-len(w.chosen))
		cost := tried * float64(max(1, n-len(w.chosen))) // about
		if w.budget -= 4; tried > w.most || cost > float64(w.budget) {
			possible = true
			continue
		}
		w.budget -= int(cost)
		if n >= len(w.chosen) {
			w.choose(0, n-len(w.chosen), rest)
		}
		if w.fits > 0 {
			break
		}
		possible = age == oldAge
	}
	if w.fits != 1 {
		return false, possible || w.fits > 1
	}
	w.kept, w.fit, w.sent = w.fit, w.kept, w.sent[:0]
	for _, i := range w.kept {
		w.ages[i] = min(w.ages[i]+1, math.MaxUint8-1)
	}
	return true, true
}

// oldAge is how many cuts a candidate must have been outstanding to be taken for lost first.
const oldAge = 2

// split chooses those of an age among the kept ones, and puts the others among those to be chosen. It returns
// the digest of the former.
func (w *walker) split(age uint8) (digest uint32) {
	w.among, w.chosen, w.digests = w.among[:0], w.chosen[:0], w.digests[:0]
	for _, i := range w.kept {
		if w.ages[i] >= age {
			w.chosen = append(w.chosen, i)
			digest += w.all[i].digest
		} else {
			w.among = append(w.among, i)
		}
	}
	w.among = append(w.among, w.sent...)
	for _, i := range w.among {
		w.digests = append(w.digests, w.all[i].digest)
	}
	return digest
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
// on. Of several copies of a packet it takes the first ones.
func (w *walker) choose(first, n int, digest uint32) {
	if n == 0 {
		switch {
		case digest&w.mask != 0:
		case w.fits == 0:
			w.fit, w.fits = append(w.fit[:0], w.chosen...), 1
		case slices.ContainsFunc(w.fit, func(i int) bool { return w.copies(w.fit, i) != w.copies(w.chosen, i) }):
			w.fits++
		}
		return
	}
	last := len(w.digests) - n
	for i := first; i <= last && w.fits < 2; i++ {
		rest := digest - w.digests[i]
		if n > 1 || rest&w.mask == 0 {
			w.chosen = append(w.chosen, w.among[i])
			w.choose(i+1, n-1, rest)
			w.chosen = w.chosen[:len(w.chosen)-1]
		}
	}
}

// copies returns how many of some candidates have the hash of one.
func (w *walker) copies(of []int, one int) (n int) {
	for _, i := range of {
		if w.all[i].packet == w.all[one].packet {
			n++
		}
	}
	return n
}

// repeated reports whether some packets with the hash of a kept one are not kept.
func (w *walker) repeated(one int) bool {
	n := w.copies(w.kept, one)
	for i := range w.all {
		if w.all[i].packet == w.all[one].packet {
			n--
		}
	}
	return n < 0
}
