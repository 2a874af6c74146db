package clock

import (
	"math"

	"github.com/hoplag/hoplag/estimate"
)

// Ahead returns how far the far clock is ahead at a time on the near clock.
func (r Reading) Ahead(at int64) float64 {
	return r.Offset + r.Drift*float64(at-r.Time)
}

// NearTime returns what the near clock says when the far clock says far. It is
// for stamps that travel, such as those of RLI's reference packets.
func (r Reading) NearTime(far int64) int64 {
	return int64(r.NearSum(uint64(far), 1, 64))
}

// NearSum is what the timestamps of a cell of the far point, which add up to
// sum modulo 2^bits, would add up to by the near clock, modulo 2^64. It is
// right for every packet, whenever in the interval it came; and so is all that
// a synopsis says of delays, once its far point's cells are corrected. The
// reading is to be of the middle of the interval: the packets' times may differ
// from it by 2^(bits-1) ns in total, which at 40 bits is nine minutes.
func (r Reading) NearSum(sum uint64, packets uint64, bits int) uint64 {
	whole := math.Floor(r.Offset)
	early := packets * uint64(r.Time+int64(whole)) // as if all had come at the reading's time
	later := float64(estimate.SignExtend(sum-early, bits))
	later = (later - float64(packets)*(r.Offset-whole)) / (1 + r.Drift)
	return packets*uint64(r.Time) + uint64(int64(math.Round(later)))
}
