package lds

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// Where the clock of the point downstream is behind, packets come before they are sent. What is
// lost then looks like what is still to be sent: 50 of 600 intervals missed, and those of
// Decode one in four. With clocks that agree the same packets are answered.
func TestClockBehindIsRefused(t *testing.T) {
	const intervals, length = 30, int64(1e9)
	for _, behind := range []int64{0, 2e8, 1e9} {
		random, a := rand.New(rand.NewPCG(3, 4)), mustAccumulate(t, DefaultConfig)
		up, down := make([]*Sketch, intervals), make([]*Sketch, intervals)
		for k := range up {
			up[k], down[k] = mustNew(t, DefaultConfig), mustNew(t, DefaultConfig)
		}
		for now := length; now < (intervals-5)*length; now += int64(random.ExpFloat64() * 1e6) {
			f, p := hashing.Flow(random.Uint64N(20)), hashing.Packet(random.Uint64())
			came := now + int64(20e6*random.ExpFloat64()) - behind
			if up[now/length].Update(f, p, now); random.IntN(100) > 0 {
				down[came/length].Update(f, p, came)
			}
		}
		for k := range int64(intervals) {
			if err := a.Add(k*length, (k+1)*length, up[k], down[k]); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := a.Estimate(7); errors.Is(err, estimate.ErrClocks) != (behind > 0) {
			t.Errorf("%d ms behind: %v", behind/1e6, err)
		}
	}
}
