package hoplag

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/rli"
)

// The attacks of SECURITY.md, by what the attacker knows.

// keysOf is what whoever knows a seed knows of its digests: the keys that the
// factors of their first product have added.
func keysOf(seed, constant uint64) (x, y uint64) {
	hi, lo := bits.Mul64(seed^0x6a09e667f3bcc909, constant) // but for a few seeds
	return hi ^ lo, hi
}

// crafted are different packets of 40 bytes that a known seed gives one digest:
// their first factor is zero.
func crafted(seed uint64, n int) [][]byte {
	x, _ := keysOf(seed, 0xbb67ae8584caa73b+2*40)
	packets := make([][]byte, n)
	for i := range packets {
		packets[i] = make([]byte, 40)
		binary.LittleEndian.PutUint64(packets[i], x)
		binary.LittleEndian.PutUint64(packets[i][8:], uint64(i))
	}
	return packets
}

// Whoever sees the traffic sends packets again behind the first point: their
// cells are not usable any more, and the others stay right.
func TestReplayedPackets(t *testing.T) {
	const packets, replayed = 200_000, 300
	up, down := must(lda.New(lda.DefaultConfig)), must(lda.New(lda.DefaultConfig))
	rng := rand.New(rand.NewPCG(12, 6))
	mean := 0.0
	for i := range packets {
		p, now, delay := hashing.Packet(rng.Uint64()), int64(i)*1000, 40_000+rng.Int64N(20_000)
		up.Update(p, now)
		down.Update(p, now+delay)
		mean += float64(delay) / packets
		if i%(packets/replayed) == 0 {
			down.Update(p, now+1e9)
		}
	}
	r, err := lda.Estimate(up, down)
	if err != nil || r.Extra < replayed || r.Extra > replayed+1 || !r.MeanInterval(0.9999).Contains(mean) ||
		math.Abs(r.StdDev-20_000/math.Sqrt(12)) > 800 {
		t.Errorf("%+v, %v, mean %v", r, err, mean)
	}
	// Of half as many packets as there are, the cells of the deepest bank are
	// left; of a hundred times as many, nothing, and nothing is said.
	flood := func(packets int) (lda.Result, error) {
		for i := range packets {
			down.Update(hashing.Packet(rng.Uint64()), int64(i))
		}
		return lda.Estimate(up, down)
	}
	if r, err := flood(packets / 2); err == nil && !r.MeanInterval(0.9999).Contains(mean) {
		t.Errorf("flooded: %+v, mean %v", r, mean)
	}
	if r, err := flood(100 * packets); !errors.Is(err, estimate.ErrNoSamples) {
		t.Errorf("flooded for good: %+v, %v", r, err)
	}
}

