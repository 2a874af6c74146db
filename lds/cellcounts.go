package lds

import (
	"math"

	"github.com/hoplag/hoplag/hashing"
)

// counts holds the number of packets in the cells of one point, of one
// interval or several.
type counts struct {
	*Config
	held []uint64
}

func (s *Sketch) counts() counts {
	held := make([]uint64, len(s.cells))
	for i := range s.cells {
		held[i] = uint64(s.cells[i].count())
	}
	return counts{&s.config, held}
}

// place returns how many packets flow f's cells hold in row r.
func (c counts) place(r int, f hashing.Flow) (n uint64) {
	for offset := range c.Spread {
		n += c.held[c.at(r, f, offset)]
	}
	return n
}

// absent reports whether flow f certainly had no packet: a row that sees every
// packet saw none of it.
func (c counts) absent(f hashing.Flow) bool {
	for r := range c.Rows {
		if c.Rates[r] == 1 && c.place(r, f) == 0 {
			return true
		}
	}
	return false
}

// most returns an upper bound of flow f's packets: the lowest count of the
// rows that see every packet.
func (c counts) most(f hashing.Flow) float64 {
	most := math.Inf(1)
	for r := range c.Rows {
		if c.Rates[r] == 1 {
			most = min(most, float64(c.place(r, f)))
		}
	}
	return most
}

// bound returns a bound of flow f's packets. It is not strict if no row sees
// every packet.
func (c counts) bound(f hashing.Flow) float64 {
	least := math.Inf(1)
	for r := range c.Rows {
		least = min(least, atMost(float64(c.place(r, f)), c.Rates[r]))
	}
	return least
}
