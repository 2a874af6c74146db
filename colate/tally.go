package colate

// A tally adds up a flow's groups: their delays less a reference, and their
// packets, each weighted by how many it stands for; and how groups differ, for
// the deviation.
type tally struct {
	sum, count float64 // weighted
	groups     float64
	packets    float64
	stands     float64 // Σ weight² × packets
	seen       bool    // whether there was a group, even one without packets

	// For epochs on which the flow's cells speak, how much longer its packets
	// took than all packets did: Σ, and Σ times the delay of all. And the
	// number of packets in the other epochs.
	over, slope, untold float64

	spread
}

// epochSums holds, epoch by epoch, the groups of one flow that last one epoch.
type epochSums [mostCuts]epochSum

type epochSum struct {
	groups  float64
	excess  float64 // Σ delays
	packets float64 // Σ packets
	squares float64 // Σ delays²/packets
}

// within returns the variance of a packet's delay, from how the epoch's groups
// differ: which packets are in which group is chance.
func (e *epochSum) within() float64 {
	return max(e.squares-e.excess*e.excess/e.packets, 0) / (e.groups - 1)
}

// add adds a group that has packets.
func (t *tally) add(g *group, weight, reference float64, sums *epochSums) {
	n := float64(g.count)
	x := g.sum - n*reference
	t.sum += weight * x
	t.count += weight * n
	t.groups++
	t.packets += n
	t.stands += weight * weight * n
	epoch, ok := g.one()
	if !ok {
		return
	}
	e := &sums[epoch]
	e.groups++
	e.excess += x
	e.packets += n
	e.squares += x * x / n
}

// A spread is how delays vary, within epochs and from one epoch to the next.
// Within an epoch, packets are in groups by chance. But all groups of an epoch
// may have been slow.
type spread struct {
	weight, within          float64 // Σ of epochs of two groups or more
	epochs, first, second   float64 // Σ weight × mean^k, k = 0, 1, 2
	uncertain, uncertainOwn float64 // Σ weight/packets, Σ weight²/packets: what within adds to these
}

// addSpread adds epochs, each weighted by how much its groups stand for.
func (s *spread) addSpread(sums []epochSum, v *view) {
	for k := range sums {
		e := &sums[k]
		if e.packets == 0 {
			continue
		}
		w := v.stands[k]
		if e.groups >= 2 {
			s.weight += w
			s.within += w * e.within()
		}
		mean := e.excess / e.packets
		s.epochs += w
		s.first += w * mean
		s.second += w * mean * mean
		s.uncertain += w / e.packets
		s.uncertainOwn += w * w / e.packets
	}
}

// variance returns the variance of a packet's delay, and the part of it within
// epochs.
func (s *spread) variance() (all, within float64) {
	if s.weight == 0 {
		return 0, 0
	}
	within = s.within / s.weight
	mean := s.first / s.epochs
	between := s.second/s.epochs - mean*mean
	between -= within * (s.uncertain - s.uncertainOwn/s.epochs) / s.epochs
	return within + max(between, 0), within
}

// An ownTally is the tally of a flow that was asked for.
type ownTally struct {
	tally
	squares, fourth float64 // Σ z and Σ z², z = (delays less those at the epoch's mean)²/packets
	degrees         float64 // Σ groups less 1
	large           float64 // groups that may have wrapped
	reached         float64 // packets that groups would have if none crossed a cut
	shade
}

// addFourth adds how much the squares behind the variance within epochs vary
// themselves.
func (t *ownTally) addFourth(cells [][]group, covered []uint64, reference float64, sums *epochSums) {
	for j := range cells {
		for i := range cells[j] {
			g := &cells[j][i]
			epoch, ok := g.one()
			if !ok || covered[j] == 0 || g.count == 0 || sums[epoch].groups < 2 {
				continue
			}
			e := &sums[epoch]
			n := float64(g.count)
			x := g.sum - n*(reference+e.excess/e.packets)
			z := x * x / n * e.groups / (e.groups - 1)
			t.squares += z
			t.fourth += z * z
			t.degrees += 1 - 1/e.groups
		}
	}
}

// freedom returns Satterthwaite's degrees of freedom of the variance within
// epochs.
func (t *ownTally) freedom() float64 {
	if t.degrees < 1 || t.squares == 0 {
		return 0
	}
	// The mean of n squares with degrees of freedom n in all.
	n := t.degrees
	average := t.squares / n
	variance := max(t.fourth/n-average*average, 0) / n
	if variance == 0 {
		return n
	}
	return min(2*average*average/variance, n)
}
