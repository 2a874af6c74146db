package colate

import (
	"cmp"
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

// StoreOptions tunes a [Store]. The zero value keeps everything, and loses a
// minute of it at most when the power fails.
type StoreOptions struct {
	// SegmentBytes is the size at which a segment is completed and the next
	// one begun; 0 means 64 MiB. Retention removes whole segments.
	SegmentBytes int64
	// Age and Bytes limit what is kept, in nanoseconds and bytes: whenever a
	// segment is begun, older ones are removed. The age is that of the latest
	// two epochs, so that one from a clock that ran ahead removes nothing. 0
	// means no limit.
	Age, Bytes int64
	// SyncEvery is how many nanoseconds of epochs may wait for a Sync; 0 means
	// a minute. Below 0, only Sync and Close sync.
	SyncEvery int64
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
// Any number of goroutines may use a Store at the same time. A second writer,
// in another Store of this process or another, gets [ErrLocked]. The package
// documentation describes the format of segments and epochs.
type Store struct {
	files   fileSystem
	options StoreOptions

	mu       sync.RWMutex
	segments []*segment // by number; the last is being written if active is open

	writing sync.Mutex // guards the rest
	lock    io.Closer
	active  openFile // nil until the first Append, and between segments
	fresh   bool     // active's name has not been synced
	closed  error    // why nothing can be written
	failed  error    // the error of the Sync that failed, if any
	buffer  []byte
	synced  int64    // end of the last epoch that was synced
	ends    [2]int64 // of the latest epochs
	folds   [quiet]uint8
	fold    uint8
}

// ErrReadOnly means that a store opened for reading was to be changed.
var ErrReadOnly = errors.New("store is read-only")

// OpenStore opens the store in a directory, or creates one. It reads segments
// without an index from the start, as after a crash. Damages reports what
// could not be saved, including segments that cannot be read. OpenStore fails
// if there is another writer or the directory cannot be read.
func OpenStore(files fileSystem, options StoreOptions) (*Store, error) {
	if least := min(options.SegmentBytes, options.Age, options.Bytes); least < 0 {
		return nil, estimate.Invalid("colate", "SegmentBytes, Age or Bytes", least, "0 or more")
	}
	options.SegmentBytes = cmp.Or(options.SegmentBytes, 64<<20)
	options.SyncEvery = cmp.Or(options.SyncEvery, 60_000_000_000)
	s := &Store{files: files, options: options}
	if options.ReadOnly {
		s.closed = fmt.Errorf("colate: %w", ErrReadOnly)
	} else {
		var err error
		if s.lock, err = files.Lock(); err != nil {
			return nil, fmt.Errorf("colate: %w", err)
		}
	}
	if err := s.load(); err != nil {
		if s.lock != nil {
			s.lock.Close()
		}
		return nil, err
	}
	if !options.ReadOnly {
		s.indexLeft()
	}
	return s, nil
}

// indexLeft gives the segments that a crash left without an index one. The last
// may be another writer's, where files cannot be locked.
func (s *Store) indexLeft() {
	for _, seg := range s.segments[:max(len(s.segments)-1, 0)] {
		if seg.complete || seg.unread || len(seg.entries) == 0 {
			continue
		}
		f, err := s.files.Append(segmentName(seg.number))
		if err != nil {
			continue
		}
		if _, err = f.Write(seg.appendIndex(nil)); err != nil {
			_ = f.Truncate(seg.size)
		}
		seg.complete = err == nil
		f.Close()
	}
}

// Refresh finds what another process has written and removed since the store
// was opened for reading. What a writer is about to complete, at the end of
// the last segment, does not count as damage. Refresh does nothing for a store
// that is not read-only.
func (s *Store) Refresh() error {
	if !s.options.ReadOnly {
		return nil
	}
	return s.load()
}

// load learns what is in the directory.
func (s *Store) load() error {
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
			if seg = s.loadSegment(number, seg); seg == nil {
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

// loadSegment learns what is in a segment, from its index if there is one, and
// otherwise by reading on from its known part. It returns nil if the segment
// does not exist.
func (s *Store) loadSegment(number uint64, known *segment) *segment {
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
		seg.unread = true
		seg.damage(max(size, seg.size), err)
	}
	return seg
}

// Append adds an epoch. Once Sync has returned, the epoch survives a crash. An
// epoch without packets is not kept. On error the epoch is not in the store
// and may be appended again, except after Sync has failed.
func (s *Store) Append(r *Recorder) error {
	start, end, ok := r.Span()
	s.writing.Lock()
	defer s.writing.Unlock()
	if err := cmp.Or(s.closed, s.failed); err != nil || !ok {
		return err
	}
	var e entry
	s.buffer, e = appendFrame(s.buffer[:0], s.pack(r))
	if err := s.write(e); err != nil {
		return err
	}
	if s.ends == [2]int64{} {
		s.synced = start
	}
	s.ends = [2]int64{s.ends[1], end}
	if every := s.options.SyncEvery; every > 0 && max(end-s.synced, s.synced-end) >= every {
		return s.sync()
	}
	return nil
}

// AppendClock adds the history of this point's clock, relative to the point
// before it on a [Path], as package estimate/clock measured it: since the last
// call, or from the beginning. Queries use the history added last. Like an
// epoch, it survives a crash once Sync has returned, and is removed with its
// segment. A history without readings is not kept.
func (s *Store) AppendClock(h *clock.History) error {
	start, end, ok := h.Span()
	s.writing.Lock()
	defer s.writing.Unlock()
	if err := cmp.Or(s.closed, s.failed); err != nil || !ok {
		return err
	}
	s.buffer = appendClock(s.buffer[:0], h)
	return s.write(entry{start: start, end: end})
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
		if err := s.retain(); err != nil {
			return fmt.Errorf("colate: removing old segments: %w", err)
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
	err := s.sync()
	seg := s.segments[len(s.segments)-1]
	if err == nil {
		if _, failed := s.active.Write(seg.appendIndex(nil)); failed != nil {
			failed = s.active.Truncate(seg.size)
			err = failed
		} else {
			err = s.sync()
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
	s.writing.Lock()
	defer s.writing.Unlock()
	return s.sync()
}

func (s *Store) sync() error {
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
	s.fresh, s.synced = false, s.ends[1]
	return nil
}

// Close syncs the store, completes its last segment, and allows another
// writer.
func (s *Store) Close() error {
	s.writing.Lock()
	defer s.writing.Unlock()
	err := s.complete()
	if s.lock != nil {
		err = errors.Join(err, s.lock.Close())
		s.lock = nil
		s.closed = fmt.Errorf("colate: closed: %w", ErrReadOnly)
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
			return h.config.unfolded(), nil
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