// Whoever knows the seed of Digest aims packets at one cell, and drops one of
// them: they are missing from the mean. The cell is overfull, which tells.
func TestSeedAimsAtOneCell(t *testing.T) {
	const seed, honest, slow = 77, 100_000, 5000
	sip := hashing.SipHashFromKey(secretKey)
	measure := func(digest func([]byte) hashing.Packet) lda.Result {
		up, down := must(lda.New(lda.DefaultConfig)), must(lda.New(lda.DefaultConfig))
		for i := range honest {
			p, now := digest(fmt.Appendf(nil, "honest packet %d", i)), int64(i)*1000
			up.Update(p, now)
			down.Update(p, now+50_000)
		}
		for i, b := range crafted(seed, slow) {
			up.Update(digest(b), int64(i)*1000)
			if i > 0 {
				down.Update(digest(b), int64(i)*1000+1_000_000)
			}
		}
		r, err := lda.EstimateRest(up, down)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := measure(func(b []byte) hashing.Packet { return hashing.Digest(seed, b) }); r.Mean > 51_000 || r.Repeats.Packets < slow*9/10 {
		t.Errorf("seed known: mean %v, %+v: the attack is none", r.Mean, r.Repeats)
	}
	want := (honest*50_000.0 + slow*1_000_000) / (honest + slow)
	if r := measure(sip.Packet); math.Abs(r.Mean-want) > 0.1*want || r.Repeats.Cells > 0 {
		t.Errorf("key not known: mean %v, want %v, %+v", r.Mean, want, r.Repeats)
	}
}

// Whoever holds a key aims packets at one cell, too, but by trial, some 2,200 a
// packet. It is overfull in the same way.
func TestKeyAimsAtOneCell(t *testing.T) {
	const honest, slow = 100_000, 1000
	sip := hashing.SipHashFromKey(secretKey)
	up, down := must(lda.New(lda.DefaultConfig)), must(lda.New(lda.DefaultConfig))
	for i := range uint64(honest) {
		p, now := hashing.Packet(sip.Word(i)), int64(i)*1000
		up.Update(p, now)
		down.Update(p, now+50_000)
	}
	trials, aimed := uint64(1<<32), 0
	for ; aimed < slow; trials++ {
		p := hashing.Packet(sip.Word(trials))
		if uint64(p)%2048 != 7 || bits.LeadingZeros64(uint64(p)) >= 4 {
			continue
		}
		up.Update(p, int64(aimed)*1000)
		if aimed > 0 {
			down.Update(p, int64(aimed)*1000+1_000_000)
		}
		aimed++
	}
	r, err := lda.EstimateRest(up, down)
	if err != nil || r.Mean > 50_100 || r.Repeats.Cells != 1 || r.Repeats.Packets < slow {
		t.Errorf("mean %v, %+v, %v", r.Mean, r.Repeats, err)
	}
	plain, err := lda.Estimate(up, down)
	want := (honest*50_000.0 + slow*1_000_000) / (honest + slow)
	if i := plain.MeanInterval(0.98); err == nil && !i.Contains(want) {
		t.Errorf("mean %v in %v, want %v", plain.Mean, i, want)
	}
	t.Logf("%d trials, %+v, mean %.0f in %.0f of %v, %v", trials-1<<32, r.Repeats, plain.Mean, plain.MeanInterval(0.98), want, err)
}

// Whoever knows the seed of Tuple.Flow writes addresses down that pass for
// another's flow: synopses by flow then mix the two. A key keeps them apart.
func TestSeedPassesForAFlow(t *testing.T) {
	const seed = 77
	x, y := keysOf(seed, 0xa54ff53a5f1d36f1)
	le := binary.LittleEndian
	rng := rand.New(rand.NewPCG(12, 8))
	var victim, forged hashing.Tuple
	for { // a quarter of all addresses will do
		victim = hashing.Tuple{Proto: 6, SrcPort: 1, DstPort: 443}
		a, b := rng.Uint64(), rng.Uint64()
		le.PutUint64(victim.Src[:8], a)
		le.PutUint64(victim.Src[8:], b)
		if a^x < 1<<63 && (b^y)%2 == 0 {
			forged = victim
			le.PutUint64(forged.Src[:8], 2*(a^x)^x)
			le.PutUint64(forged.Src[8:], (b^y)/2^y)
			break
		}
	}
	if victim == forged || victim.Flow(seed) != forged.Flow(seed) {
		t.Errorf("%x and %x are flows %x and %x: the attack is none", victim.Src, forged.Src, victim.Flow(seed), forged.Flow(seed))
	}
	if sip := hashing.SipHashFromKey(secretKey); sip.Flow(&victim) == sip.Flow(&forged) || victim.Flow(seed+1) == forged.Flow(seed+1) {
		t.Error("without the seed they are one flow, too")
	}
}

// A flood of flows takes the room for records, whoever sends it: flows of many
// packets keep theirs, all packets are in the total, and what has no record is
// counted.
func TestFloodOfFlows(t *testing.T) {
	c := rli.DefaultConfig
	c.Method, c.Buffer, c.Flows = rli.Left, 0, 1000
	r := must(rli.NewReceiver(c))
	r.Reference(rli.ReferencePacket{}, 500)
	key := hashing.NewSipHash(secretSeed)
	for i := range uint64(100_000) {
		flow := key.Word(i)
		if i%100 == 0 {
			flow = key.Word(0)
		}
		r.Update(hashing.Flow(flow), 100, 500+int64(i))
	}
	got, err := r.Estimate(hashing.Flow(key.Word(0)))
	total, totalErr := r.Total()
	if err != nil || got.N != 1000 || totalErr != nil || total.N != 100_000 || r.Flows() != 1000 || r.Counts().Shed == 0 ||
		r.Counts().Evicted == 0 {
		t.Errorf("%+v, %v; total %+v, %v; %d flows, %+v", got, err, total, totalErr, r.Flows(), r.Counts())
	}
}

// Every cell of SECURITY.md's table has a figure and the name of a test or an
// experiment. That those exist is TestDocumentsNameTests' business.
func TestEveryCellHasATest(t *testing.T) {
	rows, cells := 0, 0
	for line := range strings.Lines(read(t, "SECURITY.md")) {
		row := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") || strings.TrimSpace(row[0]) == "" {
			continue
		}
		rows++
		if len(row) != 5 {
			t.Errorf("%d cells in the row of %q, want 5", len(row), row[0])
		}
		for i, cell := range row[1:] {
			cells++
			named := regexp.MustCompile("`(([a-z/]+\\.)?Test[A-Za-z0-9]+|ours-[a-z-]+)`")
			if text := named.ReplaceAllString(cell, ""); text == cell || !strings.ContainsAny(text, "0123456789") {
				t.Errorf("column %d of %q has no test, or no figure: %s", i+1, strings.TrimSpace(row[0]), cell)
			}
		}
	}
	if rows < 8 || cells < 32 {
		t.Errorf("%d rows with %d cells: the table is not found", rows, cells)
	}
}
