package lds

import (
	"math"
	"math/bits"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// nearCells is the number of cells on either side of a flow's cell that show
// what others may bring to it.
const nearCells = 16

// lengths is the number of classes of packet counts, by their binary length.
const lengths = 33

// A nearby describes the cells of one length next to a flow's own, in rows
// like the one being read, that hold fewer packets than its cell: their
// number, their packets, the squares of these, and the squares times the
// squared distance of their means from the flow's.
type nearby struct{ cells, packets, squares, apart float64 }

// neighbours are the cells next to a flow's own. Flows fall at random, so
// others bring to the flow's cells what its neighbours hold.
type neighbours struct {
	config  *Config
	counts  [MaxRows]float64          // of the flow's own cells
	alike   [MaxRows]int              // the first row of the same rate
	density [MaxRows][lengths]float64 // relative likelihood that a cell holds a number of packets
	by      [lengths]nearby

	// Of cells as in by that are usable: how many, and the squares of how far their
	// means are from the flow's.
	told, distances float64
}

// look examines the neighbours of flow f; mean is that of the row's cell.
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
				l.add(n, a, &down.cells[at], mean)
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
func (l *neighbours) add(n float64, up, down *cell, mean float64) {
	c, b := l.config, &l.by[bits.Len32(up.count())]
	b.cells++
	b.packets += n
	b.squares += n * n
	if n > 0 && compare(up, down, c.DigestBits) == usable {
		apart := float64(estimate.Difference(up.sum, down.sum, int(c.SumBits))) - n*mean
		b.apart += apart * apart
		l.distances += apart * apart / (n * n)
		l.told++
	}
}

// smooth turns numbers of cells into densities. No number of packets is
// impossible.
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

// likely returns how likely others are to bring n packets to a cell of row r,
// if n is uncertain by a variance.
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

// explains returns how likely it is that the flow has this many packets, from
// the counts of its cells and the sizes of flows.
func (l *neighbours) explains(packets float64) float64 {
	likely := math.Pow(packets, -1-sizeShape)
	for r, rate := range l.config.Rates[:l.config.Rows] {
		likely *= l.likely(r, l.counts[r]-rate*packets, rate*(1-rate)*packets)
	}
	return likely
}

// contamination asks the neighbours of the flow's cell in a row how far the
// mean of that cell would be off if others brought to it what they hold. It
// returns the fraction of the cell that belongs to others, and the error of
// the mean, both as root mean squares. They are weighted by how well what is
// left for the flow explains all of the flow's cells.
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
