package lds

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// TestKeyAimsAtCells: whoever holds the key that flows are hashed with finds, by
// some 17,500 trials a row, flows that share a cell with another in every row.
// Their packets are in its mean, which the interval tells; and if half of them
// are lost, the cells that see every packet are. Flows that anyone may name are in none of its cells.
func TestKeyAimsAtCells(t *testing.T) {
	const packets, usual, slow = 100, 50_000, 1_000_000
	key := hashing.SipHashFromKey([16]byte{7, 1})
	c := DefaultConfig
	victim := hashing.Flow(key.Word(0))
	aimed := make([]hashing.Flow, c.Rows)
	trials := uint64(0)
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
		up, down := mustNew(t, c), mustNew(t, c)
		rng := rand.New(rand.NewPCG(12, 10))
		pass := func(f hashing.Flow, delay int64, lost int) {
			for i := range packets {
				p, now := hashing.Packet(rng.Uint64()), rng.Int64N(1e9)
				up.Update(f, p, now)
				if i >= lost {
					down.Update(f, p, now+delay)
				}
			}
		}
		pass(victim, usual, 0)
		for _, f := range flows {
			pass(f, slow, lost)
		}
		return Estimate(up, down, victim)
	}
	want := (usual + slow) / 2.0 // of the rows that see every packet: each has one of the flows
	r, err := measure(aimed, 0)
	if err != nil || math.Abs(r.Mean-want) > 0.1*want {
		t.Errorf("aimed at: %v, %v", r.Mean, err)
	}
	r, err = measure(aimed, packets/2)
	if err == nil && r.Mean != usual || err != nil && !errors.Is(err, estimate.ErrNoSamples) {
		t.Errorf("aimed at, half of it lost: %+v, %v", r, err)
	}
	others := make([]hashing.Flow, c.Rows)
	for i := range others {
		others[i] = hashing.Flow(i + 1)
	}
	if r, err := measure(others, packets/2); err != nil || r.Mean != usual || r.Sent != packets {
		t.Errorf("not aimed at: %+v, %v", r, err)
	}
}
