package colate

import (
	"cmp"
	"math"
	"slices"

	"github.com/hoplag/hoplag/estimate/joint"
)

// A sampling pairs the sampled packets of some flows at both points, epoch by
// epoch, and those of a pool of other flows, which are read with them.
type sampling struct {
	config *Config
	least  float64       // packets of a flow that is followed
	flows  []flowSamples // by key
	open   []passing     // that the other point has not seen yet
	limit  uint32        // of the last pair of epochs
	delay  int64         // within which packets come, if that is longer than a period
	gone   float64       // packets at the first point less those at the second, in epochs that count
	buffer []sample
	pool   pool
}

// A passing is a sampled packet at one of the points.
type passing struct {
	sample
	down   bool
	live   bool // in an epoch that counts
	pooled bool // by all epochs since
}

// poolBlocks is the number of blocks of samples that are pooled: the first of
// the flows' blocks, so that a query of one flow reads no other.
const poolBlocks = 16

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
		*f = flowSamples{key: s.config.key(r.Flow), sampled: sampled{unit: s.config.unit(), matched: f.matched[:0]}}
		n++
	}
	s.flows = s.flows[:n]
	slices.SortFunc(s.flows, func(a, b flowSamples) int { return cmp.Compare(a.key, b.key) })
	s.limit, s.open, s.pool, s.gone = math.MaxUint32, s.open[:0], pool{flow: s.pool.flow[:0]}, 0
	s.pool.begin()
}

func (s *sampling) find(key uint32) *flowSamples {
	at, ok := slices.BinarySearchFunc(s.flows, key, func(f flowSamples, key uint32) int { return cmp.Compare(f.key, key) })
	if !ok {
		return nil
	}
	return &s.flows[at]
}

// pools reports whether a block is pooled, whose samples then are.
func (s *sampling) pools(block, blocks int) bool {
	if len(s.flows) == 0 {
		return false
	}
	from := sampleBlock(s.flows[0].key, blocks)
	to := from + min(len(s.flows), poolBlocks)
	s.pool.within(from, to, blocks)
	return block >= from && block < to
}

// put adds a block of samples, or those of the flows.
func (s *sampling) put(samples []sample, pooled, down, live bool) {
	for _, x := range samples {
		if pooled || s.find(x.flow) != nil {
			s.open = append(s.open, passing{x, down, live, pooled})
		}
	}
}

// add adds the samples of a pair of epochs.
func (s *sampling) add(up, down *Recorder, epoch span) {
	for i, r := range []*Recorder{up, down} {
		blocks := sampleBlocks(len(r.samples))
		for k, x := range r.samples {
			s.put(r.samples[k:k+1], s.pools(sampleBlock(x.flow, blocks), blocks), i == 1, true)
		}
	}
	s.match(epoch, min(up.limit, down.limit), up.packets, down.packets, true)
}

// read adds the samples of an epoch in a store. Of the second point, the times
// are corrected.
func (s *sampling) read(r *epochReader, e *foundEntry, h *epochHead, down, live, corrected bool) error {
	last, blocks := -1, h.samples.blocks
	for i := range s.flows {
		block := sampleBlock(s.flows[i].key, blocks)
		if block == last || blocks == 0 {
			continue
		}
		last = block
		at := h.config.blocks() + block
		data, err := r.read(&e.entry, h.offsets[at], h.offsets[at+1])
		if err != nil {
			return err
		}
		if s.buffer, err = h.samples.read(s.buffer[:0], data, block); err != nil {
			return err
		}
		for k := range s.buffer {
			if corrected {
				s.buffer[k].at = e.reading.NearTime(s.buffer[k].at)
			}
		}
		s.put(s.buffer, s.pools(block, blocks), down, live)
	}
	return nil
}

