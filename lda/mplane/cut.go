package mplane

// passes reports whether a path of the tree passes router r or ends there.
func (t *pathTree) passes(r Router) bool {
	for _, other := range t.routers {
		if other == r {
			return true
		}
	}
	return false
}

// An upgradeWorker counts for one goroutine.
type upgradeWorker struct {
	search *pathSearch
	total  probes
	gains  []gain
	to     []probes // by position: the paths from the source to there, and their hops
	from   []probes // by position: the paths on from there
}

// count adds, or with sign −1 subtracts, the paths of a source that no
// upgraded router cuts. To every router on them it adds what upgrading it
// would gain. It does so as J. Brandes counts shortest paths, once along the
// tree and once back. When adding, it drops what upgraded routers cut off.
func (w *upgradeWorker) count(s *upgradeSearch, source int, sign int64) {
	t := &s.trees[source]
	w.to = append(w.to[:0], make([]probes, len(t.routers))...)
	w.from = append(w.from[:0], make([]probes, len(t.routers))...)
	w.countTo(t, s.upgraded)
	for i := range t.routers[1:] {
		w.total.paths += sign * w.to[1+i].paths
		w.total.hops += sign * w.to[1+i].hops
	}
	w.countFrom(t, s.upgraded)
	for i, r := range t.routers {
		if i > 0 && !s.upgraded[r] {
			to, from := w.to[i], w.from[i]
			w.gains[r].paths += sign * to.paths * from.paths
			w.gains[r].hops += sign * (to.hops*from.paths + to.paths*from.hops)
		}
	}
	if sign > 0 {
		s.longest[source] = t.longest(s.upgraded)
		w.prune(t)
	}
}

// countTo counts the paths from the source to every router.
func (w *upgradeWorker) countTo(t *pathTree, upgraded []bool) {
	w.to[0] = probes{paths: 1}
	at := 0
	for i := 1; i < len(t.routers); i++ {
		n := &w.to[i]
		for _, b := range t.before[at : at+int(t.counts[i])] {
			if b == 0 || !upgraded[t.routers[b]] {
				n.paths += w.to[b].paths
				n.hops += w.to[b].hops + w.to[b].paths
			}
		}
		n.paths, n.hops = min(n.paths, maxCount), min(n.hops, maxCount)
		at += int(t.counts[i])
	}
}

// countFrom counts the paths that continue from every router.
func (w *upgradeWorker) countFrom(t *pathTree, upgraded []bool) {
	at := len(t.before)
	for i := len(t.routers) - 1; i > 0; i-- {
		at -= int(t.counts[i])
		on := probes{paths: 1} // the path that ends here, and those that continue
		if !upgraded[t.routers[i]] {
			on.paths += w.from[i].paths
			on.hops = w.from[i].hops
		}
		for _, b := range t.before[at : at+int(t.counts[i])] {
			n := &w.from[b]
			n.paths = min(n.paths+on.paths, maxCount)
			n.hops = min(n.hops+on.hops+on.paths, maxCount)
		}
	}
}

// longest returns the number of hops of the longest path that no upgraded
// router cuts.
func (t *pathTree) longest(upgraded []bool) int32 {
	hops := make([]int32, len(t.routers))
	most, at := int32(0), 0
	for i := 1; i < len(t.routers); i++ {
		for _, b := range t.before[at : at+int(t.counts[i])] {
			if b == 0 || !upgraded[t.routers[b]] && hops[b] > 0 {
				hops[i] = max(hops[i], hops[b]+1)
			}
		}
		most = max(most, hops[i])
		at += int(t.counts[i])
	}
	return most
}

// prune drops the routers that no path reaches any more. The others keep their
// order.
func (w *upgradeWorker) prune(t *pathTree) {
	moved := make([]int32, len(t.routers))
	kept, links, at := 0, 0, 0
	for i, r := range t.routers {
		before := t.before[at : at+int(t.counts[i])]
		at += int(t.counts[i])
		if w.to[i].paths == 0 {
			continue
		}
		n := 0
		for _, b := range before {
			if w.to[b].paths > 0 {
				t.before[links+n] = moved[b]
				n++
			}
		}
		moved[i] = int32(kept)
		t.routers[kept], t.counts[kept] = r, uint16(n)
		kept++
		links += n
	}
	t.routers, t.counts, t.before = t.routers[:kept], t.counts[:kept], t.before[:links]
}
