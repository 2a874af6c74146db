package main

import (
	"testing"

	"github.com/hoplag/hoplag/bench/speed"
)

// What all benchmarks here share; package speed says what it is.
type (
	loop      = speed.Loop
	floorCell = speed.FloorCell
)

const streamLength = speed.StreamLength

var (
	compare      = speed.Compare
	cellFloor    = speed.Floor
	packetStream = speed.Packets
	flowStream   = speed.Flows
)

// BenchmarkFloor compares the floor with itself: 1, except for the noise of the method.
func BenchmarkFloor(b *testing.B) {
	compare(b, streamLength, 0, cellFloor(packetStream()), cellFloor(packetStream()))
}
