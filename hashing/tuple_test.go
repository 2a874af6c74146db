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
	mapped := mustTuple(6, "[::ffff:10.0.0.1]:80", "[::ffff:10.0.0.2]:1234")
	if plain != mapped {
		t.Errorf("an IPv4-mapped address makes another tuple: %v, %v", plain, mapped)
	}
	if got, want := plain.Source(), netip.MustParseAddrPort("10.0.0.1:80"); got != want {
		t.Errorf("Source() = %v, want %v", got, want)
	}
	if got, want := plain.Destination(), netip.MustParseAddrPort("10.0.0.2:1234"); got != want {
		t.Errorf("Destination() = %v, want %v", got, want)
	}
	zoned := mustTuple(17, "[fe80::1%eth0]:5", "[fe80::2%eth0]:6")
	if unzoned := mustTuple(17, "[fe80::1]:5", "[fe80::2]:6"); zoned != unzoned {
		t.Errorf("a zone makes another tuple: %v, %v", zoned, unzoned)
	}
	if got, want := hashing.MakeTuple(1, netip.AddrPort{}, netip.AddrPort{}), (hashing.Tuple{Proto: 1}); got != want {
		t.Errorf("the tuple of invalid addresses is %v, want %v", got, want)
	}
}

func TestTupleReverse(t *testing.T) {
	tuple := mustTuple(6, "10.0.0.1:80", "[2001:db8::1]:1234")
	want := mustTuple(6, "[2001:db8::1]:1234", "10.0.0.1:80")
	reversed := tuple.Reverse()
	if reversed != want {
		t.Errorf("Reverse() = %v, want %v", reversed, want)
	}
	if reversed.Flow(1) == tuple.Flow(1) {
		t.Error("both directions are one flow")
	}
	if reversed.Reverse() != tuple {
		t.Error("reversed twice, the tuple is another")
	}
}

func TestTupleAppend(t *testing.T) {
	tuple := mustTuple(6, "10.0.0.1:80", "[2001:db8::1]:1234")
	got := tuple.Append([]byte{0xee})
	want := []byte{
		0xee,
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1,
		0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
		0, 80, 0x04, 0xd2, 6,
	}
	if !bytes.Equal(got, want) {
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

func TestFlowGolden(t *testing.T) {
	for _, g := range []struct {
		tuple hashing.Tuple
		want  hashing.Flow
	}{
		{mustTuple(6, "10.0.0.1:80", "10.0.0.2:1234"), 0xbaeaa388384c1509},
		{mustTuple(6, "10.0.0.2:1234", "10.0.0.1:80"), 0x2ce55be27e144440},
		{mustTuple(6, "[2001:db8::1]:53", "[2001:db8::2]:5353"), 0xab028729a5d619fc},
	} {
		if got := g.tuple.Flow(7); got != g.want {
			t.Errorf("%v -> %v: Flow(7) = %#x, want %#x", g.tuple.Source(), g.tuple.Destination(), uint64(got), uint64(g.want))
		}
	}
}

func TestFlowAvalanche(t *testing.T) {
	heavy(t)
	rng := rand.New(rand.NewPCG(2, 3))
	check := func(hash func(b []byte) uint64) (worst, bound float64) {
		const trials = 4096
		worst, cells := worstAvalanche(rng, 37, trials, 1, func(_ int, b []byte) uint64 { return hash(b) })
		return worst, biasBound(trials, cells)
	}
	if worst, bound := check(flow7); worst > bound {
		t.Errorf("a bit of the flow flips at a rate %.3f from one half, bound %.3f", worst, bound)
	}
	if worst, bound := check(fnv1a); worst <= bound {
		t.Errorf("FNV-1a passes: %.3f, bound %.3f", worst, bound)
	}
}

// flow7 is the flow under one seed of the tuple with these bytes.
func flow7(b []byte) uint64 {
	tuple := tupleOf(b)
	return uint64(tuple.Flow(7))
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
