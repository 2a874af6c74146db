package hashing_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/hoplag/hoplag/hashing"
)

func mustTuple(proto uint8, src, dst string) hashing.Tuple {
	return hashing.MakeTuple(proto, netip.MustParseAddrPort(src), netip.MustParseAddrPort(dst))
}

func TestMakeTuple(t *testing.T) {
	plain := mustTuple(6, "10.0.0.1:80", "10.0.0.2:1234")
	for what, pair := range map[string][2]hashing.Tuple{
		"IPv4-mapped addresses": {mustTuple(6, "[::ffff:10.0.0.1]:80", "[::ffff:10.0.0.2]:1234"), plain},
		"zones":                 {mustTuple(17, "[fe80::1%eth0]:5", "[fe80::2%eth0]:6"), mustTuple(17, "[fe80::1]:5", "[fe80::2]:6")},
		"invalid addresses":     {hashing.MakeTuple(1, netip.AddrPort{}, netip.AddrPort{}), {Proto: 1}},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s make another tuple: %v, want %v", what, pair[0], pair[1])
		}
	}
	if from, to := plain.Source().String(), plain.Destination().String(); from != "10.0.0.1:80" || to != "10.0.0.2:1234" {
		t.Errorf("it is from %s to %s", from, to)
	}
	want := mustTuple(6, "10.0.0.2:1234", "10.0.0.1:80")
	if got := plain.Reverse(); got != want || got.Reverse() != plain || got.Flow(1) == plain.Flow(1) {
		t.Errorf("Reverse() = %v, want %v, and another flow", got, want)
	}
}

func TestTupleAppend(t *testing.T) {
	tuple := mustTuple(6, "10.0.0.1:80", "[2001:db8::1]:1234")
	want := unhex("ee 00000000000000000000ffff0a000001 20010db8000000000000000000000001 0050 04d2 06")
	if got := tuple.Append([]byte{0xee}); !bytes.Equal(got, want) {
		t.Errorf("Append gives %x, want %x", got, want)
	}
}

// slowFlow is the flow digest in arbitrary-precision arithmetic.
func slowFlow(seed uint64, tuple *hashing.Tuple) uint64 {
	first, second := slowSplit(seed, root7)
	half := func(a [16]byte) uint64 {
		return slowFold(binary.LittleEndian.Uint64(a[:8])^first, binary.LittleEndian.Uint64(a[8:])^second)
	}
	src, dst := half(tuple.Src), half(tuple.Dst)
	ports := uint64(tuple.SrcPort)<<32 + uint64(tuple.DstPort)<<16 + uint64(tuple.Proto)
	return slowFold(slowFold(ports^src, dst>>32|dst<<32), root13)
}

func TestFlowMatchesSlow(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 3))
	for range 1000 {
		tuple, seed := randomTuple(rng), root2^rng.Uint64()<<rng.IntN(64)
		if got, want := uint64(tuple.Flow(seed)), slowFlow(seed, &tuple); got != want {
			t.Fatalf("%v: Flow(%#x) = %#x, want %#x", tuple, seed, got, want)
		}
	}
}

// tupleOf is the inverse of Append.
func tupleOf(b []byte) (t hashing.Tuple) {
	copy(t.Src[:], b)
	copy(t.Dst[:], b[16:])
	t.SrcPort = binary.BigEndian.Uint16(b[32:])
	t.DstPort = binary.BigEndian.Uint16(b[34:])
	t.Proto = b[36]
	return t
}

func randomTuple(rng *rand.Rand) hashing.Tuple {
	return tupleOf(randomBytes(rng, 37))
}
