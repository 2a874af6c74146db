package hashing_test

import (
	"encoding/binary"
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/hashing"
)

// falseAlarm is the probability at which each statistical test of this package would reject a perfect hash,
// were its seed drawn anew. The bounds below hold for any sample size, so that no tolerance is left to taste.
const falseAlarm = 1e-9

// heavy begins a test that does a lot in one goroutine: there the race detector, which runs with -short, has
// nothing to find, and takes ten times as long.
func heavy(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("a lot to do in one goroutine")
	}
}

// biasBound is how far from its probability the rate of an event in n trials may be, in any of cells such rates
// (Hoeffding's inequality).
func biasBound(trials, cells int) float64 {
	return math.Sqrt(math.Log(2*float64(cells)/falseAlarm) / (2 * float64(trials)))
}

// rateBound is the same for rare events of probability p (Bernstein's inequality).
func rateBound(p float64, trials int) float64 {
	x := math.Log(2/falseAlarm) / float64(trials)
	return math.Sqrt(2*p*(1-p)*x) + 2*x/3
}

// chiSquareRange is where each of tests chi-square statistics with df degrees of freedom must lie (Laurent and
// Massart 2000, Lemma 1). Too small a value betrays a hash as well as too large a one: a counter fills buckets
// evenly.
func chiSquareRange(df, tests int) (low, high float64) {
	x := math.Log(2 * float64(tests) / falseAlarm)
	spread := 2 * math.Sqrt(float64(df)*x)
	return float64(df) - spread, float64(df) + spread + 2*x
}

// chiSquare is the statistic of counts that are equally likely.
func chiSquare(counts []int) float64 {
	total := 0
	for _, c := range counts {
		total += c
	}
	expected := float64(total) / float64(len(counts))
	sum := 0.0
	for _, c := range counts {
		d := float64(c) - expected
		sum += d * d / expected
	}
	return sum
}

// worstAvalanche flips bits of random inputs of n bytes: all bits of short inputs, and every seventh of long
// ones, from a different one for each length. It looks at how often a bit of the hash flips with it or, for
// rotations above 0, the exclusive or of two bits that many places apart. It returns the rate farthest from one
// half, by its distance, and the number of rates.
func worstAvalanche(rng *rand.Rand, n, trials, rotations int, hash func(trial int, b []byte) uint64) (worst float64, cells int) {
	first, step := 0, 1
	if n > 17 {
		first, step = n%7, 7
	}
	flipped := make([][64]int, (8*n-first+step-1)/step*(rotations+1))
	b := make([]byte, n)
	for trial := range trials {
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		h := hash(trial, b)
		for i := range flipped {
			at, r := first+i/(rotations+1)*step, i%(rotations+1)
			b[at/8] ^= 1 << (at % 8)
			flips := h ^ hash(trial, b)
			b[at/8] ^= 1 << (at % 8)
			if r > 0 {
				flips ^= bits.RotateLeft64(flips, r)
			}
			for ; flips != 0; flips &= flips - 1 {
				flipped[i][bits.TrailingZeros64(flips)]++
			}
		}
	}
	for i := range flipped {
		for _, n := range flipped[i] {
			worst = max(worst, math.Abs(float64(n)/float64(trials)-0.5))
		}
	}
	return worst, 64 * len(flipped)
}

// countsEvenly hashes counters: in inputs of n bytes that are otherwise constant, two bytes count from 0 to
// 4095 in steps of stride, at each place, or every fifth of long inputs. It reports whether 256 bucket loads,
// by the derivation for rows and by the high half, have a likely chi-square, and the smallest and the largest.
func countsEvenly(n, stride int, hash func(b []byte) uint64) (likely bool, smallest, largest float64) {
	b, step, tests := randomBytes(rand.New(rand.NewPCG(4, uint64(n))), n), 1, 0
	if n > 40 {
		step = 5
	}
	smallest = math.Inf(1)
	for at := n % step; at+2 <= n; at += step {
		var rows, highs [256]int
		kept := binary.LittleEndian.Uint16(b[at:])
		for count := range 4096 {
			binary.LittleEndian.PutUint16(b[at:], uint16(count*stride))
			h := hash(b)
			rows[hashing.Row(h, 256)]++
			highs[h>>56]++
		}
		binary.LittleEndian.PutUint16(b[at:], kept)
		for _, counts := range [][]int{rows[:], highs[:]} {
			x := chiSquare(counts)
			smallest, largest = min(smallest, x), max(largest, x)
			tests++
		}
	}
	low, high := chiSquareRange(255, 2*71*max(tests, 1))
	return smallest >= low && largest <= high, smallest, largest
}

