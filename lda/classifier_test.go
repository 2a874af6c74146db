package lda

import (
	"net/netip"
	"testing"

	"github.com/hoplag/hoplag/hashing"
)

func tuple(proto uint8, src, dst string) hashing.Tuple {
	return hashing.MakeTuple(proto, netip.MustParseAddrPort(src), netip.MustParseAddrPort(dst))
}

// The first rule that matches names the class.
func TestClassifier(t *testing.T) {
	ones := hashing.Tuple{Proto: 0xff}
	web := Rule{Value: hashing.Tuple{Proto: 6, DstPort: 443}, Mask: hashing.Tuple{Proto: 0xff, DstPort: 0xffff}}
	prefix := Rule{Value: tuple(0, "10.1.0.0:0", "0.0.0.0:0")}
	prefix.Value.Dst, prefix.Value.Proto = [16]byte{}, 0
	for i := range 14 { // 96 bits of mapped address and 16 of its own
		prefix.Mask.Src[i] = 0xff
	}
	high := Rule{Value: hashing.Tuple{SrcPort: 0x8000}, Mask: hashing.Tuple{SrcPort: 0x8000}}
	c := Classifier{web, prefix, {Value: hashing.Tuple{Proto: 17}, Mask: ones}, high}
	for _, test := range []struct {
		t    hashing.Tuple
		want int
	}{
		{tuple(6, "10.1.2.3:5", "1.1.1.1:443"), 0},
		{tuple(6, "10.1.2.3:5", "1.1.1.1:442"), 1},
		{tuple(17, "10.1.255.3:5", "1.1.1.1:443"), 1},
		{tuple(17, "10.2.2.3:5", "1.1.1.1:443"), 2},
		{tuple(6, "10.2.2.3:40000", "1.1.1.1:80"), 3},
		{tuple(6, "10.2.2.3:5", "1.1.1.1:80"), 4},
	} {
		if got := c.Class(&test.t); got != test.want {
			t.Errorf("%+v: class %d, want %d", test.t, got, test.want)
		}
	}
	if got := (Classifier{{}}).Class(&hashing.Tuple{Proto: 3}); got != 0 {
		t.Errorf("a rule without a mask: class %d", got)
	}
}
