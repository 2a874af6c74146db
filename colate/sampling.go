package colate

import (
	"cmp"
	"math"
	"slices"

	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
)

// A sample is one packet, kept by itself.
type sample struct {
	flow uint32 // its key
	tag  uint32 // of its digest: below the recorder's limit, so both points sample alike
	at   int64
}

// key returns the bits by which samples of a flow are found. Flows may be small numbers.
func (c *Config) key(f hashing.Flow) uint32 {
	return uint32(hashing.Mix(uint64(f)^c.Identity, 1<<32) >> 32)
}

// limit returns the tag from which on packets are not sampled.
func (c *Config) limit() uint32 {
	if c.OneIn == 0 {
		return 0
	}
	return uint32(min(1<<32/uint64(c.OneIn), 1<<32-1))
}

// sample keeps a packet whose tag is below the limit, if need be after making room.
func (r *Recorder) sample(s sample) {
	if s.tag < r.limit && len(r.samples) >= r.config.Samples {
		r.makeRoom()
	}
	if s.tag < r.limit {
		r.samples = append(r.samples, s)
	}
}

// makeRoom forgets copies of a packet except for two, and then packets beyond half the limit.
func (r *Recorder) makeRoom() {
	slices.SortFunc(r.samples, compareSamples)
	kept := r.samples[:0]
	for _, s := range r.samples {
		if n := len(kept); n < 2 || kept[n-2].flow != s.flow || kept[n-2].tag != s.tag {
			kept = append(kept, s)
		}
	}
	r.samples = kept
	for len(r.samples) > r.config.Samples*3/4 {
		r.limitTo(r.limit / 2)
	}
}

func compareSamples(a, b sample) int {
	if a.flow == b.flow && a.tag == b.tag {
		return cmp.Compare(a.at, b.at)
	}
	return cmp.Compare(uint64(a.flow)<<32|uint64(a.tag), uint64(b.flow)<<32|uint64(b.tag))
}

func (r *Recorder) limitTo(limit uint32) {
	r.limit, r.rare = limit, uint64(limit)<<32
	r.samples = slices.DeleteFunc(r.samples, func(s sample) bool { return s.tag >= limit })
}

// sampleBlocks returns the number of blocks for a number of samples. A flow's samples are in one block, which its hash says.
func sampleBlocks(samples int) int { return (samples + blockCounters - 1) / blockCounters }

// firstKey returns the first key of a block.
func firstKey(block, blocks int) uint64 {
	return (uint64(block)<<32 + uint64(blocks) - 1) / uint64(blocks)
}

// A sampling pairs the sampled packets of some flows at both points, epoch by epoch, and those of other flows that are read with them.
type sampling struct {
	config Config
	least  float64       // packets of a flow that is followed
	flows  []flowSamples // by key
	others flowSamples   // of other flows, if few are followed
	open   []passing     // that the other point has not seen yet
	limit  uint32        // of the last pair of epochs
	lone   bool          // the first point had nothing then
	lowest uint32        // of all: packets with lower tags are a fair sample
	delay  int64         // within which packets come, if that is longer than ahead periods
	strict bool          // none takes longer: what the second point alone has seen are copies
	waited int64         // for those that are lost
	due    int64         // what was sent before this should have come
	begun  int64         // when the first pair began
	buffer []sample
	blocks []int // of an epoch
	pooled pool  // once it is asked for
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
	s.flows, s.others = s.flows[:n], flowSamples{lowest: math.MaxUint32, kept: s.others.kept[:0]}
	slices.SortFunc(s.flows, func(a, b flowSamples) int { return cmp.Compare(a.key, b.key) })
	s.limit, s.lowest, s.lone, s.pooled = math.MaxUint32, math.MaxUint32, false, pool{}
	s.open = s.open[:0]
}

// find returns what a packet's samples are added to.
func (s *sampling) find(key uint32) *flowSamples {
	at, ok := slices.BinarySearchFunc(s.flows, key, func(f flowSamples, key uint32) int { return cmp.Compare(f.key, key) })
	if !ok {
		return &s.others
	}
	return &s.flows[at]
}

// enough is the least number of flows asked for whose own samples tell what they may hide. If there are fewer, others' samples tell
// it, too: those in so many blocks of an epoch.
const enough, aside = 100, 4

// put adds those of an epoch's samples that are of the flows. If these are few, others tell what they may hide.
func (s *sampling) put(samples []sample, down, live bool) {
	for _, x := range samples {
		if len(s.flows) < enough || s.find(x.flow) != &s.others {
			s.open = append(s.open, passing{x, down, live})
		}
	}
}

// read adds the samples of an epoch in a store, and corrects the times of the second point.
func (s *sampling) read(r *epochReader, e *foundEntry, h *epochHead, down, live, corrected bool) (err error) {
	blocks := sampleBlocks(h.sampled)
	s.blocks = s.blocks[:0]
	for i := 0; i < min(aside, blocks) && len(s.flows) < enough; i++ { // the first: of the same flows at both points, and together
		s.blocks = append(s.blocks, i)
	}
	for i := 0; i < len(s.flows) && blocks > 0; i++ {
		s.blocks = append(s.blocks, int(uint64(s.flows[i].key)*uint64(blocks)>>32))
	}
	slices.Sort(s.blocks)
	for _, block := range slices.Compact(s.blocks) {
		if s.buffer, err = h.readSamples(s.buffer[:0], block, r); err != nil {
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
// packet that the second has not seen within ahead periods, or the delay that it may take, is lost. If the first
// lacks the epoch, nobody knows when those were sent that come then, or cross its end.
func (s *sampling) match(epoch span, limit uint32, lone bool) {
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
			a.live = a.live && !(a.down && a.at >= epoch.start && (lone || s.lone))
			kept = append(kept, a)
		case !a.down && a.live:
			f.add(a, math.Inf(1))
		case a.live && !s.strict:
			f.add(a, math.Inf(-1))
		}
	}
	s.open, s.limit, s.lone = kept, limit, lone
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
