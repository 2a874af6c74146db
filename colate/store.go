package colate

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"math"
	"slices"
	"sync"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/clock"
)

// StoreOptions tunes a [Store]. The zero value is a good choice.
type StoreOptions struct {
	// SegmentBytes is the size at which a segment is completed and the next
	// one begun; 0 means 64 MiB. Retention removes whole segments.
	SegmentBytes int64
	// ReadOnly opens a store that another process may be writing to, in its
	// present state (see Refresh). Nothing is repaired, and Append and
	// retention fail.
	ReadOnly bool
}

// A Store keeps the epochs of one point in a directory for months. It appends
// them to segments, which end with an index when they are complete. Once Sync
// has returned, epochs survive a crash at any byte. Damage costs only the
// epochs it is part of, and is reported.
//
// One writer (Append, Sync, DropBefore, DropBeyond, Close) and any number of
// readers may use a Store at the same time. A second writer, in this process
// or another, gets [ErrLocked]. The package documentation describes the format
// of segments and epochs.
type Store struct {
	files   FileSystem
	options StoreOptions

	mu       sync.RWMutex
	segments []*segment // by number; the last is being written if active is open

	// Used only by the writer.
	lock   io.Closer
	active File  // nil until the first Append, and between segments
	fresh  bool  // active's name has not been synced
	failed error // the error of the Sync that failed, if any
	buffer []byte
}

// ErrReadOnly means that a store opened for reading was to be changed.
var ErrReadOnly = errors.New("store is read-only")

// OpenStore opens the store in a directory, or creates one. It reads segments
// without an index from the start, as after a crash. Damages reports what
// could not be saved, including segments that cannot be read. OpenStore fails
// if there is another writer or the directory cannot be read.
func OpenStore(files FileSystem, options StoreOptions) (*Store, error) {
	if options.SegmentBytes < 0 {
		return nil, estimate.Invalid("colate", "SegmentBytes", options.SegmentBytes, "0 or more")
	}
	if options.SegmentBytes == 0 {
		options.SegmentBytes = 64 << 20
	}
	s := &Store{files: files, options: options}
	if !options.ReadOnly {
		var err error
		if s.lock, err = files.Lock(); err != nil {
			return nil, fmt.Errorf("colate: %w", err)
		}
	}
	if err := s.Refresh(); err != nil {
		if s.lock != nil {
			s.lock.Close()
		}
		return nil, err
	}
	return s, nil
}

