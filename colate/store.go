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
	"strconv"
	"strings"
	"sync"

	"github.com/hoplag/hoplag/estimate"
)

// StoreOptions tunes a [Store]. The zero value keeps everything.
type StoreOptions struct {
	// Age and Bytes limit what is kept, in nanoseconds and bytes, whenever an epoch is appended: the oldest segments are removed. A segment
	// holds an eighth of what either was when it was made, or 64 MiB, so that no epoch stays for longer than 9/8 of Age and two Periods.
	// Age counts from the earlier of the latest two epochs, so that one from a clock that ran ahead removes nothing. 0 means no limit.
	Age, Bytes int64
	// Delay is how many nanoseconds packets take at most, and clocks differ, in all. Append warns if the counters
	// cannot tell such delays; of a second, or a 60th of the Period if that is shorter, if Delay is 0. Sampled
	// packets that take longer than both Delay and eight Periods count as lost. What only the second point saw is a
	// copy if eight Periods are longer than Delay, or two minutes if that is 0; otherwise it may have been on its way
	// for long, and intervals allow for that. In [Path.Decode], which holds fewer epochs, three must be longer.
	Delay int64
	// ReadOnly opens a store that another process may be writing to. Each query finds what has been written and
	// removed since. Nothing is repaired, and Append and retention fail.
	ReadOnly bool

	segmentBytes int64
}

// A Store keeps the epochs of one point in a directory for months. It appends them to segments. Once Append has
// returned, an epoch survives a crash at any byte. Damage costs only the epochs that it hits, and is reported.
//
// Any number of goroutines may use a Store at the same time. A second writer, in another Store of this or
// another process, gets [ErrLocked].
type Store struct {
	files   fileSystem
	options StoreOptions

	mu       sync.RWMutex
	segments []*segment // by number; the last is being written if active is open

	writing sync.Mutex // guards the rest
	lock    io.Closer
	active  openFile // nil until the first Append, and between segments
	closed  error    // why nothing can be written
	failed  error    // the error of the sync that failed, if any
	buffer  []byte
	ends    [2]int64  // of the latest epochs
	folds   [10]uint8 // that the latest allow, and that of the last
	fold    uint8
}

// ErrOverloaded means that an epoch was stored, but that its counters can answer for few flows or none: the
// Config is too small for its packets or delays.
var ErrOverloaded = errors.New("too much in each counter to be told")

var errUnopened = fmt.Errorf("colate: %w: a Store that OpenStore has not opened", estimate.ErrConfig)

// OpenStore opens the store in a directory, or creates one. It fails if there is another writer or the
// directory cannot be read. Summary reports what else could not be read.
func OpenStore(directory string, options StoreOptions) (*Store, error) {
	return openFiles(dir(directory), options)
}

func openFiles(files fileSystem, options StoreOptions) (*Store, error) {
	if least := min(options.Age, options.Bytes, options.Delay); least < 0 {
		return nil, invalid("Age, Bytes or Delay", least, "0 or more")
	}
	const most = 64 << 20
	options.segmentBytes = cmp.Or(options.segmentBytes, min(most, cmp.Or(options.Bytes/8, most)))
	s := &Store{files: files, options: options, lock: io.NopCloser(nil)}
	var err error
	if options.ReadOnly {
		s.closed = fmt.Errorf("the store was opened to be read: %w", fs.ErrPermission)
	} else if s.lock, err = files.lock(); err != nil {
		return nil, fmt.Errorf("colate: %w", err)
	}
	if err := s.load(); err != nil {
		return nil, errors.Join(err, s.lock.Close())
	}
	return s, nil
}

