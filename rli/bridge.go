package rli

import (
	"math"
	"math/bits"
)

// Between two packets of a busy period whose waiting times are known, the
// waiting time goes up and down at random, and is never below nothing, or the
// period would be over: it is a Brownian bridge that stays positive, a Bessel
// bridge of dimension 3. At the part u of its length T, from a to b,
//
//	m = (1−u)·a + u·b
//	v = u(1−u)·σ²T
//	E[w²] = m² + v + 2vx/(eˣ−1),  x = 2ab/σ²T
//
// and the square of its mean is m² + v·(2+c)·x/(eˣ−1), where c = 8/π−2 where
// m = 0 and next to nothing where m² is many times v; c = (8/π−2)·3v/(m²+3v) is
// within 1 % of the exact mean. So the course bends from the straight line the
// more, the nearer it is to nothing.
//
// How high the bridge from nothing to nothing is, √(8/π·u(1−u)T)·σ, is learned
// from references between the beginning of a period and its end, in proportion to
// √(T·u(1−u)), by doublings of the time since and the time left: arrivals that
// come in bursts bring more variance on a larger scale, and packets are whole. A
// bridge ends with a packet, not with nothing, so one of mean size is added to
// the time left. Cells with few samples are completed by the coarser ones around
// them.
type spread struct {
	levels  [len(widths)][octaves * octaves]cell
	expects [octaves * octaves]float64
	size    float64 // mean ns that packets take
	lessons int
	next    int // lessons after which expects is worked out anew
}

// widths are the levels at which a spread is learned, in octaves, from fine to
// coarse.
var widths = [...]int{1, 2, 4, 8, octaves}

const (
	octaves    = 32
	spreadSize = (16*int64(len(widths)) + 8) * octaves * octaves

	// A cell is believed as much as the one around it when it has this many
	// samples.
	shrinkage = 4
	// With more samples than this the older ones fade.
	fading = 1024
)

type cell struct{ sum, samples float64 }

func (c *cell) add(x float64) {
	if c.samples >= fading {
		c.sum, c.samples = c.sum/2, c.samples/2
	}
	c.sum += x
	c.samples++
}

// octave is that of a time, not negative.
func octave(x float64) int {
	return min(bits.Len64(uint64(int64(x))), octaves-1)
}

// meet takes in the size of a packet, in ns.
func (s *spread) meet(size float64) {
	if s.size == 0 {
		s.size = size
	}
	s.size += (size - s.size) / 64
}

// scale is √(T·u(1−u)).
func (s *spread) scale(since, left float64) float64 {
	left += s.size
	return math.Sqrt(since * left / (since + left))
}

// learn takes in a packet that waited, since ns after a period's beginning and
// left ns before its end.
func (s *spread) learn(since, left, wait float64) {
	if since < 1 || left < 0 {
		return
	}
	i, k := octave(since), octave(left)
	x := wait / s.scale(since, left)
	for level, width := range widths {
		s.levels[level][i/width*octaves+k/width].add(x)
	}
	if s.lessons++; s.lessons >= s.next {
		s.workOut()
	}
}

// workOut completes each level's average by that of the coarser one.
func (s *spread) workOut() {
	s.next = s.lessons + 1 + min(s.lessons/16, fading)
	all := s.levels[len(widths)-1][0]
	for i := range octaves {
		for k := range octaves {
			mean := all.sum / max(all.samples, 1)
			for level := len(widths) - 2; level >= 0; level-- {
				width := widths[level]
				c := &s.levels[level][i/width*octaves+k/width]
				mean = (c.sum + shrinkage*mean) / (c.samples + shrinkage)
			}
			s.expects[i*octaves+k] = mean
		}
	}
}

// expect is the height of a bridge from nothing to nothing.
func (s *spread) expect(since, left float64) float64 {
	return s.expects[octave(since)*octaves+octave(left)] * s.scale(since, left)
}

// A bridge is the course of the waiting time between two points.
type bridge struct {
	from, to point
	length   float64
	product  float64 // 2ab
	spread   *spread
}

func (s *spread) bridge(from, to point) bridge {
	return bridge{from: from, to: to, length: to.place - from.place, product: 2 * from.wait * to.wait, spread: s}
}

// at is the mean waiting time at a place.
func (b *bridge) at(place float64) float64 {
	since, left := place-b.from.place, b.to.place-place
	if since <= 0 {
		return b.from.wait
	}
	if left <= 0 {
		return b.to.wait
	}
	m := (b.from.wait*left + b.to.wait*since) / b.length
	height := b.spread.expect(since, left)
	v := height * height * math.Pi / 8
	near := 1.0
	switch x := b.product * since * left / (b.length * b.length); {
	case x >= far*v: // or v is 0
		return m
	case x > 0:
		near = x / v / math.Expm1(x/v)
	}
	return math.Sqrt(m*m + near*v*(2+excess*3*v/(m*m+3*v)))
}

// A bridge of x over this is straight within a few parts of a million of v.
const far = 16

// excess is 8/π − 2.
const excess = 8/math.Pi - 2
