package lds

import (
	"fmt"
	"math/bits"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/clock"
	"github.com/hoplag/hoplag/hashing"
)

// cell is s, n and d of section 2.3.4 in two words. Each packet adds to both. tally has the packet count in its
// low half and the digest, the sum of the packets' hashes, in its high half. (The paper's is their XOR. A sum
// detects a packet that came twice, and saves the hot path two instructions of six.)
type cell struct {
	sum   uint64
	tally uint64
}

func (c *cell) add(sum, tally uint64) {
	c.sum += sum
	c.tally += tally
}

// sample is add if chosen is below the threshold, without a branch.
func (c *cell) sample(sum, tally, chosen, threshold uint64) {
	mask := -((chosen - threshold) >> 63)
	c.add(sum&mask, tally&mask)
}

func (c *cell) count() uint32  { return uint32(c.tally) }
func (c *cell) digest() uint32 { return uint32(c.tally >> 32) }

// since returns the sum of the times of a cell's packets since an origin.
func (c *cell) since(origin uint64, bits uint8) float64 {
	return float64(estimate.SignExtend(c.sum-origin*uint64(c.count()), int(bits)))
}

func tally(p hashing.Packet) uint64 { return uint64(p)<<32 | 1 }

// A Sketch is one point's synopsis of an interval. Make one with New; it never grows. It is not safe for
// concurrent use: keep one sketch per goroutine and Merge them. Methods that only read may run concurrently
// while nobody writes. The zero value panics except in UnmarshalBinary.
//
// An [estimate.Rotation] makes two take turns, at the same time at both points. A packet that is then on its way falls into
// different intervals, and spoils its cells in both for [Estimate] and [Decode]; an [Accumulator] puts such intervals together.
type Sketch struct {
	cells      []cell          // row after row
	thresholds [MaxRows]uint64 // for hashing.Sampled
	config     Config
	quick      bool // four rows, one cell a flow in each, of which the last two see all packets or few
	sampling   bool // the last rows
	rare       bool // the last two of four rows sample so few that a branch is worth it
	stamp
}

// New returns an empty sketch. The error wraps [estimate.ErrConfig].
func New(c Config) (*Sketch, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return newSketch(c), nil
}

func newSketch(c Config) *Sketch {
	const few = 1.0 / 8 // of the packets, so that a branch is seldom taken
	s, rates := &Sketch{cells: make([]cell, c.Rows*c.Columns), config: c}, &c.Rates
	s.rare = c.Rows == 4 && rates[2] <= few && rates[3] <= rates[2]
	s.quick = c.Rows == 4 && c.Spread == 1 && rates[0] == 1 && rates[1] == 1 && (rates[2] == 1 && rates[3] == 1 || s.rare)
	for r := range c.Rows {
		s.thresholds[r] = hashing.Threshold(c.Rates[r])
		s.sampling = s.sampling || c.Rates[r] < 1
	}
	return s
}

// Config returns the configuration that the sketch was made with.
func (s *Sketch) Config() Config { return s.config }

// Update records that packet p of flow f passed at time t, in nanoseconds (Fig. 5): in row r, in cell
// (r, (h_r(f) + h'_r(x)) mod C) of section 2.3.4, if the row samples p.
func (s *Sketch) Update(f hashing.Flow, p hashing.Packet, t int64) {
	sum, tally := uint64(t), tally(p)
	cells, columns := s.cells, uint64(s.config.Columns)
	if s.quick {
		i, j := split(flowWord(f, 0), columns)
		cells[i].add(sum, tally)
		cells[columns+j].add(sum, tally)
		if s.sampling && sampling(p) >= s.thresholds[2] {
			return
		}
		k, l := split(flowWord(f, 1), columns)
		cells[2*columns+k].add(sum, tally)
		if s.sampling && sampling(p) >= s.thresholds[3] {
			return
		}
		cells[3*columns+l].add(sum, tally)
		return
	}
	if s.config.Rows == 4 {
		s.updateFour(f, p, sum, tally)
		return
	}
	s.updateGeneral(f, p, sum, tally)
}

func (s *Sketch) updateFour(f hashing.Flow, p hashing.Packet, sum, tally uint64) {
	chosen, offsets := sampling(p), uint64(0)
	if s.config.Spread > 1 {
		offsets = hashing.Mix(uint64(p), 0)
	}
	cells, columns, t := s.cells, uint64(s.config.Columns), &s.thresholds
	i, j := split(flowWord(f, 0), columns)
	i, j = s.along(i, offsets), s.along(j, offsets>>16)
	cells[i].sample(sum, tally, chosen, t[0])
	cells[columns+j].sample(sum, tally, chosen, t[1])
	if s.rare && chosen >= t[2] {
		return
	}
	k, l := split(flowWord(f, 1), columns)
	k, l = s.along(k, offsets>>32), s.along(l, offsets>>48)
	cells[2*columns+k].sample(sum, tally, chosen, t[2])
	cells[3*columns+l].sample(sum, tally, chosen, t[3])
}

