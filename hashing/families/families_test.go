package families

import (
	"encoding/json"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hoplag/hoplag/hashing"
)

type hasher interface{ Bytes([]byte) uint64 }

// families are all families, for inputs of up to 64 bytes.
var families = []struct {
	name string
	make func(seed uint64) hasher
}{
	{"H3", func(seed uint64) hasher { return must(NewH3(seed, 64)) }},
	{"Toeplitz", func(seed uint64) hasher { return toeplitzOf(seed, 64) }},
}

func counting(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

func randomBytes(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// toeplitzOf has a random key for inputs of the given number of bytes.
func toeplitzOf(seed uint64, width int) *Toeplitz {
	return must(ToeplitzFromKey(randomBytes(rand.New(rand.NewPCG(seed, 3)), width+4)))
}

// vectors reads the published known answers, which do not ship with the
// project: a few of each are inline in the tests beside.
func vectors(t *testing.T, into any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "data", "vectors.json"))
	if err != nil {
		t.Skipf("no published vectors here: %v", err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestFamiliesGolden(t *testing.T) {
	for i, want := range []uint64{0x8d4ee02a5a04fa10, 0xd3873d98} { // H3, Toeplitz
		if got := families[i].make(7).Bytes(counting(40)); got != want {
			t.Errorf("%s: Bytes %#x, want %#x", families[i].name, got, want)
		}
	}
}

func TestFamiliesReject(t *testing.T) {
	for name, check := range map[string]struct {
		err  error
		want string
	}{
		"H3 narrow": {errorOf(NewH3(1, 7)), "7 input bytes, want 8 to 256"},
		"H3 wide":   {errorOf(NewH3(1, 257)), "257 input bytes, want 8 to 256"},
		"short key": {errorOf(ToeplitzFromKey(make([]byte, 39))), "key of 39 bytes, want 40 to 260"},
		"no key":    {errorOf(ToeplitzFromKey(nil)), "key of 0 bytes, want 40 to 260"},
		"long key":  {errorOf(ToeplitzFromKey(make([]byte, 261))), "key of 261 bytes, want 40 to 260"},
	} {
		if check.err == nil || !strings.Contains(check.err.Error(), check.want) {
			t.Errorf("%s: error %v, want one with %q", name, check.err, check.want)
		}
	}
}

func errorOf[T any](_ T, err error) error { return err }

func TestNoAllocations(t *testing.T) {
	message := counting(64)
	tuple := hashing.MakeTuple(6, netip.MustParseAddrPort("10.0.0.1:80"), netip.MustParseAddrPort("[2001:db8::1]:1234"))
	var sink uint64
	check := func(name string, f func()) {
		t.Helper()
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	for _, f := range families {
		h := f.make(1)
		check(f.name+".Bytes", func() { sink += h.Bytes(message) })
	}
	toeplitz := must(ToeplitzFromKey([]byte(RSSKey)))
	check("Toeplitz.Tuple", func() { sink += toeplitz.Tuple(&tuple) })
	check("Toeplitz.Addresses", func() { sink += toeplitz.Addresses(&tuple) })
}