// match pairs what both points have after an epoch, in which they sampled packets with
// tags below a limit, and counted so many. A packet that the second point has not seen within
// a period, or the delay that it may take, is lost, unless it has none in that epoch.
func (s *sampling) match(epoch span, limit uint32, up, down uint64, counts bool) {
	if counts && down > 0 {
		s.gone += float64(up) - float64(down)
	}
	period, least := max(epoch.end-epoch.start, s.delay), min(s.limit, limit)
	weight := math.Ldexp(1, 32) / float64(max(least, 1))
	slices.SortFunc(s.open, func(a, b passing) int { return compareSamples(a.sample, b.sample) })
	kept, f := s.open[:0], (*flowSamples)(nil)
	for k, next := 0, 0; k < len(s.open); k = next {
		a := s.open[k]
		if k == 0 || a.flow != s.pool.last {
			s.pool.endFlow(a.flow)
			f = s.find(a.flow)
		}
		for next = k + 1; next < len(s.open) && s.open[next].flow == a.flow && s.open[next].tag == a.tag; next++ {
		}
		a.pooled = a.pooled && s.pool.has(a.flow)
		a.live = a.live && (down > 0 || a.at < epoch.start)
		switch same := s.open[k:next]; {
		case a.tag >= least:
		case len(same) == 2 && a.down != same[1].down && same[1].at-a.at < period:
			pooled, b := a.pooled && same[1].pooled, same[1]
			if a.down {
				a, b = b, a // clocks apart
			}
			if pooled && b.live {
				s.pool.add(float64(b.at - a.at))
			}
			if f != nil && b.live {
				f.add(a, float64(b.at-a.at), weight, b.at-a.at > period/2)
			}
		case len(same) > 1: // copies, of which nobody knows which is which
		case a.at >= later64(epoch.end, -period):
			kept = append(kept, a)
		case !a.down && a.live:
			if a.pooled {
				s.pool.lost += weight
			}
			if f != nil {
				f.lost += weight
			}
		}
	}
	s.open, s.limit = kept, limit
	s.pool.end()
}

// A pool is what the samples of all flows in some blocks say. A flow's few samples may
// hold none of its rare slow packets, so that they cannot tell how far their mean may be
// off; those of all flows may, and the counters do.
type pool struct {
	from, to   uint64    // the flows' keys, in the epoch
	last       uint32    // flow
	flow       []float64 // its delays in the epoch
	n, sum, sq float64   // of all flows in the epoch

	squares, degrees float64 // Σ (delay - the flow's mean in the epoch)², and their degrees of freedom
	all, others      float64 // Σ (delay - the mean of all in the epoch)², and theirs
	lost             float64 // packets
}

func (p *pool) begin() { p.from, p.to, p.last = 0, 1<<32, 0 }

// within leaves out the flows that are not in these blocks: those of the two points
// hold different flows if their number differs.
func (p *pool) within(from, to, blocks int) {
	first := func(block int) uint64 { return (uint64(block)<<32 + uint64(blocks) - 1) / uint64(blocks) }
	p.from, p.to = max(p.from, first(from)), min(p.to, first(to))
}

func (p *pool) has(flow uint32) bool { return uint64(flow) >= p.from && uint64(flow) < p.to }

func (p *pool) add(delay float64) {
	p.flow = append(p.flow, delay)
	p.n, p.sum, p.sq = p.n+1, p.sum+delay, p.sq+delay*delay
}

// endFlow adds the packets of one flow, and begins the next.
func (p *pool) endFlow(next uint32) {
	mean := 0.0
	for _, x := range p.flow {
		mean += x / float64(len(p.flow))
	}
	for _, x := range p.flow {
		p.squares += (x - mean) * (x - mean)
	}
	p.degrees += max(float64(len(p.flow)-1), 0)
	p.flow, p.last = p.flow[:0], next
}

// end ends an epoch.
func (p *pool) end() {
	p.endFlow(0)
	if p.n > 1 {
		p.all += max(p.sq-p.sum*p.sum/p.n, 0)
		p.others += p.n - 1
	}
	p.n, p.sum, p.sq = 0, 0, 0
	p.begin()
}

// late reports whether samples that stand for so many packets are missing where only
// fewer are gone, by more than chance: they take longer than samples can be paired.
func late(lost, gone, weight float64) bool {
	gone = max(gone, 0)
	return lost > gone+4*math.Sqrt(gone*weight)
}
