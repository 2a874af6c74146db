package lds

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
)

// A Volume is the number of packets and bytes that a flow sent.
type Volume struct {
	Flow    hashing.Flow
	Packets float64
	Bytes   float64 // 0 without Config.Bytes
	// PacketsDoubt and BytesDoubt are the standard deviations of the errors of
	// Packets and Bytes.
	PacketsDoubt, BytesDoubt float64
}

// HeavyHitters decodes the packets of all candidates together, as
// [Sketch.DecodePackets] does. It returns those with at least the given number
// of packets, the largest first. It mistakes few of the flows that share all
// their cells with a large flow for that flow; [Sketch.Packets], being a
// bound, mistakes all of them.
//
// The candidates should be all known flows of the interval. The errors are
// those of [Sketch.DecodePackets].
func (s *Sketch) HeavyHitters(ctx context.Context, candidates []hashing.Flow, packets float64) ([]Volume, error) {
	return s.heavy(ctx, candidates, func(v Volume) float64 { return v.Packets }, packets)
}

// HeavyBytes is HeavyHitters by bytes. The error wraps [estimate.ErrConfig]
// without Config.Bytes.
func (s *Sketch) HeavyBytes(ctx context.Context, candidates []hashing.Flow, bytes float64) ([]Volume, error) {
	if s.bytes == nil {
		return nil, noBytes()
	}
	return s.heavy(ctx, candidates, func(v Volume) float64 { return v.Bytes }, bytes)
}

func (s *Sketch) heavy(ctx context.Context, candidates []hashing.Flow, size func(Volume) float64, least float64) ([]Volume, error) {
	all, err := s.DecodeVolumes(ctx, candidates)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(v Volume) bool { return size(v) < least })
	slices.SortFunc(all, func(a, b Volume) int {
		return cmp.Or(cmp.Compare(size(b), size(a)), cmp.Compare(a.Flow, b.Flow))
	})
	return all, nil
}

// DecodeVolumes estimates the packets and, with Config.Bytes, the bytes of all
// flows together. It decodes packets as [Sketch.DecodePackets] does, and mean
// packet lengths as [Decode] does delays.
func (s *Sketch) DecodeVolumes(ctx context.Context, flows []hashing.Flow) ([]Volume, error) {
	records, err := s.DecodePackets(ctx, flows, nil)
	if err != nil {
		return nil, err
	}
	all := make([]Volume, len(flows))
	for i, r := range records {
		all[i] = Volume{Flow: r.Flow, Packets: r.Packets, PacketsDoubt: r.Doubt}
	}
	if s.bytes == nil {
		return all, nil
	}
	p := joint.Problem{Sum: make([]float64, len(s.cells)), Count: make([]float64, len(s.cells))}
	for i := range s.cells {
		p.Sum[i], p.Count[i] = float64(s.bytes[i]), float64(s.cells[i].count())
	}
	lengths, err := s.counts().solve(ctx, &p, records, joint.Options{})
	if err != nil {
		return nil, err
	}
	for i := range all {
		v := &all[i]
		v.Bytes = max(0, v.Packets*lengths.Mean[i])
		v.BytesDoubt = math.Hypot(v.PacketsDoubt*lengths.Mean[i], v.Packets*lengths.StdDev[i])
	}
	return all, nil
}

func noBytes() error {
	return fmt.Errorf("lds: %w: Bytes is false, the sketch has no byte sums", estimate.ErrConfig)
}
