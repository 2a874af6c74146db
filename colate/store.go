package colate

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"sync"

	"github.com/hoplag/hoplag/estimate"
)

// StoreOptions tune a [Store]. The zero value is good.
type StoreOptions struct {
	// SegmentBytes is the size from which on a segment is completed and the
	// next one begun; 0 means 64 MiB. What retention removes are segments.
	SegmentBytes int64
	// ReadOnly opens a store that another process may be writing to, as it is
	// now: nothing is repaired, and Append and retention fail.
	ReadOnly bool
}

// A Store keeps the epochs of one point in a directory, for months: in
// segments that are only appended to, with an index for each that is complete.
// What Sync has returned from survives a crash at any byte; what is damaged
// costs no more than the epochs it is part of, and is reported.
//
// One writer (Append, Sync, DropBefore, DropBeyond, Close) and any number of
// readers may use a Store at the same time. Only one process may write.
type Store struct {
	files   FileSystem
	options StoreOptions

	mu       sync.RWMutex
	segments []*segment // by number; the last is being written if active is open

	// The writer's alone.
	active File  // nil until the first Append, and between segments
	fresh  bool  // active's name has not been synced
	failed error // of the Sync that failed, if one has
	buffer []byte
}

// ErrReadOnly is returned where a store that was opened to be read is to be
// changed.
var ErrReadOnly = errors.New("store is read-only")

// OpenStore opens the store in a directory, or begins one. Segments that no
// index describes, as after a crash, are read through; Damages says what could
// not be saved. The error is one of the file system, which alone can keep a
// store from opening.
func OpenStore(files FileSystem, options StoreOptions) (*Store, error) {
	if options.SegmentBytes < 0 {
		return nil, fmt.Errorf("colate: %w: segments of %d bytes, want 0 or more", estimate.ErrConfig, options.SegmentBytes)
	}
	if options.SegmentBytes == 0 {
		options.SegmentBytes = 64 << 20
	}
	names, err := files.List()
	if err != nil {
		return nil, fmt.Errorf("colate: %w", err)
	}
	s := &Store{files: files, options: options}
	for _, name := range names {
		number, ok := numberOf(name)
		if !ok {
			continue // an index, or not ours
		}
		seg, err := s.load(number)
		if options.ReadOnly && errors.Is(err, fs.ErrNotExist) {
			continue // its writer has removed it
		}
		if err != nil {
			return nil, fmt.Errorf("colate: opening %s: %w", name, err)
		}
		s.segments = append(s.segments, seg)
	}
	slices.SortFunc(s.segments, func(a, b *segment) int {
		if a.number < b.number {
			return -1
		}
		return 1
	})
	return s, nil
}

// load learns what is in a segment, from its index if that fits, else from
// the segment, and then makes the index for the next time.
func (s *Store) load(number uint64) (*segment, error) {
	f, err := s.files.Open(segmentName(number))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	if data, err := s.readAll(indexName(number)); err == nil {
		if seg, err := parseIndex(data, number, size); err == nil {
			return seg, nil
		}
	}
	seg, err := scan(f, number, size)
	if err != nil || s.options.ReadOnly {
		return seg, err
	}
	return seg, s.writeIndex(seg)
}

func (s *Store) readAll(name string) ([]byte, error) {
	f, err := s.files.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	data := make([]byte, size)
	return data, readFull(f, data, 0)
}

// writeIndex puts a segment's index in place, whole or not at all.
func (s *Store) writeIndex(seg *segment) error {
	name := indexName(seg.number)
	f, err := s.files.Create(name + partSuffix)
	if err != nil {
		return err
	}
	_, err = f.Write(seg.appendIndex(nil))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return errors.Join(s.files.Rename(name+partSuffix, name), s.files.Sync())
}

