package lds

import (
	"cmp"
	"context"
	"slices"

	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
)

// HeavyHitters decodes the packets of all candidates together, as
// [Sketch.DecodePackets] does. It returns those with at least the given number
// of packets, the largest first. It mistakes few of the flows that share all
// their cells with a large flow for that flow; [Sketch.Packets], being a
// bound, mistakes all of them.
//
// The candidates should be all known flows of the interval. The errors are
// those of [Sketch.DecodePackets].
func (s *Sketch) HeavyHitters(ctx context.Context, candidates []hashing.Flow, packets float64) ([]joint.FlowRecord, error) {
	all, err := s.DecodePackets(ctx, candidates, nil)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(r joint.FlowRecord) bool { return r.Packets < packets })
	slices.SortFunc(all, func(a, b joint.FlowRecord) int {
		return cmp.Or(cmp.Compare(b.Packets, a.Packets), cmp.Compare(a.Flow, b.Flow))
	})
	return all, nil
}