// fnv1a is FNV-1a, whose last byte reaches few bits: the negative control.
func fnv1a(b []byte) uint64 {
	h := uint64(0xcbf29ce484222325)
	for _, c := range b {
		h = (h ^ uint64(c)) * 0x100000001b3
	}
	return h
}

// foldOnce folds one product of the last word and a factor that depends on all others, which is well mixed but
// constant while the last word counts, as in a digest without a last step. The second negative control.
func foldOnce(b []byte) uint64 {
	n := len(b) - 8
	factor := uint64(hashing.Digest(1, b[:n]))
	hi, lo := bits.Mul64(factor|1, binary.LittleEndian.Uint64(b[n:])^0x6a09e667f3bcc909)
	return hi ^ lo
}

// Each bit of the input flips each bit of a digest, a flow and a mixed hash half the time.
func TestAvalanche(t *testing.T) {
	heavy(t)
	digest := func(trial int, b []byte) uint64 { return uint64(hashing.Digest(uint64(trial), b)) }
	flow := func(_ int, b []byte) uint64 { tuple := tupleOf(b); return uint64(tuple.Flow(7)) }
	mixed := func(_ int, b []byte) uint64 { return hashing.Mix(uint64(hashing.Digest(7, b)), 1) }
	fnv := func(_ int, b []byte) uint64 { return fnv1a(b) }
	// Why Mix wants a mixed hash: a difference of one bit is spread by a single product, whose ends have few
	// carries.
	word := func(_ int, b []byte) uint64 { return hashing.Mix(binary.LittleEndian.Uint64(b), 1) }
	rng := rand.New(rand.NewPCG(1, 1))
	check := func(name string, n, trials, rotations int, hash func(int, []byte) uint64, passes bool) {
		worst, cells := worstAvalanche(rng, n, trials, rotations, hash)
		if bound := biasBound(trials, 128*cells); (worst <= bound) != passes {
			t.Errorf("%s of %d bytes: a bit flips at a rate %.3f from one half, bound %.3f", name, n, worst, bound)
		}
	}
	for n := 1; n <= 72; n++ { // as long as what is hashed of a frame
		check("digest", n, 1024, 0, digest, true)
	}
	check("flow", 37, 4096, 1, flow, true)
	check("Mix", 8, 1<<13, 0, mixed, true)
	check("negative control: FNV-1a", 40, 1024, 0, fnv, false)
	check("negative control: FNV-1a", 37, 4096, 1, fnv, false)
	check("negative control: Mix of a word", 8, 1<<13, 0, word, false)
}

func TestDigestCounters(t *testing.T) {
	heavy(t)
	for n := 2; n <= 72; n++ {
		for _, stride := range []int{1, 16} {
			ok, smallest, largest := countsEvenly(n, stride, func(b []byte) uint64 { return uint64(hashing.Digest(7, b)) })
			if !ok {
				t.Errorf("length %d, stride %d: chi-square from %.0f to %.0f of 255 degrees of freedom", n, stride, smallest, largest)
			}
		}
	}
	for name, hash := range map[string]func([]byte) uint64{"FNV-1a": fnv1a, "one folded product": foldOnce} {
		if ok, smallest, largest := countsEvenly(40, 1, hash); ok {
			t.Errorf("%s passes: chi-square from %.0f to %.0f", name, smallest, largest)
		}
	}
}
