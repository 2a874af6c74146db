package trace

import (
	"errors"
	"fmt"
	"io"

	"github.com/hoplag/hoplag/hashing"
)

// A Side is one of the two places at which packets are seen.
type Side uint8

// The two sides, in the order in which packets pass them.
const (
	Ingress Side = iota
	Egress
)

// String returns "ingress" or "egress".
func (s Side) String() string {
	switch s {
	case Ingress:
		return "ingress"
	case Egress:
		return "egress"
	}
	return fmt.Sprintf("Side(%d)", uint8(s))
}

// maxBackstep is by how many nanoseconds a packet of a capture may be earlier than one before it. Processors
// that serve several receive queues write packets to a file slightly out of order, by far less. Setting a clock
// commonly steps it by more (NTP slews anything below 128 ms), and so do files put together in the wrong order.
const maxBackstep = 100_000_000

// The errors of a [Pair], wrapped with the capture and the packet.
var (
	// ErrEmpty means that a capture holds no packet at all.
	ErrEmpty = errors.New("no packets")
	// ErrTime means that a packet has no time, or is more than 100 ms earlier than one before it.
	ErrTime = errors.New("unusable time")
	// ErrLink means that the captures' link types differ and their frames cannot be compared.
	ErrLink = errors.New("link types that cannot be compared")
)

// A Pair merges the captures of two points into one sequence in time order. To do so it holds what each capture
// has within 100 ms, but at most 2^20 packets and 128 MiB of frames of each. Beyond that it returns the
// earliest packet, and a packet that is earlier still is an [ErrTime]. A Pair is not safe for concurrent use.
type Pair struct {
	sides [2]pairSide
	link  hashing.LinkType // of the first packet
	seen  bool             // link is set
	err   error            // what ended the sequence, returned ever after
}

type pairSide struct {
	reader   *Reader
	window   window
	packets  int64
	latest   int64 // time of the latest packet read
	passed   int64 // time of the last one returned
	returned bool  // there was one
	err      error // what ended the capture: io.EOF, or what is wrong with it
	broken   bool  // err is of the reader, after some packets or none
}

// NewPair returns a Pair of the captures in, of the ingress, and out, of the egress, which must be two
// different Readers. The Pair reads them from then on.
func NewPair(in, out *Reader) *Pair {
	return &Pair{sides: [2]pairSide{{reader: in}, {reader: out}}}
}

// Next returns the next packet and the side that saw it.
//
// Packets come in the order of their times. At equal times ingress comes first, so that no packet leaves before
// it has entered, and packets of one capture keep the order of its file. A file may hold a packet after others
// whose times are up to 100 ms later.
//
// At the end of both captures the error is io.EOF. Any other error names the side and wraps [ErrEmpty],
// [ErrTime], [ErrLink] or an error of [Reader.Next]. It comes after all earlier packets of its capture, and it
// is final: every later call returns it again.
//
// A capture that breaks off costs no packet that both captures have. After the end of a broken egress nothing
// can have been seen leaving, and the sequence ends. After the end of a broken ingress it continues with the
// egress, which has packets that were on their way, and others that the ingress no longer shows: see
// [Pair.Broken].
//
// Two link types can be compared if [hashing.Frame] understands both, because it looks only at what they carry.
// A single link type can always be compared.
func (p *Pair) Next() (Side, Record, error) {
	if p.err != nil {
		return 0, Record{}, p.err
	}
	for i := range p.sides {
		side := &p.sides[i]
		for side.err == nil && !side.settled() {
			side.err = p.load(side)
		}
		if side.ended() && !side.broken && side.err != io.EOF {
			p.err = fmt.Errorf("%v capture: %w", Side(i), side.err)
			return 0, Record{}, p.err
		}
	}
	in, out := &p.sides[Ingress].window, &p.sides[Egress].window
	from := Ingress
	switch {
	case p.Broken(Egress), in.empty() && out.empty():
		p.err = p.end()
		return 0, Record{}, p.err
	case in.empty(), !out.empty() && out.first().Time < in.first().Time:
		from = Egress
	}
	side := &p.sides[from]
	rec := side.window.take()
	side.passed, side.returned = rec.Time, true
	return from, rec, nil
}

// end returns what ended the sequence.
func (p *Pair) end() error {
	in, out := p.Broken(Ingress), p.Broken(Egress)
	switch {
	case in && out:
		return fmt.Errorf("ingress capture: %w, and egress capture: %w", p.sides[Ingress].err, p.sides[Egress].err)
	case in:
		return fmt.Errorf("ingress capture: %w", p.sides[Ingress].err)
	case out:
		return fmt.Errorf("egress capture: %w", p.sides[Egress].err)
	}
	return io.EOF
}

// Broken reports whether a side's capture broke off and all of it has been returned. Packets that leave after
// the ingress broke off, and were not seen to enter, may have entered after that.
func (p *Pair) Broken(of Side) bool {
	side := &p.sides[of]
	return side.broken && side.ended()
}

// ended reports whether there are no more packets.
func (side *pairSide) ended() bool { return side.err != nil && side.window.empty() }

// settled reports whether the first packet held can go: no packet still to be read comes before it, or no more can be held.
func (side *pairSide) settled() bool {
	// The difference of two times may exceed an int64, but not a uint64.
	return side.window.full() || !side.window.empty() && uint64(side.latest)-uint64(side.window.first().Time) >= maxBackstep
}

// load reads a side's next packet and checks that it fits the sequence.
func (p *Pair) load(side *pairSide) error {
	rec, err := side.reader.Next()
	if err == io.EOF && side.packets == 0 {
		return ErrEmpty
	}
	if err != nil {
		side.broken = err != io.EOF
		return err
	}
	side.packets++
	if rec.Time == NoTime {
		return fmt.Errorf("packet %d: %w: missing or impossible", side.packets, ErrTime)
	}
	if side.packets == 1 || rec.Time >= side.latest {
		side.latest = rec.Time
	} else if back := uint64(side.latest) - uint64(rec.Time); back > maxBackstep {
		return fmt.Errorf("packet %d: %w: %d ns earlier than one before it, at most %d", side.packets, ErrTime, back, maxBackstep)
	}
	if side.returned && rec.Time < side.passed {
		return fmt.Errorf("packet %d: %w: %d ns earlier than one that came before all that there is room to hold, %d packets or %d bytes",
			side.packets, ErrTime, side.passed-rec.Time, maxHeld, maxHeldBytes)
	}
	if !p.seen {
		p.link, p.seen = rec.Link, true
	}
	if rec.Link != p.link && !(carriesIP(rec.Link) && carriesIP(p.link)) {
		return fmt.Errorf("packet %d: %w: %d, where another has %d", side.packets, ErrLink, rec.Link, p.link)
	}
	side.window.add(rec)
	return nil
}

// carriesIP reports whether hashing.Frame understands the link type. It tries an empty frame: the frame is
// refused for its length, or else for its link type.
func carriesIP(link hashing.LinkType) bool {
	var f hashing.Frame
	return !errors.Is(f.Parse(link, nil), hashing.ErrLink)
}
