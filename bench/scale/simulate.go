package main

import (
	"cmp"
	"slices"

	"github.com/hoplag/hoplag/hashing"
)

// A simulated network has its collectors' load, as a share of what they can do,
// and the ages of reports in seconds, each with the number of such reports.
type simulated struct {
	load, greatest float64
	ages           []aged
}

type aged struct{ age, reports float64 }

// age returns a quantile of the ages.
func (s *simulated) age(q float64) (age float64) {
	slices.SortFunc(s.ages, func(a, b aged) int { return cmp.Compare(a.age, b.age) })
	left := 0.0
	for _, a := range s.ages {
		left += q * a.reports
	}
	for _, a := range s.ages {
		if age, left = a.age, left-a.reports; left <= 0 {
			break
		}
	}
	return age
}

const (
	cuts    = 1200 // of a tenth of a second
	cutEach = 0.1
	failAt  = 300 // cuts
	noticed = 400 // others take over, from where the reports ended
)

// A collector has pairs, and work that waits, in seconds of it.
type collector struct {
	pairs, backlog float64
	dead           bool
}

// simulate runs collectors, cut by cut. Pairs belong to partitions, and these to
// collectors, by hashing, so some have more than others; its cores share a
// collector's work. All points cut at the same time, so all records of a cut come
// at once, and all reports of a second are due at once. Some collectors may fail;
// their pairs go to the others, which read again what had come since.
func simulate(n network, c costs, collectors, fail int) *simulated {
	all := make([]collector, collectors)
	for p := range n.pairs {
		part := hashing.Mix(uint64(p), 1) % uint64(collectors*cores*partition)
		all[part%uint64(collectors)].pairs++
	}
	record, report := c.of("µs to take a record", n.rate)/1e6/cores, c.of("µs to report", n.rate)/1e6/cores
	each := recordsEach*record + report
	s := &simulated{load: float64(n.pairs) / float64(collectors) * each}
	for _, k := range all {
		s.greatest = max(s.greatest, k.pairs*each)
	}
	for cut := range cuts {
		if fail > 0 && cut == failAt {
			for i := range all[:fail] {
				all[i].dead = true
			}
		}
		if fail > 0 && cut == noticed {
			s.takeOver(all, fail, each)
		}
		for i := range all {
			k := &all[i]
			if k.dead {
				continue
			}
			k.backlog += k.pairs * record * recordsEach * cutEach
			if cut%10 == 0 {
				k.backlog += k.pairs * report
				for _, later := range []float64{0, 0.2, 0.4, 0.6, 0.8} { // reports come out one after another
					s.ages = append(s.ages, aged{max(0, k.backlog-later*k.pairs*report), k.pairs / 5})
				}
			}
			k.backlog = max(0, k.backlog-cutEach)
		}
	}
	return s
}

// takeOver gives the pairs of failed collectors to the others, with the work
// that was missed.
func (s *simulated) takeOver(all []collector, fail int, each float64) {
	const missed = (noticed - failAt) * cutEach
	moved := 0.0
	for i := range all[:fail] {
		moved, all[i].pairs = moved+all[i].pairs, 0
	}
	share := moved / float64(len(all)-fail)
	for i := range all[fail:] {
		k := &all[fail+i]
		k.pairs += share
		k.backlog += missed * share * each
		s.ages = append(s.ages, aged{missed + k.backlog, share * missed})
	}
}
