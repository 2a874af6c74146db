package lds

import (
	"math"

	"github.com/hoplag/hoplag/hashing"
)

// Packets returns how many packets flow f had at most at this point: the
// count of the least loaded of its rows, which counts those that share its
// cells too (section 4.3, a count-min sketch). In rows that sample, the count
// is inverted by the rate and no longer a strict bound. It is 0 if the sketch
// proves that the flow had none.
func (s *Sketch) Packets(f hashing.Flow) uint64 {
	row, packets := s.quietest(f)
	return s.invert(row, packets)
}

// Bytes returns how many bytes flow f had at most, from the row that
// [Sketch.Packets] is from. Without Config.Bytes the error wraps
// [estimate.ErrConfig].
func (s *Sketch) Bytes(f hashing.Flow) (uint64, error) {
	row, _ := s.quietest(f)
	bytes, err := s.rowBytes(row, f)
	return s.invert(row, bytes), err
}

// MeanPacketSize returns the mean length, in bytes, of the packets that
// [Sketch.Packets] counts: flow f's, and those of flows that share its cells.
// The error wraps [estimate.ErrConfig] without Config.Bytes, and
// [estimate.ErrNoSamples] without packets.
func (s *Sketch) MeanPacketSize(f hashing.Flow) (float64, error) {
	row, packets := s.quietest(f)
	bytes, err := s.rowBytes(row, f)
	if err != nil {
		return 0, err
	}
	if packets == 0 {
		return 0, errNoSamples
	}
	return float64(bytes) / float64(packets), nil
}

// quietest is the row in which flow f's cells stand for the fewest packets,
// and how many they hold.
func (s *Sketch) quietest(f hashing.Flow) (row int, packets uint64) {
	least := math.Inf(1)
	for r := range s.config.Rows {
		n := s.rowPackets(r, f)
		if bound := atMost(float64(n), s.config.Rates[r]); bound < least {
			row, packets, least = r, n, bound
		}
	}
	return row, packets
}

// rowPackets is how many packets flow f's cells hold in row r.
func (s *Sketch) rowPackets(r int, f hashing.Flow) (n uint64) {
	for offset := range s.config.Spread {
		n += uint64(s.cells[s.at(r, f, offset)].count())
	}
	return n
}

// rowBytes is how many bytes flow f's cells hold in row r.
func (s *Sketch) rowBytes(r int, f hashing.Flow) (n uint64, err error) {
	if s.bytes == nil {
		return 0, noBytes()
	}
	for offset := range s.config.Spread {
		n += s.bytes[s.at(r, f, offset)]
	}
	return n, nil
}

// absent reports that flow f had no packet, because a row that sees every
// packet saw none of it.
func (s *Sketch) absent(f hashing.Flow) bool {
	for r := range s.config.Rows {
		if s.config.Rates[r] == 1 && s.rowPackets(r, f) == 0 {
			return true
		}
	}
	return false
}

// invert is how many the n sampled by row r stand for.
func (s *Sketch) invert(r int, n uint64) uint64 {
	return uint64(math.Round(float64(n) / s.config.Rates[r]))
}

// lost is the least, over the rows that see every packet, of how many packets
// fewer flow f's cells hold downstream than upstream. Where all rows sample, it
// is the least of the bounds by what they sampled.
func lost(up, down *Sketch, f hashing.Flow) uint64 {
	all, sampled := math.Inf(1), math.Inf(1)
	for r := range up.config.Rows {
		sent, received := up.rowPackets(r, f), down.rowPackets(r, f)
		missing := float64(sent - min(sent, received))
		if rate := up.config.Rates[r]; rate == 1 {
			all = min(all, missing)
		} else {
			sampled = min(sampled, atMost(missing, rate))
		}
	}
	if !math.IsInf(all, 1) {
		return uint64(all)
	}
	return uint64(math.Round(sampled))
}

// atMost is an upper bound, at three deviations of the sampling (Wilson's), of
// how many there were of which n were sampled at the given rate. A row with a
// low rate must not be taken for the least loaded because it happened to
// sample little.
func atMost(n, rate float64) float64 {
	const deviations = 3.0
	noise := (1 - rate) * deviations * (deviations/2 + math.Sqrt(n+deviations*deviations/4))
	return (n + noise) / rate
}
