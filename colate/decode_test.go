package colate

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/internal/traffic"
)

// decoded decodes all flows of a world, from stores.
func (w world) decoded(t *testing.T, all []passage, flows func([]truth) []joint.FlowRecord) ([]truth, joint.Result) {
	t.Helper()
	epochs, arrived := w.cut(t, all)
	list := traffic.Truths(arrived, 1)
	r, coverage, err := w.stored(t, epochs).Decode(t.Context(), flows(list), math.MinInt64, math.MaxInt64, joint.Options{})
	// The last epoch is of packets on their way.
	if err != nil || len(coverage.Missing) > 1 {
		t.Fatal(err, coverage.Missing)
	}
	return list, r
}

// stored keeps epochs in two stores.
func (w world) stored(t testing.TB, epochs map[int64]*[2]*Recorder) Path {
	t.Helper()
	var stores [2]*Store
	for i := range stores {
		stores[i] = openStore(t, newMemory(), StoreOptions{segmentBytes: 100_000, Delay: w.delay})
		for _, start := range slices.Sorted(maps.Keys(epochs)) {
			if err := stores[i].Append(epochs[start][i]); err != nil && !errors.Is(err, ErrOverloaded) {
				t.Fatal(err)
			}
		}
	}
	return Path{Up: stores[0], Down: stores[1]}
}

// Joint decoding is right of large flows, and its intervals hold in every class of sizes,
// where packets are lost.
func TestDecode(t *testing.T) {
	for name, loss := range map[string]float64{"nothing lost": 0, "1 % lost": 0.01, "5 % lost": 0.05} {
		w := world{config: cutAt(4e6), loss: loss, seed: 4}
		w.config.Counters = 1279 // which are not folded
		all := traffic.Flows(2, 4000)
		list, r := w.decoded(t, all, recordsOf)
		for _, class := range [][2]uint64{{1, 9}, {10, 99}, {100, 1e9}} {
			var s score
			var off []float64
			for i, f := range list {
				if f.Packets < class[0] || f.Packets > class[1] {
					continue
				}
				off = append(off, estimate.RelativeError(r.Mean[i], f.Mean))
				s.add(r.MeanInterval(i, 0.95), f.Mean)
			}
			s.want(t, fmt.Sprintf("%s, flows of %d to %d packets", name, class[0], class[1]), 1)
			if m := median(off); class[0] >= 100 && m > 0.1 {
				t.Errorf("%s, large flows: median error %.3f", name, m)
			}
		}
	}
}
