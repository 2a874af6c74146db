package hashing_test

import (
	"net/netip"
	"path/filepath"
	"testing"

	"github.com/hoplag/hoplag/hashing"
)

// Flows as they come: neighbours in address and port. Each set has distinct
// tuples.
var tupleSets = []struct {
	name   string
	tuples func(t *testing.T) []hashing.Tuple
}{
	{"sequential source addresses", func(*testing.T) []hashing.Tuple {
		return sequential(1<<16, func(i int) (src, dst uint32, sport, dport uint16) { return 10<<24 + uint32(i), 1, 1024, 80 })
	}},
	{"sequential destination addresses", func(*testing.T) []hashing.Tuple {
		return sequential(1<<16, func(i int) (src, dst uint32, sport, dport uint16) { return 1, 10<<24 + uint32(i), 1024, 80 })
	}},
	{"sequential source ports", func(*testing.T) []hashing.Tuple {
		return sequential(1<<16, func(i int) (src, dst uint32, sport, dport uint16) { return 1, 2, uint16(i), 80 })
	}},
	{"sequential destination ports", func(*testing.T) []hashing.Tuple {
		return sequential(1<<16, func(i int) (src, dst uint32, sport, dport uint16) { return 1, 2, 1024, uint16(i) })
	}},
	{"pairs of sequential addresses", func(*testing.T) []hashing.Tuple {
		return sequential(1<<16, func(i int) (src, dst uint32, sport, dport uint16) {
			return 10<<24 + uint32(i>>8), 10<<24 + uint32(i&0xff), 1024, 80
		})
	}},
	{"subnets of 256", func(*testing.T) []hashing.Tuple {
		return sequential(1<<16, func(i int) (src, dst uint32, sport, dport uint16) { return 10<<24 + uint32(i)<<8, 1, 1024, 80 })
	}},
	{"address and port in step", func(*testing.T) []hashing.Tuple {
		return sequential(1<<16, func(i int) (src, dst uint32, sport, dport uint16) { return 10<<24 + uint32(i), 1, uint16(i), 80 })
	}},
	{"a capture", func(t *testing.T) []hashing.Tuple {
		path := filepath.Join(dataDir, "twopoint", "tbf400m_512k", "ingress.pcap.gz")
		if matches, _ := filepath.Glob(path); len(matches) == 0 {
			t.Skip("the capture is not here")
		}
		seen := map[hashing.Tuple]bool{}
		var tuples []hashing.Tuple
		for _, r := range readCapture(t, path) {
			var f hashing.Frame
			if f.Parse(r.link, r.frame) == nil && !seen[f.Tuple] {
				seen[f.Tuple] = true
				tuples = append(tuples, f.Tuple)
			}
		}
		return tuples
	}},
}

func sequential(n int, tuple func(i int) (src, dst uint32, sport, dport uint16)) []hashing.Tuple {
	address := func(a uint32) netip.Addr {
		return netip.AddrFrom4([4]byte{byte(a >> 24), byte(a >> 16), byte(a >> 8), byte(a)})
	}
	tuples := make([]hashing.Tuple, n)
	for i := range tuples {
		src, dst, sport, dport := tuple(i)
		tuples[i] = hashing.MakeTuple(6, netip.AddrPortFrom(address(src), sport), netip.AddrPortFrom(address(dst), dport))
	}
	return tuples
}

// Loads of 256 buckets, from both halves of the hash, are those of random
// functions: neither worse nor, as a plain modulo of a counter is, better.
func TestLoads(t *testing.T) {
	heavy(t)
	sip := hashing.NewSipHash(7)
	hashes := []struct {
		name string
		hash func(t *hashing.Tuple) uint64
		good bool
	}{
		{"Flow", func(t *hashing.Tuple) uint64 { return uint64(t.Flow(7)) }, true},
		{"Mix of Flow", func(t *hashing.Tuple) uint64 { return hashing.Mix(uint64(t.Flow(7)), 1) }, true},
		{"Digest", func(t *hashing.Tuple) uint64 { return uint64(hashing.Digest(7, t.Append(nil))) }, true},
		{"SipHash", func(t *hashing.Tuple) uint64 { return uint64(sip.Flow(t)) }, true},
		{"a sum", func(t *hashing.Tuple) uint64 {
			var h uint64
			for _, c := range t.Append(nil) {
				h += uint64(c)
			}
			return h * 0x9e3779b97f4a7c15
		}, false},
		{"FNV-1a", func(t *hashing.Tuple) uint64 { return fnv1a(t.Append(nil)) }, false},
	}
	failures := map[string]int{}
	for _, set := range tupleSets {
		t.Run(set.name, func(t *testing.T) {
			tuples := set.tuples(t)
			for _, h := range hashes {
				var low, high [256]int
				for i := range tuples {
					v := h.hash(&tuples[i])
					low[hashing.Row(v, 256)]++
					high[v>>56]++
				}
				from, to := chiSquareRange(255, 2*len(hashes)*len(tupleSets))
				for half, counts := range map[string][]int{"low": low[:], "high": high[:]} {
					if x := chiSquare(counts); x < from || x > to {
						failures[h.name]++
						if h.good {
							t.Errorf("%s, %s half: chi-square %.0f of 255 degrees of freedom, range %.0f to %.0f", h.name, half, x, from, to)
						}
					}
				}
			}
		})
	}
	for _, h := range hashes {
		if !h.good && failures[h.name] == 0 {
			t.Errorf("%s passes: the check sees nothing", h.name)
		}
	}
}
