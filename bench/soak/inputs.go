package soak

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// damage changes some bytes, cuts some off or adds some.
func damage(random *rand.Rand, b []byte) []byte {
	b = bytes.Clone(b)
	for range random.IntN(8) {
		if len(b) > 0 {
			b[random.IntN(len(b))] = byte(random.Uint32())
		}
	}
	switch random.IntN(4) {
	case 0:
		b = b[:random.IntN(len(b)+1)]
	case 1:
		b = append(b, byte(random.Uint32()))
	}
	return b
}

// hostileTime returns, mostly, the present.
func hostileTime(random *rand.Rand, now int64) int64 {
	switch random.IntN(1000) {
	case 0:
		return math.MinInt64
	case 1:
		return math.MaxInt64
	case 2:
		return int64(random.Uint64())
	}
	return now
}

// hostilePacket returns, mostly, a new packet; sometimes one of a few again.
func hostilePacket(random *rand.Rand) hashing.Packet {
	if random.IntN(3) == 0 {
		return hashing.Word(1, uint64(random.IntN(3)))
	}
	return hashing.Packet(random.Uint64())
}

// finite reports which part of a delay is not a number.
func finite(d estimate.Delay) error {
	if sum := d.Mean + d.StdDev; math.IsNaN(sum) || math.IsInf(sum, 0) {
		return fmt.Errorf("the answer is %+v", d)
	}
	return nil
}
