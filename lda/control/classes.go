package control

import (
	"fmt"
	"iter"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/session"
	"github.com/hoplag/hoplag/lda"
)

// A ClassSender is a [Sender] for many classes of packets. All classes share the
// markers, and the parts carry the synopses of all classes.
type ClassSender struct {
	control *session.Sender
	open    *lda.Classes
	idle    *lda.Classes
	turns   [2]*lda.Classes // of even and odd intervals
	closed  *lda.Classes    // Parts sends their synopses
	record  []byte          // of the closed ones; empty until Parts needs it
}

// NewClassSender returns a ClassSender of n classes with one Config. For number and
// mtu see [NewSender]. The error wraps [estimate.ErrConfig].
func NewClassSender(c lda.Config, n int, number uint64, mtu int) (*ClassSender, error) {
	s := new(ClassSender)
	var err error
	for i := range s.turns {
		if s.turns[i], err = lda.NewClasses(c, n); err != nil {
			return nil, err
		}
	}
	if s.control, err = session.NewSender("control", number, mtu, n*c.EncodedSize()); err != nil {
		return nil, err
	}
	s.idle = idleClasses(n)
	s.open = s.idle
	return s, nil
}

// idleClasses returns classes for the packets between intervals.
func idleClasses(n int) *lda.Classes {
	all, err := lda.NewClasses(idleConfig, n)
	if err != nil {
		panic(err) // there may be fewer of any other Config
	}
	return all
}

// SetKey tags every control packet, see [Sender.SetKey].
func (s *ClassSender) SetKey(key [16]byte) error {
	return s.control.SetKey("control", session.NewKey(key))
}

// Update records that packet p of a class passed at time t. Between intervals
// it does nothing. It panics if there is no such class.
func (s *ClassSender) Update(class int, p hashing.Packet, t int64) { s.open.Update(class, p, t) }

// ClockSet says that this point's clock was set, see [Sender.ClockSet].
func (s *ClassSender) ClockSet() { s.control.ClockSet() }

// Start begins an interval and appends its marker to dst. The error wraps
// [ErrTurn].
func (s *ClassSender) Start(dst []byte) ([]byte, error) {
	turn := s.turns[s.control.Interval()%2]
	dst, err := s.control.Start(dst, classesFingerprint(turn))
	if err != nil {
		return dst, fmt.Errorf("control: %w", err)
	}
	turn.Reset()
	s.open = turn
	return dst, nil
}

// End ends the interval and appends its marker to dst. The error wraps
// [ErrTurn].
func (s *ClassSender) End(dst []byte) ([]byte, error) {
	turn := s.turns[s.control.Interval()%2]
	dst, err := s.control.End(dst)
	if err != nil {
		return dst, fmt.Errorf("control: %w", err)
	}
	s.open, s.closed, s.record = s.idle, turn, s.record[:0]
	return dst, nil
}

// Parts returns the frames that carry the synopses, see [Sender.Parts].
func (s *ClassSender) Parts() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if s.closed == nil {
			return
		}
		if len(s.record) == 0 {
			for i := range s.closed.Len() {
				s.record, _ = s.closed.Class(i).AppendBinary(s.record) // its error is always nil
			}
		}
		s.control.Parts(s.record)(yield)
	}
}

// classesFingerprint identifies the Config and the number of classes.
func classesFingerprint(all *lda.Classes) uint64 {
	c := all.Class(0).Config()
	return uint64(hashing.Word(c.Fingerprint(), uint64(all.Len())))
}

// A ClassReport is the outcome of an interval for all classes. See [Report].
type ClassReport struct {
	First, Interval uint64
	Session         uint64
	Err             error         // nil if the classes' own errors say more
	Classes         []ClassResult // by class; nil if Err is not
}

// A ClassResult is the outcome of an interval for one class.
type ClassResult struct {
	Err    error // nil if Result is good
	Result lda.Result
	Came   float64 // share of the cells that came
}

// A ClassReceiver is a [Receiver] for many classes of packets.
type ClassReceiver struct {
	control *session.Receiver[[]ClassResult]
	target  *lda.Classes
	idle    *lda.Classes
	down    [2]*lda.Classes
	up      *lda.Aggregator
	reports []session.Report[[]ClassResult]
}

// NewClassReceiver returns a ClassReceiver for a ClassSender with as many
// classes and an equal Config. The error wraps [estimate.ErrConfig].
func NewClassReceiver(c lda.Config, n int) (*ClassReceiver, error) {
	r := new(ClassReceiver)
	var err error
	for i := range r.down {
		if r.down[i], err = lda.NewClasses(c, n); err != nil {
			return nil, err
		}
	}
	r.up, r.idle = mustNew(c), idleClasses(n)
	r.target = r.idle
	r.control = session.NewReceiver("control", classSlots{r}, n*c.EncodedSize(), classesFingerprint(r.down[0]))
	return r, nil
}

// SetKey makes the receiver accept only tagged control packets, see
// [Receiver.SetKey].
func (r *ClassReceiver) SetKey(key [16]byte) { r.control.SetKey(session.NewKey(key)) }

// Update records that packet p of a class passed at time t. Between intervals
// it does nothing. It panics if there is no such class.
func (r *ClassReceiver) Update(class int, p hashing.Packet, t int64) { r.target.Update(class, p, t) }

// ClockSet says that this point's clock was set, see [Receiver.ClockSet].
func (r *ClassReceiver) ClockSet() { r.control.ClockSet() }

// Counters returns how many control packets were not used, and why.
func (r *ClassReceiver) Counters() Counters { return r.control.Counters() }

// Receive takes a control packet and appends the reports that follow from it,
// see [Receiver.Receive].
func (r *ClassReceiver) Receive(data []byte, reports []ClassReport) ([]ClassReport, error) {
	var err error
	r.reports, err = r.control.Receive(data, r.reports[:0])
	return r.appendReports(reports), err
}

// Flush reports on the undecided intervals, see [Receiver.Flush].
func (r *ClassReceiver) Flush(reports []ClassReport) []ClassReport {
	r.reports = r.control.Flush(r.reports[:0])
	return r.appendReports(reports)
}

func (r *ClassReceiver) appendReports(reports []ClassReport) []ClassReport {
	for _, in := range r.reports {
		reports = append(reports, ClassReport{First: in.First, Interval: in.Interval, Session: in.Session, Err: in.Err, Classes: in.Result})
	}
	return reports
}

// classSlots is the ClassReceiver as package session sees it.
type classSlots struct{ *ClassReceiver }

func (r classSlots) Known(fingerprint uint64) bool {
	return fingerprint == classesFingerprint(r.down[0])
}
func (r classSlots) Open(slot int, _ uint64) { r.target = r.down[slot] }
func (r classSlots) Idle()                   { r.target = r.idle }
func (r classSlots) Discard(slot int)        { r.down[slot].Reset() }

// Compare compares class by class.
func (r classSlots) Compare(slot int, record *session.Record) ([]ClassResult, error) {
	down := r.down[slot]
	results := make([]ClassResult, down.Len())
	size := len(record.Data) / down.Len()
	for i := range results {
		c, err := compareRecord(r.up, down.Class(i), record, i*size)
		results[i] = ClassResult{Err: err, Result: c.result, Came: c.came}
	}
	return results, nil
}
