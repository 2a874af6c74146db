package rli

import (
	"errors"
	"fmt"
	"math"
	"strings"
)

// ErrUntrusted means that an answer would rest on packets whose delays references do not reveal. It says why.
var ErrUntrusted = errors.New("references do not tell the delays")

// doubts are reasons not to trust what references say about packets.
type doubts uint32

const (
	unfollowed  doubts = 1 << iota // no reference followed: the buffer was full, or flushed
	overtaken                      // packets overtook references lately
	skipped                        // references were lost, and packets were not
	stepOfClock                    // a clock was stepped, or the base delay
	unsteady                       // the sender's software pauses for about as long as packets take
	untested                       // nothing told how far off lines are
)

const (
	doubtBits = 6
	allDoubts = 1<<doubtBits - 1
	maxDoubt  = 1<<(32-doubtBits) - 1

	gonePerhaps  = 4        // references that may be lost by chance
	mostDoubtful = 1.0 / 20 // of the packets of an answer
)

var doubtNames = [doubtBits]string{
	"no reference followed", "packets overtook others", "references were lost where packets were not",
	"a clock was stepped, or the way changed", "the sender paused for as long as packets take", "few references had come",
}

// String lists why.
func (d doubts) String() (list string) {
	for i, name := range doubtNames {
		if d>>i&1 != 0 {
			list += ", " + name
		}
	}
	return strings.TrimPrefix(list, ", ")
}

func (r *record) doubt(why doubts, n uint64) {
	r.doubtful = uint32(min(uint64(r.doubtful>>doubtBits)+n, maxDoubt))<<doubtBits | r.doubtful&allDoubts | uint32(why)
}

// doubtful returns the fraction of a record's packets that are doubtful, or ErrUntrusted.
func (r *Receiver) doubtful(f *record, others uint64) (share float64, err error) {
	n := float64(f.count() + others)
	share = (float64(f.doubtful>>doubtBits) + float64(others)) / n
	why := doubts(f.doubtful & allDoubts)
	if r.across(f) {
		share, why = 1, why|stepOfClock
	}
	q := &r.quality // also before it was noticed
	if q.gone > mostVanished*(q.gone+q.references)+gonePerhaps {
		share, why = 1, why|skipped
	}
	if others > 0 {
		why |= unfollowed
	}
	if share > mostDoubtful && why != untested {
		return share, fmt.Errorf("rli: %w: %v (%.3g %% of %.0f packets)", ErrUntrusted, why, 100*share, n)
	}
	return share, nil
}

// across reports whether a record has packets from before and after a step.
func (r *Receiver) across(f *record) bool {
	if r.stepFirst == 0 {
		return false
	}
	return r.stretch-r.stepFirst > math.MaxInt32 || // numbers have gone round
		int32(f.last-r.stepFirst) > 0 && int32(f.first-r.stepLast) <= 0
}
