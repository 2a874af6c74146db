package colate

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
)

// DropBefore removes the segments whose epochs all ended by t, in nanoseconds,
// and returns the number of epochs removed. The segment being written stays.
// An epoch from a clock that ran ahead keeps only its own segment.
func (s *Store) DropBefore(t int64) (int, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	return s.dropBefore(t)
}

func (s *Store) dropBefore(t int64) (int, error) {
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
	s.writing.Lock()
	defer s.writing.Unlock()
	return s.drop(func(_ *segment, total int64) bool { return total > bytes })
}

// retain removes what is older, or more, than the options allow.
func (s *Store) retain() (err error) {
	if age, now := s.options.Age, min(s.ends[0], s.ends[1]); age > 0 && now > math.MinInt64+age {
		_, err = s.dropBefore(now - age)
	}
	if most := s.options.Bytes; most > 0 && err == nil {
		_, err = s.drop(func(seg *segment, total int64) bool {
			return seg != s.segments[len(s.segments)-1] && total > most-s.options.SegmentBytes
		})
	}
	return err
}

// drop removes the segments for which old returns true, given the size of all
// that are left.
func (s *Store) drop(old func(seg *segment, total int64) bool) (epochs int, err error) {
	if s.closed != nil {
		return 0, s.closed
	}
	total := s.Summary().Bytes
	kept := make([]*segment, 0, len(s.segments))
	for i, seg := range s.segments {
		if err != nil || !old(seg, total) {
			kept = append(kept, seg)
			continue
		}
		if err = s.remove(seg, i == len(s.segments)-1); err != nil {
			kept = append(kept, seg)
			continue
		}
		total -= seg.size
		epochs += seg.epochs()
	}
	s.mu.Lock()
	s.segments = kept
	s.mu.Unlock()
	if err == nil {
		err = s.files.Sync()
	}
	if err != nil {
		return epochs, fmt.Errorf("colate: %w", err)
	}
	return epochs, nil
}

// remove removes a segment, which may be the one being written.
func (s *Store) remove(seg *segment, last bool) error {
	if s.active != nil && last {
		if err := errors.Join(s.active.Close(), s.failed); err != nil {
			return err
		}
		s.active = nil
	}
	if err := s.files.Remove(segmentName(seg.number)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