// load learns what is in the directory, and what has changed there since.
func (s *Store) load() error {
	names, err := s.files.list()
	if err != nil {
		return fmt.Errorf("colate: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var segments []*segment
	for _, name := range names { // in order
		number, err := strconv.ParseUint(strings.TrimSuffix(name, segmentSuffix), 16, 64)
		if err != nil || name != segmentName(number) {
			continue
		}
		seg := &segment{number: number}
		at, known := slices.BinarySearchFunc(s.segments, number, func(seg *segment, n uint64) int { return cmp.Compare(seg.number, n) })
		if known {
			seg = s.segments[at]
		}
		if !known || at == len(s.segments)-1 || seg.unread != nil { // the last one may have grown
			if seg.unread = seg.scan(s.files); errors.Is(seg.unread, fs.ErrNotExist) { // its writer has removed it
				continue
			}
		}
		segments = append(segments, seg)
	}
	if n := len(segments); s.options.ReadOnly && n > 0 {
		segments[n-1].forgetTail()
	}
	s.segments = segments
	return nil
}

// Append adds an epoch, which then survives a crash. An epoch without packets is not kept. On error the epoch
// is not in the store and may be appended again, unless the error is [ErrOverloaded]: then it is in the store.
// If a disk fails to sync, its contents are unknown: Append fails until the store is opened again.
func (s *Store) Append(r *Recorder) error {
	made(r)
	s.writing.Lock()
	defer s.writing.Unlock()
	if err := s.check(); err != nil || r.packets == 0 {
		return err
	}
	// Counters are folded as often as those of all the latest epochs can be.
	copy(s.folds[1:], s.folds[:])
	s.folds[0] = r.packed().config.fold
	s.fold = min(max(s.fold, slices.Min(s.folds[:])), s.folds[0])
	var e entry
	s.buffer, e = frameOf(s.buffer, r.folded(s.fold))
	if err := s.write(e); err != nil {
		return fmt.Errorf("colate: %w", err)
	}
	return s.warn(r)
}

// warn returns an error if an epoch has so many packets that hardly any of its counters can be read, except for samples.
func (s *Store) warn(r *Recorder) error {
	const second = 1_000_000_000
	c := &r.config
	delay := float64(cmp.Or(s.options.Delay, min(second, c.Period/60)))
	load := float64(r.packets) / float64(c.counters())
	way := load * delay / float64(c.Period)
	if c.forSamples() || way <= mostOnTheWay && load <= math.Ldexp(1, int(c.CountBits)-1) && load*delay <= largestSum(c) {
		return nil
	}
	return fmt.Errorf("colate: %w: the epoch from %d on has %.3g packets a counter, %.2g on their way at a time if they take %.3g s",
		ErrOverloaded, r.start, load, way, delay/1e9)
}

// write removes what is too old or too much, and appends the frame in the buffer, which then survives a crash.
func (s *Store) write(e entry) error {
	before, most := int64(math.MinInt64), int64(math.MaxInt64)
	if s.options.Age > 0 {
		before = later64(min(s.ends[0], s.ends[1]), -s.options.Age)
	}
	if s.options.Bytes > 0 {
		most = s.options.Bytes - int64(len(s.buffer))
	}
	if _, err := s.drop(before, most); err != nil {
		return fmt.Errorf("removing old segments: %w", err)
	}
	if s.full(e) {
		s.complete()
		if err := s.begin(); err != nil {
			return fmt.Errorf("beginning a segment: %w", err)
		}
	}
	seg := s.last()
	if n, err := s.active.Write(s.buffer); err != nil {
		if n > 0 && s.active.Truncate(seg.size) != nil { // it stays as damage
			s.mu.Lock()
			seg.spoil(int64(n), err)
			s.mu.Unlock()
			s.complete()
		}
		return fmt.Errorf("appending to a segment: %w", err)
	}
	s.mu.Lock()
	e.segment, e.offset, e.length = seg.number, seg.size+frameSize, uint32(len(s.buffer)-frameSize)
	seg.entries = append(seg.entries, e)
	seg.size += int64(len(s.buffer))
	s.mu.Unlock()
	s.ends = [2]int64{s.ends[1], e.end}
	return s.synced(s.active.Sync())
}

func (s *Store) last() *segment { return s.segments[len(s.segments)-1] }

// full reports whether an epoch needs a new segment.
func (s *Store) full(e entry) bool {
	if s.active == nil {
		return true
	}
	seg, age, apart := s.last(), s.options.Age, int64(0)
	if len(seg.entries) > 0 {
		apart = e.end - seg.entries[0].start
	}
	return seg.size >= s.options.segmentBytes || age > 0 && max(apart, -apart) > age/8
}

// synced returns err. If it is not nil, the contents of the disk are unknown.
func (s *Store) synced(err error) error {
	if err != nil {
		s.failed = fmt.Errorf("colate: syncing: %w", err)
	}
	return s.failed
}

func (s *Store) begin() error {
	var f openFile
	number, err := uint64(0), fs.ErrExist
	if len(s.segments) > 0 {
		number = s.last().number + 1
	}
	for ; errors.Is(err, fs.ErrExist); number++ { // made by another writer, where files cannot be locked
		f, err = s.files.create(segmentName(number))
	}
	if err != nil {
		return err
	}
	s.active = f
	s.mu.Lock()
	s.segments = append(s.segments, &segment{number: number - 1})
	s.mu.Unlock()
	return s.synced(s.files.sync())
}

// complete ends the segment that is being written, of which all that was acknowledged is synced.
func (s *Store) complete() {
	if s.active != nil {
		s.active.Close()
		s.active = nil
	}
}

// Close lets another writer open the store.
func (s *Store) Close() error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.files == nil || s.closed != nil {
		return nil
	}
	s.closed = fmt.Errorf("the store is closed: %w", fs.ErrClosed)
	s.complete()
	return errors.Join(s.failed, s.lock.Close())
}

// DropBefore removes the segments whose epochs all ended by t, in nanoseconds, and returns the number of epochs
// removed. The segment being written stays. An epoch from a clock that ran ahead preserves only its own segment.
func (s *Store) DropBefore(t int64) (int, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	if err := s.check(); err != nil {
		return 0, err
	}
	epochs, err := s.drop(t, math.MaxInt64)
	if err != nil {
		err = fmt.Errorf("colate: %w", err)
	}
	return epochs, err
}

// check returns why the store can't be written.
func (s *Store) check() error {
	if s.files == nil {
		return errUnopened
	}
	if err := cmp.Or(s.closed, s.failed); err != nil {
		return fmt.Errorf("colate: %w", err)
	}
	return nil
}

// drop removes the segments whose epochs all ended by a time, and the oldest ones beyond a number of bytes.
func (s *Store) drop(before, most int64) (epochs int, err error) {
	total := int64(0)
	for _, seg := range s.segments {
		total += seg.size
	}
	kept := slices.DeleteFunc(slices.Clone(s.segments), func(seg *segment) bool {
		old := total > most || !slices.ContainsFunc(seg.entries, func(e entry) bool { return e.end > before })
		if err != nil || !old || s.active != nil && seg == s.last() {
			return false
		}
		if err = s.files.remove(segmentName(seg.number)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false
		}
		err = nil
		total -= seg.size
		epochs += len(seg.entries)
		return true
	})
	removed := len(kept) < len(s.segments)
	s.mu.Lock()
	s.segments = kept
	s.mu.Unlock()
	if err == nil && removed {
		err = s.files.sync()
	}
	return epochs, err
}

// Summary describes what is in the store now: its epochs, their span, and the bytes of its segments. Missing are the parts of files
// in which no whole epoch was found when the store was opened or written. Queries report later damage when they read it.
func (s *Store) Summary() (c Coverage) {
	_ = s.refresh() // or as it was
	all := s.find(math.MinInt64, math.MaxInt64)
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, seg := range s.segments {
		c.Bytes += seg.size
		if c.Missing = append(c.Missing, seg.damages...); seg.unread != nil {
			c.Missing = append(c.Missing, Missing{Err: damaged(seg.number, seg.size, 0, seg.unread)})
		}
	}
	if c.Epochs = len(all); c.Epochs > 0 {
		c.Start, c.End = all[0].start, slices.MaxFunc(all, func(a, b entry) int { return cmp.Compare(a.end, b.end) }).end
	}
	return c
}

// find returns the epochs that overlap the time between from and to, in order of their beginning.
func (s *Store) find(from, to int64) (found []entry) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, seg := range s.segments {
		for _, e := range seg.entries {
			if e.start <= to && e.end > from {
				found = append(found, e)
			}
		}
	}
	slices.SortStableFunc(found, func(a, b entry) int { return cmp.Compare(a.start, b.start) })
	return found
}

// refresh finds what another process has written and removed, if it may.
func (s *Store) refresh() error {
	if s.options.ReadOnly {
		return s.load()
	}
	return nil
}

// Epochs returns an iterator over the epochs that overlap a time whose ends, in nanoseconds, are included,
// in order of their beginning. It yields nil and an error for an epoch that cannot be read, and
// continues with the rest. An epoch that retention removes in the meantime is missing.
func (s *Store) Epochs(from, to int64) iter.Seq2[*Recorder, error] {
	return func(yield func(*Recorder, error) bool) {
		if err := s.refresh(); err != nil {
			yield(nil, err)
			return
		}
		reader := epochReader{store: s}
		defer reader.close()
		for _, e := range s.find(from, to) {
			var r *Recorder
			h, err := reader.head(&e)
			if err == nil {
				r, err = h.decode(&reader)
			}
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				r, err = nil, e.damaged(err)
			}
			if !yield(r, err) {
				return
			}
		}
	}
}
