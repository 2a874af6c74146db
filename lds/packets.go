package lds

import (
	"math"

	"github.com/hoplag/hoplag/hashing"
)

// Packets returns an upper bound of flow f's packets at this point: the count
// of the least loaded of its rows, which includes flows that share its cells
// (section 4.3, a count-min sketch). Where that row samples, it is by three deviations.
// It is 0 if the sketch proves that the flow had no packet.
func (s *Sketch) Packets(f hashing.Flow) uint64 {
	made(s.config.Rows > 0, "Sketch")
	least := math.Inf(1)
	for r, rate := range s.config.Rates[:s.config.Rows] {
		least = min(least, atMost(float64(s.rowPackets(r, f)), rate))
	}
	return uint64(math.Ceil(least))
}

// rowPackets returns how many packets flow f's cells hold in row r.
func (s *Sketch) rowPackets(r int, f hashing.Flow) (n uint64) {
	for offset := range s.config.Spread {
		n += uint64(s.cells[s.config.at(r, f, offset)].count())
	}
	return n
}

// lost returns the smallest loss that a row shows: how many fewer packets flow f's
// cells hold downstream than upstream, at most if the row samples.
func lost(up, down *Sketch, f hashing.Flow) uint64 {
	least := math.Inf(1)
	for r, rate := range up.config.Rates[:up.config.Rows] {
		sent, received := up.rowPackets(r, f), down.rowPackets(r, f)
		least = min(least, atMost(float64(sent-min(sent, received)), rate))
	}
	return uint64(math.Round(least))
}

// atMost returns an upper bound, at three deviations of the sampling (Wilson's), of the number
// of packets of which n were sampled at the given rate.
func atMost(n, rate float64) float64 {
	const deviations = 3.0
	noise := (1 - rate) * deviations * (deviations/2 + math.Sqrt(n+deviations*deviations/4))
	return (n + noise) / rate
}
