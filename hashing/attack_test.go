package hashing_test

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/hoplag/hoplag/hashing"
)

// craft returns n different packets of 40 bytes that have one digest under a known seed: their first word makes
// the first factor zero, so that the attacker can count in the second word, which the factor swallows. The last
// word is one that packets of the same digest share.
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

// An attacker who knows the hash can fill one cell, keep packets out of the sample, or send nothing but sampled
// ones. Under a key that the attacker does not have, the same packets spread as a random function spreads them.
func TestCraftedPackets(t *testing.T) {
	const seed, packets, rows, p = 7, 4000, 256, 0.25
	threshold := hashing.Threshold(p)
	low, high := chiSquareRange(rows-1, 4)
	known := func(b []byte) uint64 { return uint64(hashing.Digest(seed, b)) }
	for want := range uint64(2) {
		var last uint64
		for hashing.Sampled(known(craft(seed, last, 1)[0]), threshold) != want {
			last++
		}
		crafted := craft(seed, last, packets)
		for name, hash := range map[string]func([]byte) uint64{
			"known":        known,
			"SipHash":      hashing.SipHashFromKey([16]byte{0x5e, 0xc2, 0xe7}).Bytes,
			"another seed": func(b []byte) uint64 { return uint64(hashing.Digest(0x5ec2e7, b)) },
		} {
			var loads [rows]int
			sampled := 0
			for _, b := range crafted {
				loads[hashing.Row(hash(b), rows)]++
				sampled += int(hashing.Sampled(hash(b), threshold))
			}
			if name == "known" {
				if most := slices.Max(loads[:]); most != packets || sampled != int(want)*packets {
					t.Errorf("of %d packets %d land in one cell and %d are sampled: the attack is none", packets, most, sampled)
				}
				continue
			}
			if x := chiSquare(loads[:]); x < low || x > high {
				t.Errorf("%s: chi-square %.0f of %d degrees of freedom, range %.0f to %.0f", name, x, rows-1, low, high)
			}
			if rate, bound := float64(sampled)/packets, rateBound(p, packets); rate < p-bound || rate > p+bound {
				t.Errorf("%s samples crafted packets at a rate of %.3f, want %.2f ± %.3f", name, rate, p, bound)
			}
		}
	}
}
