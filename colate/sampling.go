package colate

import (
	"cmp"
	"math"
	"slices"

	"github.com/hoplag/hoplag/estimate/joint"
)

// A sampling pairs the sampled packets of some flows at both points, epoch by
// epoch, and those of other flows that are read with them.
type sampling struct {
	config *Config
	least  float64       // packets of a flow that is followed
	flows  []flowSamples // by key
	open   []passing     // that the other point has not seen yet
	limit  uint32        // of the last pair of epochs
	lowest uint32        // of all: packets with lower tags are a fair sample
	delay  int64         // within which packets come, if that is longer than ahead periods
	waited int64         // for those that are lost
	due    int64         // what was sent before this should have come
	begun  int64         // when the first pair began
	buffer []sample
	pooled pool // once it is asked for
}

// A passing is a sampled packet at one of the points.
type passing struct {
	sample
	down bool
	live bool // in an epoch that counts
}

// aim forgets the samples, and follows other flows.
func (s *sampling) aim(records []joint.FlowRecord) {
	n := 0
	for _, r := range records {
		if r.Packets < s.least {
			continue
		}
		if n == len(s.flows) {
			s.flows = append(s.flows, flowSamples{})
		}
		f := &s.flows[n]
		*f = flowSamples{s.config.key(r.Flow), math.MaxUint32, f.kept[:0]}
		n++
	}
	s.flows = s.flows[:n]
	slices.SortFunc(s.flows, func(a, b flowSamples) int { return cmp.Compare(a.key, b.key) })
	s.limit, s.lowest, s.pooled = math.MaxUint32, math.MaxUint32, pool{}
	s.open = s.open[:0]
}

func (s *sampling) find(key uint32) *flowSamples {
	at, ok := slices.BinarySearchFunc(s.flows, key, func(f flowSamples, key uint32) int { return cmp.Compare(f.key, key) })
	if !ok {
		return nil
	}
	return &s.flows[at]
}

// put adds those of an epoch's samples that are of the flows.
func (s *sampling) put(samples []sample, down, live bool) {
	for _, x := range samples {
		if s.find(x.flow) != nil {
			s.open = append(s.open, passing{x, down, live})
		}
	}
}

// add adds the samples of a pair of epochs.
func (s *sampling) add(up, down *Recorder, epoch span) {
	for i, r := range []*Recorder{up, down} {
		s.put(r.samples, i == 1, true)
	}
	s.match(epoch, min(up.limit, down.limit))
}

// read adds the samples of an epoch in a store. Of the second point, the times are corrected.
func (s *sampling) read(r *epochReader, e *foundEntry, h *epochHead, down, live, corrected bool) (err error) {
	last, blocks := -1, sampleBlocks(h.sampled)
	for i := range s.flows {
		block := sampleBlock(s.flows[i].key, blocks)
		if block == last || blocks == 0 {
			continue
		}
		last = block
		if s.buffer, err = h.readSamples(s.buffer[:0], block, &r.blockReader); err != nil {
			return err
		}
		for k := range s.buffer {
			if corrected {
				s.buffer[k].at = e.reading.NearTime(s.buffer[k].at)
			}
		}
		s.put(s.buffer, down, live)
	}
	return nil
}

// match pairs what both points have after an epoch, in which they sampled packets with tags below a limit. A
// packet that the second has not seen within ahead periods, or the delay that it may take, is lost.
func (s *sampling) match(epoch span, limit uint32) {
	period, least := epoch.end-epoch.start, min(s.limit, limit)
	patience := max(ahead*period, s.delay)
	s.waited = patience
	s.due = later64(epoch.end, -max(period, s.delay))
	if s.lowest == math.MaxUint32 {
		s.begun = epoch.start
	}
	s.lowest = min(s.lowest, least)
	slices.SortFunc(s.open, func(a, b passing) int { return compareSamples(a.sample, b.sample) })
	kept := s.open[:0]
	for k, next := 0, 0; k < len(s.open); k = next {
		a := s.open[k]
		f := s.find(a.flow)
		for next = k + 1; next < len(s.open) && s.open[next].flow == a.flow && s.open[next].tag == a.tag; next++ {
		}
		switch a, b, ok := pairOf(s.open[k:next]); {
		case a.tag >= least:
		case ok && max(b.at-a.at, a.at-b.at) < patience:
			if b.live {
				f.add(a, float64(b.at-a.at))
			}
		case next > k+1: // copies, of which nobody knows which is which
		case a.at >= later64(epoch.end, -patience):
			kept = append(kept, a)
		case !a.down && a.live:
			f.add(a, math.Inf(1))
		case a.live:
			f.add(a, math.Inf(-1))
		}
	}
	s.open, s.limit = kept, limit
}

// pairOf returns a packet at both points, given all with its tag in the order of time: one
// that was sent once, and came once or first, before its copies.
func pairOf(same []passing) (sent, came passing, ok bool) {
	sent, came = same[0], same[min(1, len(same)-1)]
	if sent.down { // clocks apart
		sent, came = came, sent
	}
	copies := slices.ContainsFunc(same[min(2, len(same)):], func(p passing) bool { return !p.down })
	return sent, came, !sent.down && came.down && !copies
}

// hidden returns the variance that a flow may have of which so many samples show nothing: its few
// samples may hold none of its rare slow packets, but the counters of all do.
func (c *common) hidden(samples float64) float64 {
	return hidden(c.variance(), c.scatter.kurtosis(), samples)
}

// hidden returns what so many samples may not show of a variance: all of it where they are three or fewer of the
// packets that make it, as the kurtosis tells.
func hidden(variance, kurtosis, samples float64) float64 {
	return variance * min(1, 3*kurtosis/max(samples, 1))
}