// Refresh finds what another process has written and removed since the store
// was opened for reading. What a writer is about to complete, at the end of
// the last segment, does not count as damage. Refresh does nothing for a store
// that is not read-only.
func (s *Store) Refresh() error {
	if s.segments != nil && !s.options.ReadOnly {
		return nil
	}
	names, err := s.files.List()
	if err != nil {
		return fmt.Errorf("colate: %w", err)
	}
	s.mu.RLock()
	known := map[uint64]*segment{}
	for _, seg := range s.segments {
		known[seg.number] = seg
	}
	s.mu.RUnlock()
	segments := []*segment{}
	for _, name := range names {
		number, ok := numberOf(name)
		if !ok {
			continue // not ours
		}
		seg := known[number]
		if seg == nil || !seg.complete {
			if seg = s.load(number, seg); seg == nil {
				continue // its writer has removed it
			}
		}
		segments = append(segments, seg)
	}
	slices.SortFunc(segments, func(a, b *segment) int {
		if a.number < b.number {
			return -1
		}
		return 1
	})
	if n := len(segments); s.options.ReadOnly && n > 0 && !segments[n-1].complete {
		segments[n-1].forgetTail()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.segments = segments
	return nil
}

// forgetTail forgets damage at the end.
func (s *segment) forgetTail() {
	if n := len(s.damages); n > 0 && s.damages[n-1].Offset+s.damages[n-1].Bytes == s.size {
		s.size = s.damages[n-1].Offset
		s.damages = s.damages[:n-1]
	}
}

// load learns what is in a segment, from its index if there is one, and
// otherwise by reading on from its known part. It returns nil if the segment
// does not exist.
func (s *Store) load(number uint64, known *segment) *segment {
	f, err := s.files.Open(segmentName(number))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	seg := &segment{number: number}
	if known != nil {
		*seg = *known
		seg.entries, seg.damages = slices.Clone(known.entries), slices.Clone(known.damages)
	}
	var size int64
	if err == nil {
		defer f.Close()
		size, err = f.Size()
	}
	if err == nil {
		if indexed, err := readIndex(f, number, size); err == nil {
			return indexed
		}
		err = seg.scan(f, size)
	}
	if err != nil {
		seg.damage(max(size, seg.size), err)
	}
	return seg
}

// Append adds an epoch. Once Sync has returned, the epoch survives a crash. An
// epoch without packets is not kept. On error the epoch is not in the store
// and may be appended again, except after Sync has failed.
func (s *Store) Append(r *Recorder) error {
	start, end, ok := r.Span()
	if s.options.ReadOnly || s.failed != nil || !ok {
		return s.refuse()
	}
	s.buffer = appendFrame(s.buffer[:0], r)
	return s.write(entry{head: uint32(r.config.headSize()), start: start, end: end})
}

// AppendClock adds the history of this point's clock, relative to the point
// before it on a [Path], as package estimate/clock measured it: since the last
// call, or from the beginning. Queries use the history added last. Like an
// epoch, it survives a crash once Sync has returned, and is removed with its
// segment. A history without readings is not kept.
func (s *Store) AppendClock(h *clock.History) error {
	start, end, ok := h.Span()
	if s.options.ReadOnly || s.failed != nil || !ok {
		return s.refuse()
	}
	s.buffer = appendClock(s.buffer[:0], h)
	return s.write(entry{start: start, end: end})
}

// refuse returns the reason why nothing can be written.
func (s *Store) refuse() error {
	if s.options.ReadOnly {
		return fmt.Errorf("colate: %w", ErrReadOnly)
	}
	return s.failed
}

// write appends the frame of an entry that is in the buffer.
func (s *Store) write(e entry) error {
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
		return fmt.Errorf("colate: appending to a segment: %w", errors.Join(err, s.takeBack(int64(n), err)))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e.segment, e.offset, e.length = seg.number, seg.size+frameSize, uint32(len(s.buffer)-frameSize)
	seg.entries = append(seg.entries, e)
	seg.size += int64(len(s.buffer))
	return nil
}

// takeBack removes the written part of a frame, which nobody has been
// promised. If that fails, the part stays as damage.
func (s *Store) takeBack(n int64, reason error) error {
	seg := s.segments[len(s.segments)-1]
	if n > 0 && s.active.Truncate(seg.size) != nil {
		s.mu.Lock()
		seg.damage(seg.size+n, reason)
		s.mu.Unlock()
		return s.complete()
	}
	if seg.size > 0 {
		return nil
	}
	// An empty segment is litter.
	err := errors.Join(s.active.Close(), s.files.Remove(segmentName(seg.number)))
	s.active = nil
	s.mu.Lock()
	s.segments = s.segments[:len(s.segments)-1]
	s.mu.Unlock()
	return err
}

// begin creates the next segment.
func (s *Store) begin() error {
	number := uint64(0)
	if n := len(s.segments); n > 0 {
		number = s.segments[n-1].number + 1
	}
	f, err := s.files.Create(segmentName(number))
	for errors.Is(err, fs.ErrExist) { // made by another writer, where files cannot be locked
		number++
		f, err = s.files.Create(segmentName(number))
	}
	if err != nil {
		return err
	}
	s.active, s.fresh = f, true
	s.mu.Lock()
	defer s.mu.Unlock()
	s.segments = append(slices.Clip(s.segments), &segment{number: number})
	return nil
}

// complete syncs the active segment, writes its index and closes it. Without
// an index, as on a full disk, the segment is read from the start when the
// store is opened.
func (s *Store) complete() error {
	if s.active == nil {
		return s.failed
	}
	err := s.Sync()
	seg := s.segments[len(s.segments)-1]
	if err == nil {
		if _, failed := s.active.Write(seg.appendIndex(nil)); failed != nil {
			failed = s.active.Truncate(seg.size)
			err = failed
		} else {
			err = s.Sync()
		}
	}
	err = errors.Join(err, s.active.Close())
	s.active = nil
	s.mu.Lock()
	seg.complete = true
	s.mu.Unlock()
	return err
}

// Sync makes all appended epochs survive a crash. If it fails, nobody can tell
// which of them do, because the next sync may report as written what a disk
// failed to write. After that Sync and Append fail until the store is opened
// again and shows what it has.
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

// Close syncs the store, completes its last segment, and allows another
// writer.
func (s *Store) Close() error {
	err := s.complete()
	if s.lock != nil {
		err = errors.Join(err, s.lock.Close())
		s.lock = nil
		s.options.ReadOnly = true
	}
	return err
}

// Config returns the configuration of the latest readable epoch, or
// [estimate.ErrNoSamples] if there is none.
func (s *Store) Config() (Config, error) {
	reader := epochReader{store: s}
	defer reader.close()
	for _, e := range slices.Backward(s.find(math.MinInt64, math.MaxInt64)) {
		if h, err := reader.head(&e); err == nil {
			return h.config, nil
		}
	}
	return Config{}, fmt.Errorf("colate: %w: no epoch in the store can be read", estimate.ErrNoSamples)
}

// A Summary describes what is in a store.
type Summary struct {
	Epochs, Segments int
	Bytes            int64 // without indexes
	Start, End       int64 // ns: the span of all epochs, if there are any
}

// Summary describes what is in the store now.
func (s *Store) Summary() Summary {
	s.mu.RLock()
	defer s.mu.RUnlock()
	sum := Summary{Segments: len(s.segments)}
	for _, seg := range s.segments {
		sum.Bytes += seg.size
		for _, e := range seg.entries {
			if e.clock() {
				continue
			}
			if sum.Epochs == 0 {
				sum.Start, sum.End = e.start, e.end
			}
			sum.Epochs++
			sum.Start, sum.End = min(sum.Start, e.start), max(sum.End, e.end)
		}
	}
	return sum
}

// Damages returns the parts of the store's files in which no whole epoch was
// found when the store was opened or written. Queries report later damage when
// they read it.
func (s *Store) Damages() []Damage {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var all []Damage
	for _, seg := range s.segments {
		all = append(all, seg.damages...)
	}
	return all
}

// find returns the epochs that overlap the time between from and to, in order
// of their beginning.
func (s *Store) find(from, to int64) []entry {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var found []entry
	for _, seg := range s.segments {
		for _, e := range seg.entries {
			if !e.clock() && e.overlaps(from, to) {
				found = append(found, e)
			}
		}
	}
	slices.SortStableFunc(found, func(a, b entry) int {
		if a.start < b.start {
			return -1
		}
		return int(min(a.start-b.start, 1))
	})
	return found
}

// clocks returns the histories that overlap the time between from and to, the
// last first, and whether there are any histories at any time.
func (s *Store) clocks(from, to int64) (found []entry, some bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, seg := range slices.Backward(s.segments) {
		for _, e := range slices.Backward(seg.entries) {
			some = some || e.clock()
			if e.clock() && e.overlaps(from, to) {
				found = append(found, e)
			}
		}
	}
	return found, some
}

// Epochs returns an iterator over the epochs that overlap the time from from
// to to, ends included, in nanoseconds, in order of their beginning. It yields
// nil and an error for an epoch that cannot be read, and continues with the
// rest. An epoch that retention removes meanwhile is missing.
func (s *Store) Epochs(from, to int64) iter.Seq2[*Recorder, error] {
	return func(yield func(*Recorder, error) bool) {
		reader := epochReader{store: s}
		defer reader.close()
		for _, e := range s.find(from, to) {
			r, err := reader.whole(&e)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				r, err = nil, fmt.Errorf("colate: %s: %w", segmentName(e.segment), err)
			}
			if !yield(r, err) {
				return
			}
		}
	}
}
