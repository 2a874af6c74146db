package hoplag

import (
	"encoding/binary"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"math"
	"math/bits"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/lds"
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

// The same for one flow: only rows that sampled none of the copies answer, and
// a wrong answer there is never.
func TestReplayedFlow(t *testing.T) {
	up, down := must(lds.New(lds.DefaultConfig)), must(lds.New(lds.DefaultConfig))
	rng := rand.New(rand.NewPCG(12, 7))
	for i := range 50_000 {
		f, p, now := hashing.Flow(hashing.Word(3, uint64(i%500))), hashing.Packet(rng.Uint64()), int64(i)*1000
		up.Update(f, p, now)
		down.Update(f, p, now+50_000)
		if i%5000 == 0 { // of flow 0
			down.Update(f, p, now+1e9)
		}
	}
	r, err := lds.Estimate(up, down, hashing.Flow(hashing.Word(3, 0)))
	if !errors.Is(err, estimate.ErrNoSamples) && (err != nil || math.Abs(r.Mean-50_000) > 1 || r.Usable > 2) {
		t.Errorf("the flow: %+v, %v", r, err)
	}
	answered := 0
	for k := range uint64(499) {
		r, err := lds.Estimate(up, down, hashing.Flow(hashing.Word(3, k+1)))
		if err == nil {
			answered++
			if math.Abs(r.Mean-50_000) > 1 {
				t.Errorf("flow %d: mean %v", k+1, r.Mean)
			}
		}
	}
	if answered < 490 {
		t.Errorf("%d of 499 other flows have an answer", answered)
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

// Every test that SECURITY.md names is there.
func TestSecurityNamesTests(t *testing.T) {
	text, err := os.ReadFile("SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile("`([a-z/]*)\\.?(Test[A-Za-z0-9]+)`").FindAllStringSubmatch(string(text), -1)
	if len(names) < 12 {
		t.Errorf("only %d tests are named", len(names))
	}
	for _, name := range names {
		files, _ := filepath.Glob(filepath.Join(".", name[1], "*_test.go"))
		found := false
		for _, file := range files {
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			found = found || f.Scope.Lookup(name[2]) != nil
		}
		if !found {
			t.Errorf("no %s in %q", name[2], strings.TrimSuffix(name[1], "/"))
		}
	}
}
