package lds

import (
	"errors"
	"math"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// of returns a flow's packets with a given delay, the first of which are lost.
func of(f hashing.Flow, packets int, delay int64, lost int) []passed {
	stream := make([]passed, packets)
	for i := range stream {
		stream[i] = passed{flow: f, packet: hashing.Word(uint64(f), uint64(i)), sent: int64(i) * 1e6, delay: delay, lost: i < lost}
	}
	return stream
}

// TestKeyAimsAtCells: whoever holds the key that flows are hashed with finds, by some 17,500 trials a row, flows that share a cell
// with another in every row. Their packets are in its mean, for which the interval allows; and if half of them are lost, so are
// the cells that see every packet. Flows that anyone may name are in none of its cells.
func TestKeyAimsAtCells(t *testing.T) {
	const packets, usual, slow = 100, 50_000, 1_000_000
	key, c := hashing.SipHashFromKey([16]byte{7, 1}), DefaultConfig
	victim := hashing.Flow(key.Word(0))
	aimed, others, trials := make([]hashing.Flow, c.Rows), []hashing.Flow{1, 2, 3, 4}, uint64(0)
	for r := range aimed {
		for aimed[r] = victim; aimed[r] == victim || c.at(r, aimed[r], 0) != c.at(r, victim, 0); {
			trials++
			aimed[r] = hashing.Flow(key.Word(trials))
		}
	}
	if most := uint64(40 * c.Rows * c.Columns); trials > most {
		t.Errorf("%d trials", trials)
	}
	measure := func(flows []hashing.Flow, lost int) (Result, error) {
		stream := of(victim, packets, usual, 0)
		for _, f := range flows {
			stream = append(stream, of(f, packets, slow, lost)...)
		}
		up, down := fill(t, c, stream)
		return Estimate(up, down, victim)
	}
	want := (usual + slow) / 2.0 // of the rows that see every packet: each has one of the flows
	if r, err := measure(aimed, 0); err != nil || math.Abs(r.Mean-want) > 0.1*want {
		t.Errorf("aimed at: %v, %v", r.Mean, err)
	}
	r, err := measure(aimed, packets/2)
	if err == nil && r.Mean != usual || err != nil && !errors.Is(err, estimate.ErrNoSamples) {
		t.Errorf("aimed at, half of it lost: %+v, %v", r, err)
	}
	if r, err := measure(others, packets/2); err != nil || r.Mean != usual || r.Sent != packets {
		t.Errorf("not aimed at: %+v, %v", r, err)
	}
}
