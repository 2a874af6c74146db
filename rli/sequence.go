package rli

// A sequence follows the numbers of one injector's references.
type sequence struct {
	begun bool
	top   uint64 // the largest
	seen  uint64 // which of top, top−1, … came: bit 0 is top
	sent  int64  // when top was
	late  int    // references in a row that were not accepted
}

// patience is how many references in a row may be late or duplicates. If there
// are even more, the injector restarted with its clock behind. But if they are
// tagged it is more likely that somebody replays old ones.
const patience = 64

// accept accounts for a reference. It reports whether the reference is the
// first with its number and later than all others, and so fit for
// interpolation.
func (s *sequence) accept(number uint64, sent int64, tagged bool, c *Counts) bool {
	if !s.begun {
		*s = sequence{begun: true, top: number, seen: 1, sent: sent}
		return true
	}
	if number > s.top {
		ahead := number - s.top
		c.Lost += ahead - 1
		s.seen = s.seen<<ahead | 1
		s.top, s.sent, s.late = number, sent, 0
		return true
	}
	s.late++
	if sent > s.sent || s.late > patience && !tagged {
		// Sent after the one with the larger number: the injector restarted.
		c.Restarts++
		*s = sequence{begun: true, top: number, seen: 1, sent: sent}
		return true
	}
	// A shift by 64 or more gives 0: whether so old a number has come is
	// unknown.
	bit := uint64(1) << (s.top - number)
	if s.seen&bit != 0 {
		c.Duplicated++
		return false
	}
	s.seen |= bit
	c.Reordered++
	if c.Lost > 0 {
		c.Lost-- // it was counted when a later one came
	}
	return false
}
