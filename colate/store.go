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

// StoreOptions tune a [Store]. The zero value is good.
type StoreOptions struct {
	// SegmentBytes is the size from which on a segment is completed and the
	// next one begun; 0 means 64 MiB. What retention removes are segments.
	SegmentBytes int64
	// ReadOnly opens a store that another process may be writing to, as it is
	// now (see Refresh): nothing is repaired, and Append and retention fail.
	ReadOnly bool
}

// A Store keeps the epochs of one point in a directory, for months: in
// segments that are only appended to, and end with an index when they are
// complete. What Sync has returned from survives a crash at any byte; what is
// damaged costs no more than the epochs it is part of, and is reported.
//
// One writer (Append, Sync, DropBefore, DropBeyond, Close) and any number of
// readers may use a Store at the same time. A second writer, of this process
// or another, is refused with [ErrLocked]. [FileSystem] and the formats of
// segments and epochs are in the package's documentation.
type Store struct {
	files   FileSystem
	options StoreOptions

	mu       sync.RWMutex
	segments []*segment // by number; the last is being written if active is open

	// The writer's alone.
	lock   io.Closer
	active File  // nil until the first Append, and between segments
	fresh  bool  // active's name has not been synced
	failed error // of the Sync that failed, if one has
	buffer []byte
}

// ErrReadOnly is returned where a store that was opened to be read is to be
// changed.
var ErrReadOnly = errors.New("store is read-only")

// OpenStore opens the store in a directory, or begins one. Segments without an
// index, as after a crash, are read through. Damages says what could not be
// saved, be it a segment that cannot be read. The error is that there is a
// writer already, or that the directory cannot be read.
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

// Refresh looks for what another process has written and removed since the
// store was opened to be read. What its writer is about to write, at the end of
// the last segment, is no damage. A store that is not read-only is as it is.
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

// load learns what is in a segment, from its index if there is one, else from
// what comes behind that which is known of it. It returns nil if the segment
// is not there.
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

// Append adds an epoch. It survives a crash once Sync has returned. An epoch
// without packets is not kept. On error the epoch is not in the store, and
// may be appended again, but not after Sync has failed.
func (s *Store) Append(r *Recorder) error {
	start, end, ok := r.Span()
	if s.options.ReadOnly || s.failed != nil || !ok {
		return s.refuse()
	}
	s.buffer = appendFrame(s.buffer[:0], r)
	return s.write(entry{head: uint32(r.config.headSize()), start: start, end: end})
}

// AppendClock adds what the clock of this point was, by that of the point before
// it on a [Path], as package estimate/clock measured it: since the last time, or
// ever since. Queries go by what was added last. As epochs, it survives a crash
// once Sync has returned, and is removed with its segment. A history without
// readings is not kept.
func (s *Store) AppendClock(h *clock.History) error {
	start, end, ok := h.Span()
	if s.options.ReadOnly || s.failed != nil || !ok {
		return s.refuse()
	}
	s.buffer = appendClock(s.buffer[:0], h)
	return s.write(entry{start: start, end: end})
}

// refuse says why nothing can be written.
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

// takeBack removes what was written of a frame, which nobody has been promised.
// If that cannot be, it stays where it is, as damage.
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
	// A segment that holds nothing is litter.
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
	for errors.Is(err, fs.ErrExist) { // by another writer, where files cannot be locked
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
// an index, as on a full disk, it is read through when the store is opened.
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

// Close syncs the store, completes its last segment and lets another write.
func (s *Store) Close() error {
	err := s.complete()
	if s.lock != nil {
		err = errors.Join(err, s.lock.Close())
		s.lock = nil
		s.options.ReadOnly = true
	}
	return err
}

// Config returns the configuration of the latest epoch that can be read, or
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

// A Summary says what is in a store.
type Summary struct {
	Epochs, Segments int
	Bytes            int64 // without indexes
	Start, End       int64 // ns: the span of all epochs, if there are any
}

// Summary returns what is in the store now.
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

// find returns the epochs that overlap the time from from to to, in order of
// when they began.
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

// clocks returns the histories that overlap the time from from to to, the last
// first, and whether there are any of whatever time.
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

// Epochs returns the epochs that overlap the time from from to to, ends
// included, in nanoseconds, in order of when they began. An epoch that cannot be
// read comes as nil with an error, and the rest follow. One that retention
// removes meanwhile is missing.
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
