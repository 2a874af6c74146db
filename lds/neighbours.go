package lds

import (
	"math"
	"math/bits"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// nearCells is the number of cells on either side of a flow's cell that tell
// what others may bring to it.
const nearCells = 16

// lengths is the number of classes of packet counts, by their binary length.
const lengths = 33

// A nearby is the cells of one length next to a flow's own, in the rows that are
// like the one that is read, as far as they hold fewer packets than its cell: how
// many they are, their packets and the squares of these, and the squares times
// those of how far their means are from the flow's.
type nearby struct{ cells, packets, squares, apart float64 }

// neighbours are the cells next to a flow's own. Flows fall at random, so others
// bring to the flow's cells what its neighbours hold.
type neighbours struct {
	config  *Config
	counts  [MaxRows]float64          // of the flow's own cells
	alike   [MaxRows]int              // the first row of the same rate
	density [MaxRows][lengths]float64 // how likely a cell is to hold a number of packets, up to a factor
	by      [lengths]nearby
}

// look looks at those of flow f, of which a row's cell has the mean.
func (l *neighbours) look(up, down *Sketch, f hashing.Flow, row int, mean float64) {
	c := &up.config
	l.config = c
	near := min(nearCells, (c.Columns-1)/2)
	for r := range c.Rows {
		for l.alike[r] < r && c.Rates[l.alike[r]] != c.Rates[r] {
			l.alike[r]++
		}
		l.counts[r] = float64(up.cells[up.at(r, f, 0)].count())
	}
	for r := range c.Rows {
		column, like := int(home(r, f, uint64(c.Columns))), l.alike[r]
		for k := column - near; k <= column+near; k++ {
			at := r*c.Columns + k
			switch {
			case k == column:
				continue
			case k < 0:
				at += c.Columns
			case k >= c.Columns:
				at -= c.Columns
			}
			a := &up.cells[at]
			l.density[like][bits.Len32(a.count())]++
			if n := float64(a.count()); like == l.alike[row] && n < l.counts[row] {
				l.by[bits.Len32(a.count())].add(n, a, &down.cells[at], mean, c)
			}
		}
	}
	for r := range c.Rows {
		if l.alike[r] == r {
			smooth(&l.density[r])
		}
	}
}

// add adds a cell of n packets.
func (b *nearby) add(n float64, up, down *cell, mean float64, c *Config) {
	b.cells++
	b.packets += n
	b.squares += n * n
	if n > 0 && compare(up, down, c.DigestBits) == usable {
		apart := float64(estimate.Difference(up.sum, down.sum, int(c.SumBits))) - n*mean
		b.apart += apart * apart
	}
}

// smooth makes densities of numbers of cells. No number of packets is impossible.
func smooth(cells *[lengths]float64) {
	const seldom = 0.05
	before, width := cells[0], 1.0
	for b, n := range cells {
		after := cells[min(b+1, lengths-1)]
		cells[b] = ((before+2*n+after)/4 + seldom) / width
		before = n
		if b > 0 {
			width *= 2
		}
	}
}

// likely is how likely others are to bring n packets to a cell of row r, if n is
// uncertain by a variance.
func (l *neighbours) likely(r int, n, variance float64) float64 {
	miss := 1.0
	if n < 0 {
		if variance == 0 {
			return 0
		}
		miss = math.Exp(-n * n / (2 * variance))
	}
	if n*n < variance {
		n = math.Sqrt(variance)
	}
	return miss * l.density[l.alike[r]][bits.Len32(uint32(n+0.5))]
}

// explains is how likely it is that the flow has so many packets, by the counts of
// its cells and the sizes of flows.
func (l *neighbours) explains(packets float64) float64 {
	likely := math.Pow(packets, -1-sizeShape)
	for r, rate := range l.config.Rates[:l.config.Rows] {
		likely *= l.likely(r, l.counts[r]-rate*packets, rate*(1-rate)*packets)
	}
	return likely
}

// contamination asks of the neighbours of the flow's cell in a row what the mean
// of that cell would be off by if others brought to it what they hold. It returns
// which part of the cell is others', and how far the mean is off by it, both as
// root mean squares, weighted by how well what is left for the flow explains all
// of the flow's cells.
func (l *neighbours) contamination(row int) (part, off float64) {
	n, rate := l.counts[row], l.config.Rates[row]
	var weights, parts, squares float64
	for b := range l.by {
		near := &l.by[b]
		if near.cells == 0 {
			continue
		}
		weight := l.explains((n - near.packets/near.cells) / rate)
		weights += weight * near.cells
		parts += weight * near.squares
		squares += weight * near.apart
	}
	if weights == 0 {
		return 1, 0
	}
	return math.Sqrt(parts/weights) / n, math.Sqrt(squares/weights) / n
}