// Append adds an epoch. It survives a crash once Sync has returned. An epoch
// without packets is not kept. On error the epoch is not in the store, and
// may be appended again, but not after Sync has failed.
func (s *Store) Append(e *Epoch) error {
	if s.options.ReadOnly {
		return fmt.Errorf("colate: %w", ErrReadOnly)
	}
	if s.failed != nil {
		return s.failed
	}
	if _, _, ok := e.Span(); !ok {
		return nil
	}
	var err error
	if s.buffer, err = appendFrame(s.buffer[:0], e); err != nil {
		return err
	}
	if s.active != nil && s.segments[len(s.segments)-1].size >= s.options.SegmentBytes {
		if err := s.complete(); err != nil {
			return fmt.Errorf("colate: completing a segment: %w", err)
		}
	}
	if s.active == nil {
		if err := s.begin(); err != nil {
			return fmt.Errorf("colate: beginning a segment: %w", err)
		}
	}
	seg := s.segments[len(s.segments)-1]
	if n, err := s.active.Write(s.buffer); err != nil {
		// What was written of the frame stays where it is, as damage; no
		// complete epoch is put at risk to remove it.
		s.mu.Lock()
		if n > 0 {
			seg.damages = append(seg.damages, Damage{File: segmentName(seg.number), Offset: seg.size, Bytes: int64(n), Reason: err})
			seg.size += int64(n)
		}
		s.mu.Unlock()
		return fmt.Errorf("colate: appending an epoch: %w", errors.Join(err, s.complete()))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	seg.entries = append(seg.entries, entry{
		segment: seg.number, offset: seg.size + frameSize, length: uint32(len(s.buffer) - frameSize),
		first: e.first, last: e.last,
	})
	seg.size += int64(len(s.buffer))
	return nil
}

// begin creates the next segment.
func (s *Store) begin() error {
	number := uint64(0)
	if n := len(s.segments); n > 0 {
		number = s.segments[n-1].number + 1
	}
	// After retention and a crash there may be an index left of an older
	// segment of this number, and of this size some day.
	if err := s.files.Remove(indexName(number)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := s.files.Create(segmentName(number))
	if err != nil {
		return err
	}
	s.active, s.fresh = f, true
	s.mu.Lock()
	defer s.mu.Unlock()
	s.segments = append(s.segments, &segment{number: number})
	return nil
}

// complete syncs and closes the active segment and writes its index. If that
// fails, the next Append begins another segment all the same.
func (s *Store) complete() error {
	if s.active == nil {
		return s.failed
	}
	err := s.Sync()
	err = errors.Join(err, s.active.Close())
	s.active = nil
	if err != nil {
		return err
	}
	return s.writeIndex(s.segments[len(s.segments)-1])
}

// Sync makes all epochs that were appended survive a crash. If it fails, no one
// can tell which of them do, for what a disk failed to write may be taken for
// written the next time: from then on Sync and Append fail, until the store is
// opened again and shows what is there.
func (s *Store) Sync() error {
	if s.active == nil || s.failed != nil {
		return s.failed
	}
	err := s.active.Sync()
	if err == nil && s.fresh {
		err = s.files.Sync()
	}
	if err != nil {
		s.failed = fmt.Errorf("colate: syncing: %w", err)
		return s.failed
	}
	s.fresh = false
	return nil
}

// Close syncs the store and completes its last segment.
func (s *Store) Close() error { return s.complete() }

// A Summary says what is in a store.
type Summary struct {
	Epochs, Segments int
	Bytes            int64 // without indexes
	First, Last      int64 // ns: the span of all epochs, if there are any
}

// Summary returns what is in the store now.
func (s *Store) Summary() Summary {
	s.mu.RLock()
	defer s.mu.RUnlock()
	sum := Summary{Segments: len(s.segments)}
	for _, seg := range s.segments {
		sum.Bytes += seg.size
		for _, e := range seg.entries {
			if sum.Epochs == 0 {
				sum.First, sum.Last = e.first, e.last
			}
			sum.Epochs++
			sum.First, sum.Last = min(sum.First, e.first), max(sum.Last, e.last)
		}
	}
	return sum
}

// Damages returns the parts of the store's files that were found to hold no
// whole epoch when it was opened or written. What has been damaged since is
// found by the queries that read it.
func (s *Store) Damages() []Damage {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var all []Damage
	for _, seg := range s.segments {
		all = append(all, seg.damages...)
	}
	return all
}

// A Reading says what a query read.
type Reading struct {
	Epochs  int      // that were added
	Other   int      // that overlap but were recorded with another Config
	Bytes   int64    // read
	Damages []Damage // found: epochs that overlap and cannot be read
}

// Gather adds to v all epochs that overlap the time from from to to, ends
// included, in nanoseconds: the flow's lifetime at this point. It reads these
// alone. An epoch that retention removes meanwhile is missing. The error is
// one of the file system; v then holds a part of the epochs.
func (s *Store) Gather(v *Subvector, from, to int64) (Reading, error) {
	var r Reading
	err := s.read(from, to, &r, func(p *packedEpoch) bool {
		if p.config != v.config {
			r.Other++
			return true
		}
		v.add(p, &p.vectors)
		r.Epochs++
		return true
	})
	return r, err
}

// Epochs returns the epochs that overlap the time from from to to, in the
// order they were appended, for [Joint]. An epoch that cannot be read comes as
// nil with an error, and the rest follow.
func (s *Store) Epochs(from, to int64) iter.Seq2[*Epoch, error] {
	return func(yield func(*Epoch, error) bool) {
		var r Reading
		told := 0
		tell := func() bool {
			for ; told < len(r.Damages); told++ {
				if !yield(nil, fmt.Errorf("colate: %s: %w", r.Damages[told].File, r.Damages[told].Reason)) {
					return false
				}
			}
			return true
		}
		stopped := false
		err := s.read(from, to, &r, func(p *packedEpoch) bool {
			stopped = !tell() || !yield(p.unpack(), nil)
			return !stopped
		})
		if !stopped && tell() && err != nil {
			yield(nil, err)
		}
	}
}

// read calls each with the epochs that overlap, until it returns false. The
// counters are valid until it returns.
func (s *Store) read(from, to int64, r *Reading, each func(*packedEpoch) bool) error {
	s.mu.RLock()
	var found []entry
	for _, seg := range s.segments {
		for _, e := range seg.entries {
			if e.overlaps(from, to) {
				found = append(found, e)
			}
		}
	}
	s.mu.RUnlock()

	var f File
	defer func() {
		if f != nil {
			f.Close()
		}
	}()
	var payload []byte
	for i, e := range found {
		name := segmentName(e.segment)
		if i == 0 || e.segment != found[i-1].segment {
			if f != nil {
				f.Close()
			}
			var err error
			if f, err = s.files.Open(name); errors.Is(err, fs.ErrNotExist) {
				f = nil
			} else if err != nil {
				f = nil
				return fmt.Errorf("colate: %w", err)
			}
		}
		if f == nil {
			continue // retention has removed the segment
		}
		payload = slices.Grow(payload[:0], int(e.length))[:e.length]
		err := readFull(f, payload, e.offset)
		r.Bytes += int64(e.length)
		var p packedEpoch
		if err == nil {
			p, err = e.open(payload)
		}
		if err != nil {
			r.Damages = append(r.Damages, Damage{File: name, Offset: e.offset - frameSize, Bytes: frameSize + int64(e.length), Reason: err})
			continue
		}
		if !each(&p) {
			return nil
		}
	}
	return nil
}

// DropBefore removes the segments whose epochs all ended before t, in
// nanoseconds, and returns how many epochs that were. The segment that is being
// written stays.
func (s *Store) DropBefore(t int64) (int, error) {
	return s.drop(func(seg *segment, _ int64) bool {
		return !slices.ContainsFunc(seg.entries, func(e entry) bool { return e.last >= t })
	})
}

// DropBeyond removes the oldest segments until the rest take no more than the
// given number of bytes, and returns how many epochs that were. The segment
// that is being written stays.
func (s *Store) DropBeyond(bytes int64) (int, error) {
	return s.drop(func(_ *segment, total int64) bool { return total > bytes })
}

// drop removes complete segments, from the oldest on, so long as old says so
// of the oldest, given the size of all that is left.
func (s *Store) drop(old func(oldest *segment, total int64) bool) (epochs int, err error) {
	if s.options.ReadOnly {
		return 0, fmt.Errorf("colate: %w", ErrReadOnly)
	}
	total := s.Summary().Bytes
	for len(s.segments) > 0 {
		oldest := s.segments[0]
		if s.active != nil && len(s.segments) == 1 || !old(oldest, total) {
			break
		}
		if err := s.files.Remove(segmentName(oldest.number)); err != nil {
			return epochs, fmt.Errorf("colate: %w", err)
		}
		s.mu.Lock()
		s.segments = slices.Clone(s.segments[1:])
		s.mu.Unlock()
		total -= oldest.size
		epochs += len(oldest.entries)
		if err := s.files.Remove(indexName(oldest.number)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return epochs, fmt.Errorf("colate: %w", err)
		}
	}
	return epochs, s.files.Sync()
}
