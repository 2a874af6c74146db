package soak

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// all makes the machines.
func all() (machines []machine, err error) {
	for _, m := range []struct {
		name string
		make func() (machine, error)
	}{
		{"lda control", newControl},
		{"rli", newReceiver},
		{"colate store", newStores},
		{"front door", newPoints},
		{"mplane", newStation},
		{"clocks", newTrackers},
	} {
		made, err := m.make()
		if err != nil {
			return machines, fmt.Errorf("soak: %s: %w", m.name, err)
		}
		made.name = m.name
		machines = append(machines, made)
	}
	return machines, nil
}

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
	for _, x := range [2]float64{d.Mean, d.StdDev} {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("the answer is %+v", d)
		}
	}
	return nil
}
