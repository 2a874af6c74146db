package colate

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
)

// DropBefore removes the segments whose epochs all ended by t, in nanoseconds,
// and returns the number of epochs removed. The segment being written stays.
// An epoch from a clock that ran ahead keeps only its own segment.
func (s *Store) DropBefore(t int64) (int, error) {
	return s.drop(func(seg *segment, _ int64) bool {
		if s.active != nil && seg == s.segments[len(s.segments)-1] {
			return false
		}
		return !slices.ContainsFunc(seg.entries, func(e entry) bool { return e.end > t })
	})
}

// DropBeyond removes the oldest segments, in the order they were written,
// until the rest take no more than the given number of bytes. It returns the
// number of epochs removed. It works on a full disk. If need be it completes
// and removes the segment being written.
func (s *Store) DropBeyond(bytes int64) (int, error) {
	return s.drop(func(_ *segment, total int64) bool { return total > bytes })
}

// drop removes the segments for which old returns true, given the size of all
// that are left.
func (s *Store) drop(old func(seg *segment, total int64) bool) (epochs int, err error) {
	if s.options.ReadOnly {
		return 0, fmt.Errorf("colate: %w", ErrReadOnly)
	}
	total := s.Summary().Bytes
	for i := 0; i < len(s.segments); {
		seg := s.segments[i]
		if !old(seg, total) {
			i++
			continue
		}
		if s.active != nil && i == len(s.segments)-1 {
			if err := errors.Join(s.active.Close(), s.failed); err != nil {
				return epochs, fmt.Errorf("colate: %w", err)
			}
			s.active = nil
		}
		if err := s.files.Remove(segmentName(seg.number)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return epochs, fmt.Errorf("colate: %w", err)
		}
		s.mu.Lock()
		s.segments = slices.Concat(s.segments[:i], s.segments[i+1:])
		s.mu.Unlock()
		total -= seg.size
		epochs += seg.epochs()
	}
	if err := s.files.Sync(); err != nil {
		return epochs, fmt.Errorf("colate: %w", err)
	}
	return epochs, nil
}
