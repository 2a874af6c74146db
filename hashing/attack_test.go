package hashing_test

import (
	"encoding/binary"
	"testing"

	"github.com/hoplag/hoplag/hashing"
)

// craft returns n different packets of 40 bytes that have one digest under a
// known seed: their first word makes the first factor zero, so that the
// second word, which the factor swallows, is the attacker's to count in. The
// last word is one that packets of the same digest share.
func craft(seed uint64, last uint64, n int) [][]byte {
	packets := make([][]byte, n)
	key, _ := slowSplit(seed, root3+2*40)
	for i := range packets {
		b := counting(40)
		binary.LittleEndian.PutUint64(b, key)
		binary.LittleEndian.PutUint64(b[8:], uint64(i))
		binary.LittleEndian.PutUint64(b[32:], last)
		packets[i] = b
	}
	return packets
}

const (
	attackSeed    = 7
	attackPackets = 4000
	attackRows    = 256
)

// loads counts packets by row and those that are sampled at p.
func loads(packets [][]byte, p float64, hash func([]byte) uint64) (rows [attackRows]int, sampled int) {
	threshold := hashing.Threshold(p)
	for _, b := range packets {
		h := hash(b)
		rows[hashing.Row(h, attackRows)]++
		sampled += int(hashing.Sampled(h, threshold))
	}
	return rows, sampled
}

func TestCraftedPacketsFillOneCell(t *testing.T) {
	packets := craft(attackSeed, 0, attackPackets)
	known := func(b []byte) uint64 { return uint64(hashing.Digest(attackSeed, b)) }
	row := hashing.Row(known(packets[0]), attackRows)
	if rows, _ := loads(packets, 0.5, known); rows[row] != attackPackets {
		t.Errorf("against a known seed %d of %d packets land in one cell: the attack is none", rows[row], attackPackets)
	}

	// Under a key that their maker does not have, the same packets spread as a
	// random function spreads them.
	low, high := chiSquareRange(attackRows-1, 2)
	for name, hash := range map[string]func([]byte) uint64{
		"SipHash":                   hashing.SipHashFromKey([16]byte{0x5e, 0xc2, 0xe7}).Bytes,
		"Digest under another seed": func(b []byte) uint64 { return uint64(hashing.Digest(0x5ec2e7, b)) },
	} {
		rows, _ := loads(packets, 0.5, hash)
		if x := chiSquare(rows[:]); x < low || x > high {
			t.Errorf("%s: chi-square %.0f of %d degrees of freedom, range %.0f to %.0f", name, x, attackRows-1, low, high)
		}
	}
}

// An attacker who knows the hash can keep packets out of the sample, or send
// none but sampled ones.
func TestCraftedPacketsEvadeSampling(t *testing.T) {
	const p = 0.25
	known := func(b []byte) uint64 { return uint64(hashing.Digest(attackSeed, b)) }
	sip := hashing.SipHashFromKey([16]byte{0x5e, 0xc2, 0xe7}).Bytes
	for want := range uint64(2) {
		var last uint64
		for hashing.Sampled(known(craft(attackSeed, last, 1)[0]), hashing.Threshold(p)) != want {
			last++
		}
		packets := craft(attackSeed, last, attackPackets)
		if _, sampled := loads(packets, p, known); sampled != int(want)*attackPackets {
			t.Errorf("%d of %d packets are sampled, the attack wants %d: it is none", sampled, attackPackets, int(want)*attackPackets)
		}
		_, sampled := loads(packets, p, sip)
		rate, bound := float64(sampled)/attackPackets, rateBound(p, attackPackets)
		if rate < p-bound || rate > p+bound {
			t.Errorf("SipHash samples crafted packets at a rate of %.3f, want %.2f ± %.3f", rate, p, bound)
		}
	}
}