// along returns a column of a flow's virtual LDA, which the low 16 bits of offset, a hash, choose.
func (s *Sketch) along(home, offset uint64) uint64 {
	columns := uint64(s.config.Columns)
	column := home + offset&0xffff*uint64(s.config.Spread)>>16
	return column - columns&-((columns-1-column)>>63)
}

// updateGeneral is Update for any Config. It does not branch on what is sampled.
func (s *Sketch) updateGeneral(f hashing.Flow, p hashing.Packet, sum, tally uint64) {
	made(s.config.Rows > 0, "Sketch")
	chosen, columns, offsets := sampling(p), uint64(s.config.Columns), uint64(0)
	for r, threshold := range s.thresholds[:s.config.Rows&(2*MaxRows-1)] {
		if r&3 == 0 && s.config.Spread > 1 {
			offsets = hashing.Mix(uint64(p), uint64(r>>2))
		}
		at := uint64(r)*columns + s.along(home(r, f, columns), offsets)
		offsets >>= 16
		s.cells[at].sample(sum, tally, chosen, threshold)
	}
}

// sampling returns what each row compares with its threshold. It is the same for all rows, so a row samples a
// subset of what a row of a higher rate does.
func sampling(p hashing.Packet) uint64 { return hashing.Mix(uint64(p), MaxRows) >> 32 }

// home returns the first column of flow f's virtual LDA in row r (h_r(f)).
func home(r int, f hashing.Flow, columns uint64) uint64 {
	even, odd := split(flowWord(f, r>>1), columns)
	if r&1 == 0 {
		return even
	}
	return odd
}

// split takes two columns from one word: the first is the integer part of word/2^64 × columns, and the fraction gives the second.
func split(word, columns uint64) (first, second uint64) {
	first, rest := bits.Mul64(word, columns)
	second, _ = bits.Mul64(rest, columns)
	return first, second
}

// flowWord returns the flow's hash for a pair of rows. The digest is well mixed, so a multiplication is enough:
// flows that share a cell in one row are no more likely to share one in another. The multipliers are among
// those that G. Steele and S. Vigna found to be "computationally easy, spectrally good" (2021).
func flowWord(f hashing.Flow, pair int) uint64 {
	switch pair {
	case 0:
		return uint64(f)
	case 1:
		return uint64(f) * 0xd1342543de82ef95
	case 2:
		return uint64(f) * 0xaf251af3b0f025b5
	}
	return uint64(f) * 0xb564ef22ec7aece5
}

// at returns the index of a cell of flow f's virtual LDA in row r; offset is below Spread.
func (c *Config) at(r int, f hashing.Flow, offset int) int {
	return r*c.Columns + (int(home(r, f, uint64(c.Columns)))+offset)%c.Columns
}

// same reports whether a cell had the same packets at two points, as far as the digest can tell.
func same(up, down *cell, digestBits uint8) bool {
	return up.count() == down.count() && uint64(up.digest()^down.digest())&(1<<digestBits-1) == 0
}

// Merge adds what b saw to s, as if s had seen it all. b is another shard of the same point, or one of several
// through which the traffic enters or leaves, or another interval, if it is merged at both points; s then has
// the lower of the numbers. If the Configs differ, the error wraps [estimate.ErrMismatch] and s is unchanged.
func (s *Sketch) Merge(b *Sketch) error {
	if err := match(s, b, false); err != nil {
		return err
	}
	s.join(b.stamp)
	for i, c := range b.cells {
		s.cells[i].add(c.sum, c.tally)
	}
	return nil
}

// Reset empties the sketch for another interval.
func (s *Sketch) Reset() {
	clear(s.cells)
	s.stamp = stamp{}
}

// match returns an error if the Configs of two sketches differ, or their intervals, if they have to be the same.
func match(up, down *Sketch, interval bool) error {
	if made(up != nil && down != nil && up.config.Rows > 0 && down.config.Rows > 0, "Sketch"); up.config != down.config {
		return mismatch(up.config, down.config)
	} else if interval {
		return up.stamp.match(down.stamp)
	}
	return nil
}

func mismatch[config Config | TableConfig](a, b config) error {
	return fmt.Errorf("lds: %w: %+v and %+v", estimate.ErrMismatch, a, b)
}

// Correct corrects the far point's sketch as if its clock had agreed with the near point's, up to the reading's
// own intervals. The reading must be of the middle of the interval.
func (s *Sketch) Correct(reading clock.Reading) {
	for i := range s.cells {
		if c := &s.cells[i]; c.count() > 0 {
			c.sum = reading.NearSum(c.sum, uint64(c.count()), int(s.config.SumBits))
		}
	}
}
